"""Parallel and batch sizes of an informed run, and larger ones that divide what they must."""

from collections.abc import Iterator
from operator import mul
from typing import Final

from heuristics.config.sizes import divisors
from heuristics.facts.dictionary import fact
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from traces.missing import of_known
from traces.settings.knobs import PP, STAGE_LAYOUT, VIRTUAL_STAGES
from traces.settings.settings import Value, Values

OTHER_LAYOUTS: Final = (
    "num_layers_per_virtual_pipeline_stage",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)
"""What says the layers of a stage another way, of which Megatron-LM takes one only, and Bridge none
beside a layout."""
_EMBEDDING, _LAYER, _PREDICTION, _LOSS = "E", "t", "m", "L"


def doubled_micro_batch(run: Run) -> int | None:
    return of_known(mul, 2, run.config.micro_batch)


def batch_divides(run: Run, ranks_times: int = 1) -> bool | None:
    """Whether twice the micro-batch, over `ranks_times` the data-parallel ranks, divides the global
    batch.
    """
    micro, ranks, batch = doubled_micro_batch(run), run.config.dp, run.config.global_batch
    if micro is None or ranks is None or batch is None:
        return None
    return batch % (micro * ranks * ranks_times) == 0


def experts_divide(run: Run, ep: int) -> bool | None:
    """Whether EP divides the experts, and with ETP and PP the ranks; None where the experts are
    unknown.
    """
    experts, world = run.config.positive("num_moe_experts"), run.config.world
    etp, pp = run.config.expert_tensor_size, run.config.pp
    parted = world is not None and etp is not None and pp is not None and world % (ep * etp * pp)
    if parted or (experts and experts % ep):
        return False
    if experts is None:
        return None
    return True


@fact
def wider_ep(run: Run) -> int | None:
    """Twice the EP, where experts are spread and the NVLink domain is known to hold it; None
    otherwise.
    """
    ep, domain = run.config.ep, run.config.nvlink_domain
    if not run.tells("seems_moe") or ep is None or domain is None:
        return None
    fits = 2 * ep * (run.config.expert_tensor_size or 1) <= domain
    if fits and experts_divide(run, 2 * ep) is not False:
        return 2 * ep
    return None


def deeper(run: Run) -> Iterator[dict[str, Value]]:
    """More stages, the fewest first: multiples of PP that ranks allow, each with what cuts its
    layers.

    Where layers do not divide over stages and virtual stages, a layout names the stages; from
    Megatron-Core 0.13 on. Where the layers are unknown, twice the PP.
    """
    pp, layers = run.config.pp, run.config.positive("num_layers")
    if pp is None:
        return
    if layers is None:
        yield {PP: 2 * pp}
        return
    no_others, is_named = without_others(run), run.config.pp_layout is not None
    for size in range(2 * pp, layers + 1, pp):
        if not _ranks_allow(run, size):
            continue
        if not layers % (size * (run.config.vpp or 1)) and not is_named and not no_others:
            yield {PP: size}
        elif not run.config.core_before("0.13.0"):
            layout = even_layout(run.changed({PP: size, STAGE_LAYOUT: None}), run.config.vpp or 1)
            if layout is not None:
                count: Value = layout[1] if layout[1] > 1 else None
                yield {PP: size, STAGE_LAYOUT: layout[0], VIRTUAL_STAGES: count, **no_others}


def without_others(run: Run) -> Values:
    """What else cuts its layers, left out."""
    return {knob: None for knob in OTHER_LAYOUTS if run.config.first(knob) is not None}


def fewer_stages(run: Run) -> int | None:
    """Half the PP, where layers divide; None where a layout names the stages, or PP is 1 or
    unknown.
    """
    pp, layers, vpp = run.config.pp, run.config.positive("num_layers"), run.config.vpp or 1
    if pp is None or pp % 2 or run.config.pp_layout:
        return None
    # one stage alone takes any number of layers
    stage_layers = 1 if pp == 2 else pp // 2 * vpp
    if layers is not None and layers % stage_layers:
        return None
    return pp // 2


def _ranks_allow(run: Run, pp: int) -> bool:
    """Whether data-parallel ranks can be given up for stages, and experts keep theirs."""
    ranks = run.config.dp
    if ranks is None or run.config.pp is None:
        return True
    expert_ranks = (run.config.ep or 1) * (run.config.expert_tensor_size or 1)
    return ranks % (pp // run.config.pp) == 0 and (run.config.world or 0) % (expert_ranks * pp) == 0


def virtual_stages(run: Run) -> int | None:
    """Virtual stages a rank to try: the middle one of the divisors of its layers above 1; None
    where none.

    Megatron-Core's MoE guide: more of them, smaller bubbles and more transfers; a middle value is
    usual.
    """
    layers, pp = run.config.positive("num_layers"), run.config.pp
    if layers is None or pp is None or layers % pp:
        return None
    stage_layers = layers // pp
    counts = divisors(stage_layers, stage_layers)[1:]
    if counts:
        return counts[(len(counts) - 1) // 2]
    return None


def present_layout(run: Run) -> str | None:
    """The stages as Megatron cuts them where no layout names them; None where layers do not divide.

    Embedding and loss take a layer's place where they are counted
    (megatron/core/transformer/transformer_block.py, get_num_layers_to_build).
    """
    layers, pp, config = run.config.positive("num_layers"), run.config.pp, run.config
    if layers is None or pp is None or config.first(*OTHER_LAYOUTS[:3]) is not None:
        return None
    stages = pp * (config.vpp or 1)
    first, last = (config.on(knob) is True for knob in OTHER_LAYOUTS[3:])
    held, left_over = divmod(layers + first + last, stages)
    if left_over or stages < 2 or held < 2:
        return None
    middle = [_LAYER * held] * (stages - 2)
    mtp = _PREDICTION * (config.positive("mtp_num_layers") or 0)
    ends = _EMBEDDING + _LAYER * (held - first), _LAYER * (held - last) + mtp + _LOSS
    return "|".join((ends[0], *middle, ends[1]))


def even_layout(run: Run, virtual: int | None = None) -> tuple[str, int] | None:
    """Stages of equal length, embedding and loss counted as layers, and how many a rank holds.

    `virtual` stages; else as many as there are, else a few. None where sizes are unknown, or layers
    too few.
    """
    layers, pp = run.config.positive("num_layers"), run.config.pp
    if layers is None or pp is None:
        return None
    extra = [_PREDICTION * mtp] if (mtp := run.config.positive("mtp_num_layers")) else []
    parts = [_EMBEDDING, *[_LAYER] * layers, *extra, _LOSS]
    usual = min(
        RECIPES["virtual_stages"].value, len(parts) // (pp * RECIPES["layers_a_stage"].value)
    )
    if virtual is None:
        virtual = run.config.vpp if run.config.vpp and run.config.vpp > 1 else max(1, int(usual))
    stages = pp * virtual
    if len(parts) < stages:
        return None
    named, start = [], 0
    for stage in range(1, stages + 1):
        end = len(parts) * stage // stages
        named.append("".join(parts[start:end]))
        start = end
    return "|".join(named), virtual
