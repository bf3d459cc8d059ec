"""How a model is cut over ranks, and how much each launch has to do: sizes, layouts and the
micro-batch.
"""

from collections.abc import Iterator, Sequence

from heuristics.facts.dictionary import enter, fact
from heuristics.fixes.change import Change
from heuristics.guides.memory_use import (
    HEAD_ROOM,
    capacity_bytes,
    estimated,
    peak_bytes,
    stage_memory,
)
from heuristics.guides.parallel import guided_cp, sequence_length
from heuristics.run.run import Run
from heuristics.run.sizes import (
    batch_divides,
    deeper,
    doubled_micro_batch,
    even_layout,
    fewer_stages,
    virtual_stages,
    wider_ep,
    without_others,
)
from traces.missing import Missing
from traces.settings.knobs import CP, EP, ETP, MICRO_BATCH, PP, STAGE_LAYOUT, TP, VIRTUAL_STAGES
from traces.settings.settings import Values
from traces.settings.spelling import LAYOUT
from traces.sizes.memory import delta

# ---- pipeline stages ----


def even_stages(run: Run) -> Change:
    """Virtual stages that divide a rank's layers; where none do, or some are cut already, stages by
    name.

    LAYOUT and N are the model's, to be filled in; before 0.13 only equal stages can be asked for.
    """
    cut = run.config.pp_layout or (run.config.vpp or 1) > 1
    virtual, layout = None if cut else virtual_stages(run), even_layout(run)
    if virtual is not None:
        return Change({VIRTUAL_STAGES: virtual}, megatron_lm=without_others(run))
    if not run.config.core_before("0.13.0"):
        return _by_layout(run, *(layout or (LAYOUT, 0)))
    layers = "num_layers_per_virtual_pipeline_stage"
    filled_in = Change(megatron_lm={layers: "N"}, megatron_bridge={VIRTUAL_STAGES: "N"}, harness=())
    if layout is None:
        return filled_in
    return Change()


def _by_layout(run: Run, named: str, virtual: int) -> Change:
    """Stages by name, with their number a rank where that is known (0: it is not)."""
    count = {}
    if virtual:
        count[VIRTUAL_STAGES] = virtual if virtual > 1 else None
    whole = {"pipeline_model_parallel_layout": named, **without_others(run)}
    return Change(whole, megatron_bridge=count, since="0.13.0")


def even_memory(run: Run) -> Change:
    """The layout whose fullest stage is estimated to hold least; of equal stages where none can
    be.
    """
    stages = run.tells("stage_memory")
    layout = (stages.layout, stages.virtual) if stages else even_layout(run) or (LAYOUT, 0)
    return _by_layout(run, *layout)


# ---- more or fewer cuts ----


def more_ranks(run: Run) -> Change:
    """The fewest ranks a copy that the estimate fits with: EP inside the domain, then stages beside
    it.

    Twice the EP, else the next stages, where sizes are unknown (N where PP is); what holds least
    where nothing fits.
    """
    cuts = [*_wider(run)]
    widest = cuts[-1] if cuts else {}
    cuts += ({**widest, **stages} for stages in deeper(run.changed(widest)))
    if not cuts:
        if run.config.pp:
            return Change()
        return Change({PP: "N"})
    cut = _first_that_fits(run, cuts)
    whole, count = dict(cut), {}
    if VIRTUAL_STAGES in cut:
        count[VIRTUAL_STAGES] = whole.pop(VIRTUAL_STAGES)
    return Change(whole, megatron_bridge=count, since="0.13.0" if STAGE_LAYOUT in cut else "")


def _wider(run: Run) -> Iterator[Values]:
    """Larger and larger EP inside the domain."""
    while ep := wider_ep(run):
        yield {EP: ep}
        run = run.changed({EP: ep})


def _first_that_fits(run: Run, cuts: Sequence[Values]) -> Values:
    """By what is measured or counted now and what the estimate takes off; the first where that is
    unknown.
    """
    capacity, before = capacity_bytes(run), estimated(run)
    if capacity is None or isinstance(before, Missing):
        return cuts[0]
    now = peak_bytes(run) or before.total_bytes
    held = max(now, capacity) if run.tells("ran_out") else now
    sizes = []
    for cut in cuts:
        added = delta(before, estimated(run.changed(cut)))
        if isinstance(added, Missing):
            continue
        if held + added <= capacity * (1 - HEAD_ROOM.value):
            return cut
        sizes.append((held + added, cut))
    return min(sizes, key=lambda size: size[0], default=(0, cuts[0]))[1]


def fewer_ranks(run: Run) -> Change:
    """The guide's CP where there is more, else half the TP, else half the stages; one of them at a
    time.
    """
    length, cp = sequence_length(run), run.config.cp
    if length is not None and cp is not None and cp > guided_cp(length) and run.tells("cp_is_far"):
        return Change({CP: guided_cp(length)})
    if half := _half_tp(run):
        return Change(half)
    stages = fewer_stages(run)
    if stages is None:
        return Change()
    none = {VIRTUAL_STAGES: None} if stages == 1 and run.config.vpp else {}
    return Change({PP: stages, **none})


@fact
def cuts_left(run: Run) -> bool | None:
    """Whether one of the parallel sizes can be smaller."""
    if None in (run.config.tp, run.config.pp, run.config.cp):
        return None
    return bool(fewer_ranks(run).set)


# ---- more work in a launch ----


def larger_launches(run: Run) -> Change:
    """Twice the micro-batch (2N of the N there is), and half the tensor parallelism where there is
    some.
    """
    return Change({**_doubled(run), **_half_tp(run)})


def _doubled(run: Run) -> Values:
    return {MICRO_BATCH: doubled_micro_batch(run) or "2N"}


def _half_tp(run: Run) -> Values:
    """Half the tensor parallelism, TP/2 where it is unknown; nothing where it cannot go down.

    It does not go to 1 where its overlap is on, which wants more.
    """
    tp = run.config.tp
    if run.config.tensor_parallel is not True or (tp is not None and tp % 2):
        return {}
    if tp == 2 and run.active.tp_overlap:
        return {}
    half = tp // 2 if tp else "TP/2"
    alone = half == 1 and run.config.on("sequence_parallel")
    off = {"sequence_parallel": False} if alone else {}
    return {TP: half, **off}


def larger_shapes(run: Run) -> Change:
    """ETP 1 where experts are cut; else twice the EP inside the domain; else twice the
    micro-batch.
    """
    if run.tells("experts_cut"):
        return Change({ETP: 1})
    ep = wider_ep(run)
    return Change({EP: ep} if ep else _doubled(run))


enter("stage_memory", stage_memory)
enter("batch_divides", batch_divides)


@fact
def divides_over_more(run: Run) -> bool | None:
    """Whether the global batch divides over the ranks that half the tensor parallelism makes."""
    return batch_divides(run, 2 if _half_tp(run) else 1)
