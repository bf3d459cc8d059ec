"""How a run is cut into ranks: parallel sizes, the layers of each pipeline stage, micro-batches in
flight.
"""

from collections.abc import Sequence
from typing import Final

from traces.frozen import frozen
from traces.missing import Missing
from traces.settings.knobs import CP, EP, ETP, PP, TP
from traces.settings.settings import Settings
from traces.settings.values import unrolled
from traces.sizes.knobs import Knobs
from traces.sizes.model import Layers, ModelSize
from traces.texts import Texts

_PATH: Final = "sizes.layout"


@frozen
class Chunk:
    """What one virtual stage holds: decoder layers by kind, multi-token prediction, embedding,
    output.
    """

    dense: int
    moe: int
    mtp: int
    embedding: bool
    output: bool

    @property
    def layer_count(self) -> int:
        return self.dense + self.moe + self.mtp


@frozen
class Layout:
    """Parallel sizes. `stages[pp rank]` are its chunks, in the order they run; one chunk without
    VPP.

    `dp` counts the ranks that share a dense parameter's optimizer state (context parallel ranks
    included), `edp` those of an expert's parameter.
    """

    world: int
    tp: int
    cp: int
    pp: int
    vpp: int | None
    ep: int
    etp: int
    dp: int
    edp: int
    sequence_parallel: bool
    micro_batch: int
    microbatch_count: int
    stages: tuple[tuple[Chunk, ...], ...]
    assumed: Texts = ()


def layout_of(settings: Settings, model: ModelSize | Layers) -> Layout | Missing:
    """The layout a configuration describes; Missing names the knobs, or says that the sizes do not
    divide.
    """
    knobs = Knobs(settings)
    tp, cp, pp, ep = map(knobs.whole, (TP, CP, PP, EP))
    etp = knobs.whole(ETP, tp)
    world = knobs.need("world_size")
    micro_batch = knobs.need("train.micro_batch_size")
    batch = knobs.need("train.global_batch_size")
    vpp = knobs.positive("virtual_pipeline_model_parallel_size") if pp > 1 else None
    # Megatron-Core trains experts under tensor parallelism only with sequence parallelism.
    sequence_parallel = tp > 1 and (
        model.expert_count is not None or knobs.flag("sequence_parallel", False)
    )
    if (gap := knobs.gap(_PATH)) is not None:
        return gap
    if min(tp, cp, pp, ep, etp) < 1 or world % (tp * cp * pp) or world % (etp * ep * pp):
        return _illegal("the parallel sizes do not divide world_size")
    if model.expert_count and model.expert_count % ep:
        return _illegal("expert_model_parallel_size does not divide num_moe_experts")
    dp = world // (tp * cp * pp)
    if batch % (dp * micro_batch):
        return _illegal(
            "train.global_batch_size is not a multiple of data parallel size times micro-batch"
        )
    stages = _stages(knobs, model, pp, vpp or 1)
    if isinstance(stages, Missing):
        return stages
    several = pp > 1 and (vpp or len(stages[0]) > 1)
    return Layout(
        world, tp, cp, pp, max(map(len, stages)) if several else None, ep, etp, dp * cp,
        world // (etp * ep * pp), sequence_parallel, micro_batch, batch // (dp * micro_batch),
        stages, tuple(knobs.assumed),
    )  # fmt: skip


def moe_layers_of_stages(layout: Layout, model: ModelSize | Layers) -> tuple[int, ...]:
    """MoE layers of each pipeline rank; multi-token prediction has layers like the last decoder
    layer.

    Source: Megatron-Core, get_gpt_mtp_block_spec (megatron/core/models/gpt/gpt_layer_specs.py).
    """
    counts = [0] * layout.pp
    for rank, chunks in enumerate(layout.stages):
        for chunk in chunks:
            counts[rank] += chunk.moe + chunk.mtp * model.is_moe[-1]
    return tuple(counts)


def chunks_in_flight(layout: Layout, rank: int, weights: Sequence[int]) -> tuple[int, ...]:
    """How many micro-batches of each chunk a pipeline rank holds when together they weigh most.

    Megatron-Core's schedules (megatron/core/pipeline_parallel/schedules.py): 1F1B holds `pp -
    rank`; interleaved warms up (pp - rank - 1) * 2 + (chunks - 1) * pp forwards in groups of `pp`
    micro-batches and then runs one forward before each backward. Overlap of expert communication
    warms up one more, but merges each later forward with a backward, which frees as much: it adds
    nothing here.
    """
    if layout.vpp is None:
        return (min(layout.pp - rank, layout.microbatch_count),) * len(weights)
    pp, chunks = layout.pp, len(weights)
    total = min(layout.microbatch_count, 4 * pp) * chunks
    warm_up = min(total, (pp - rank - 1) * 2 + (chunks - 1) * pp)
    alive = [0] * chunks
    most, best, weight = -1, tuple(alive), 0
    for forward in range(total):
        began = forward % (pp * chunks) // pp
        alive[began] += 1
        weight += weights[began]
        if weight > most:
            most, best = weight, tuple(alive)
        if forward >= warm_up:
            ended = chunks - 1 - (forward - warm_up) % (pp * chunks) // pp
            alive[ended] -= 1
            weight -= weights[ended]
    return best


def _illegal(why: str) -> Missing:
    return Missing(_PATH, why, "check the sizes of the configuration")


def _stages(
    knobs: Knobs, model: ModelSize | Layers, pp: int, vpp: int
) -> tuple[tuple[Chunk, ...], ...] | Missing:
    letters: list[str] | None
    if layout_text := knobs.word("pipeline_model_parallel_layout"):
        letters = (unrolled(layout_text) or "").split("|")
    else:
        letters = _even(knobs, model, pp, vpp)
    if letters in (None, [""]):
        why = (
            "the decoder layers do not divide over the pipeline stages, and no layout defines "
            "the stages"
        )
        return Missing(
            _PATH, why, "give pipeline_model_parallel_layout, or the layers of first and last stage"
        )
    if len(letters) % pp or "".join(letters).count("t") != len(model.is_moe):
        return _illegal(
            "pipeline_model_parallel_layout does not fit num_layers and the pipeline size"
        )
    chunks, first = [], 0
    for stage in letters:
        held = model.is_moe[first : first + stage.count("t")]
        first += len(held)
        mtp = model.mtp_layers if "m" in stage else 0
        chunks.append(Chunk(len(held) - sum(held), sum(held), mtp, "E" in stage, "L" in stage))
    return tuple(tuple(chunks[rank::pp]) for rank in range(pp))


def _even(knobs: Knobs, model: ModelSize | Layers, pp: int, vpp: int) -> list[str] | None:
    layers = len(model.is_moe)
    first = knobs.positive("num_layers_in_first_pipeline_stage")
    last = knobs.positive("num_layers_in_last_pipeline_stage")
    embedding = knobs.value("account_for_embedding_in_pipeline_split") is True
    loss = knobs.value("account_for_loss_in_pipeline_split") is True
    ends = [*filter(None, (first, last))]
    if ends and pp > 1:
        middle = (layers - sum(ends)) // (pp - len(ends)) if pp > len(ends) else 0
        by_rank = [first or middle, *[middle] * (pp - 2), last or middle]
    else:
        layers += embedding + loss
        by_rank = [layers // pp] * pp
    if sum(by_rank) != layers or any(count % vpp for count in by_rank):
        return None
    counts = [layers // vpp for layers in by_rank] * vpp
    if not ends:  # they were counted as layers above, and are none
        counts[0] -= embedding
        counts[-1] -= loss
    letters = ["t" * count for count in counts]
    letters[0] = "E" + letters[0]
    letters[-1] += "m" * bool(model.mtp_layers) + "L"
    return letters
