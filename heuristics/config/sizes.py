"""Into how many ranks a configuration cuts a model and its batches."""

from functools import cached_property
from math import prod
from operator import attrgetter

from heuristics.config.features import Features, told
from traces.settings.knobs import (
    CP,
    EP,
    ETP,
    GLOBAL_BATCH,
    MICRO_BATCH,
    PP,
    STAGE_LAYOUT,
    TP,
    VIRTUAL_STAGES,
)
from traces.settings.values import stage_count


def divisors(number: int, most: int) -> list[int]:
    """Those up to the most, rising."""
    return [divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0]


class Sizes(Features):
    """Sizes in ranks and in sequences. `framework`: whose spelling the configuration is in."""

    framework: str | None

    # Parallel sizes, in ranks.

    tp: int | None = told(lambda view: view.size(TP))
    cp: int | None = told(lambda view: view.size(CP))
    pp: int | None = told(lambda view: view.size(PP))
    ep: int | None = told(lambda view: view.size(EP))

    @property
    def etp(self) -> int | None:
        """Ranks that share one expert; null is TP, as in Megatron-Core; so is what nobody sets.

        A recipe that we do not see may set it for Megatron-Bridge.
        """
        is_open = not self.known(ETP) and self.framework == "megatron_bridge"
        return self.positive(ETP) or (None if is_open else self.tp)

    expert_tensor_size: int | None = told(
        lambda view: 1 if view.etp is None and view.observed.tp_active is False else view.etp
    )
    """Ranks that share one expert: ETP; 1 where no TP traffic runs."""

    @cached_property
    def vpp(self) -> int | None:
        """Virtual stages of a rank: by the layout string, else by number; 1 without, None where
        unknown.
        """
        if self.pp_layout:
            stages = stage_count(self.pp_layout)
            if stages and self.pp:
                return max(1, stages // self.pp)
            return self.positive(VIRTUAL_STAGES)
        if (number := self.positive(VIRTUAL_STAGES)) is not None:
            return number
        layers = self.positive("num_layers")
        per_stage = self.positive("num_layers_per_virtual_pipeline_stage")
        if layers and per_stage and self.pp:
            return max(1, layers // self.pp // per_stage)
        if self.pp == 1 or self.known(VIRTUAL_STAGES):
            return 1
        return None

    world: int | None = told(lambda view: view.positive("world_size"))
    world_size: int | None = told(attrgetter("world"))

    @property
    def dp(self) -> int | None:
        if self.world is None:
            return self.positive("data_parallel_size")
        return _share(self.world, self.tp, self.cp, self.pp)

    edp: int | None = told(
        lambda view: _share(view.world, view.expert_tensor_size, view.ep, view.pp)
    )
    """Data-parallel ranks of the experts."""

    pp_layout: str | None = told(lambda view: view.word(STAGE_LAYOUT))

    # Batches, in sequences.

    micro_batch: int | None = told(lambda view: view.positive(MICRO_BATCH))
    global_batch: int | None = told(lambda view: view.positive(GLOBAL_BATCH))

    @property
    def microbatches(self) -> int | None:
        """Microbatches of a step on each rank; None where a size is unknown or they do not
        divide.
        """
        if self.micro_batch is None or self.dp is None or self.global_batch is None:
            return None
        per_pass = self.micro_batch * self.dp
        if self.global_batch % per_pass:
            return None
        return self.global_batch // per_pass


def _share(world: int | None, *sizes: int | None) -> int | None:
    known = [size for size in sizes if size]
    if world is None or len(known) < len(sizes) or world % prod(known):
        return None
    return world // prod(known)
