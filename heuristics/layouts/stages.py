"""Pipeline stages of a model by letters, so that each does about as much work, and how uneven they
stay.

Where layers divide and nothing else weighs, no letters are needed. Else every stage gets equally
many layers and the last one, which has the loss and multi-token prediction, what is left: so NVIDIA
writes the layouts of DeepSeek-V3 (Megatron-Bridge, perf_recipes/deepseek: Et*4|(t*4|)*14tmL).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from traces.frozen import frozen
from traces.limits import WALL, Limit
from traces.settings.values import letters_of
from traces.sizes.model import ModelSize
from traces.sizes.throughput import flops_per_token

HEAD: Final = Limit(
    0.4,
    "of the time by its operations",
    "ours: published MoE runs reach 28 to 40 % of the peak, one large GEMM about twice that",
)


@frozen
class Work:
    """About the time of a token, in operations: each decoder layer, multi-token prediction, the
    loss.
    """

    layers: tuple[float, ...]
    prediction: float
    loss: float

    @property
    def total(self) -> float:
        return sum(self.layers) + self.prediction + self.loss


@frozen
class Stages:
    """Stages of a pipeline: `letters` is None where equal counts need none.

    `ragged`: whether the stages between the first and the last are of two lengths.
    """

    letters: str | None
    uneven_frac: float
    ragged: bool = False


def work_of(model: ModelSize) -> Work:
    """What each part of a model costs, by the operations of its parts."""
    parts = flops_per_token(model)
    layers = len(model.is_moe) + model.mtp_layers
    attention = (parts["attention"] + parts["core_attention"]) / layers
    dense = parts["dense_mlp"] / max(1, model.dense_layer_count)
    moe = (parts["experts"] + parts["shared_experts"]) / max(1, model.moe_layer_count)
    head = HEAD.value * parts["logits"] / (model.mtp_layers + 1)
    layer_work = tuple(attention + (moe if is_moe else dense) for is_moe in model.is_moe)
    return Work(layer_work, model.mtp_layers * (layer_work[-1] + head) + parts["mtp"], head)


@lru_cache(4096)
def stages_of(work: Work, pp: int, vpp: int) -> Stages | None:
    """The stages of `vpp` chunks on each of `pp` ranks; None where there are fewer layers than
    stages.
    """
    count, stages = len(work.layers), pp * vpp
    if stages == 1:
        return Stages(None, 0.0)
    equal = None if count % stages else [count // stages] * stages
    if equal is not None and (uneven := uneven_of(work, equal, pp)) <= WALL.value:
        return Stages(None, uneven)
    extra = (work.prediction + work.loss) * count / sum(work.layers)
    written = [round((count + extra) / stages)] * (stages - 1)
    last = count - sum(written)
    for place in range(-last):
        written[place % (stages - 1)] -= 1
    counts = [*written, max(0, last)]
    if min(written) < 1:
        if equal is None:
            return None
        return Stages(None, uneven_of(work, equal, pp))
    ragged = len({*written}) > 1
    return Stages(letters_of(counts, work.prediction > 0), uneven_of(work, counts, pp), ragged)


def uneven_of(work: Work, counts: Sequence[int], pp: int) -> float:
    """How much more than the mean the rank does that does most."""
    loads, first = [0.0] * pp, 0
    for place, count in enumerate(counts):
        loads[place % pp] += sum(work.layers[first : first + count])
        first += count
    loads[(len(counts) - 1) % pp] += work.prediction + work.loss
    return max(loads) * pp / work.total - 1
