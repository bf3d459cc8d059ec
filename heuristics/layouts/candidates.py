"""Every layout of a model that divides heads, experts, GPUs and the global batch, with its
stages.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from heuristics.config.sizes import divisors
from heuristics.guides.parallel import guided_cp
from heuristics.layouts.stages import Stages, Work, stages_of, work_of
from heuristics.recipes import RECIPES
from heuristics.run.sizes import OTHER_LAYOUTS
from traces.frozen import frozen
from traces.limits import Limit
from traces.settings.knobs import CP, EP, ETP, MICRO_BATCH, PP, TP, VIRTUAL_STAGES
from traces.settings.settings import Values
from traces.sizes.model import ModelSize

EACH: Final = Limit(
    0.002,
    "of the step for each virtual stage or module",
    "ours: of what costs alike the simpler; the bubble then chooses 4 virtual stages for "
    "DeepSeek-V3 on PP 4 and PP 8, and 8 for Mixtral, as published",
)
MICRO_BATCHES: Final = (1, 2, 4, 8)
"""The sizes of Megatron-Bridge's presets."""


@dataclass(frozen=True)
class Sizes:
    """One layout without what memory asks of it. `uneven_frac`: how much more the busiest stage
    does.
    """

    gpus: int
    tp: int
    cp: int
    pp: int
    vpp: int
    ep: int
    etp: int
    micro_batch: int
    batch: int
    letters: str | None
    uneven_frac: float

    @property
    def key(self) -> tuple[int, ...]:
        """What makes it another layout: its parallel sizes."""
        return self.tp, self.cp, self.pp, self.ep, self.etp

    @cached_property
    def dp(self) -> int:
        return self.gpus // (self.tp * self.cp * self.pp)

    @property
    def edp(self) -> int:
        """Ranks that share an expert's weights."""
        return self.gpus // (self.etp * self.ep * self.pp)

    @property
    def microbatches(self) -> int:
        return self.batch // (self.dp * self.micro_batch)

    @property
    def bubble_frac(self) -> float:
        """The pipeline's waits over its work, interleaved by its virtual stages."""
        return (self.pp - 1) / (self.vpp * self.microbatches)

    def changes(self) -> Values:
        """Knobs that set it."""
        virtual = self.vpp if self.vpp > 1 else None
        return {
            TP: self.tp, CP: self.cp, PP: self.pp, VIRTUAL_STAGES: virtual,
            EP: self.ep, ETP: self.etp, "sequence_parallel": self.tp > 1,
            MICRO_BATCH: self.micro_batch, "pipeline_model_parallel_layout": self.letters,
            **dict.fromkeys(OTHER_LAYOUTS),
        }  # fmt: skip


@frozen
class LayoutRequest:
    """What layouts are asked for: a model on GPUs, with its batch."""

    model: ModelSize
    gpus: int
    batch: int


def candidates(request: LayoutRequest) -> Iterator[Sizes]:
    """All that divide, one for each set of parallel sizes and micro-batch, with its best virtual
    stages.

    ETP stays 1: the guides prefer EP for experts. CP is the guide's by the sequence length, or half
    of it.
    """
    model, work = request.model, work_of(request.model)
    experts = model.expert_count or 1
    contexts = {1, guided_cp(model.seq_length), max(1, guided_cp(model.seq_length) // 2)}
    for tp in _tensor(model):
        for cp in sorted(contexts):
            if model.seq_length % (2 * cp) or request.gpus % (tp * cp):
                continue
            for pp in divisors(request.gpus // (tp * cp), len(model.is_moe)):
                if request.batch % (request.gpus // (tp * cp * pp)):
                    continue
                for ep in divisors(experts, request.gpus // pp):
                    if request.gpus % (pp * ep) == 0:
                        yield from _with_batches(request, work, (tp, cp, pp, ep))


def _tensor(model: ModelSize) -> list[int]:
    """TP that divides heads and key groups; Megatron-Core refuses others."""
    groups = model.heads if model.latent else model.query_groups
    return [tp for tp in divisors(model.heads, RECIPES["largest_tp"].whole) if groups % tp == 0]


def _with_batches(
    request: LayoutRequest, work: Work, cut: tuple[int, int, int, int]
) -> Iterator[Sizes]:
    tp, cp, pp, ep = cut
    replica_batch = request.batch // (request.gpus // (tp * cp * pp))
    for micro_batch in MICRO_BATCHES:
        if replica_batch % micro_batch:
            return
        virtual = best_virtual(work, pp, replica_batch // micro_batch)
        if virtual is not None:
            vpp, stages = virtual
            yield Sizes(
                request.gpus, tp, cp, pp, vpp, ep, 1, micro_batch, request.batch, stages.letters,
                max(0.0, stages.uneven_frac),
            )  # fmt: skip


@lru_cache(4096)
def best_virtual(work: Work, pp: int, microbatches: int) -> tuple[int, Stages] | None:
    """The virtual stages that waste least: bubble, uneven stages, and transfers of each; None where
    none are.

    Stages between the ends are of one length where they can be, as in every layout of Bridge's
    scripts.

    Interleaved stages want a multiple of PP micro-batches (Megatron-Core, schedules.py).
    """
    layers = len(work.layers)
    most = (
        min(RECIPES["most_virtual"].whole, layers // pp) if pp > 1 and microbatches % pp == 0 else 1
    )
    best = None
    least = True, float("inf")
    for vpp in range(1, most + 1):
        if not (stages := stages_of(work, pp, vpp)):
            continue
        uneven = max(0.0, stages.uneven_frac)
        wasted = (stages.ragged, (pp - 1) / (vpp * microbatches) + EACH.value * vpp + uneven)
        if wasted < least:
            best, least = (vpp, stages), wasted
    return best
