"""A run of several ranks in few lines: its layout, its knobs, and the one cause that holds it up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from bench.simulate.knobs import Knobs
from bench.simulate.ranks.layout import Layout


class Cause(Enum):
    """What holds a run up; the values are those of `run.late.cause` in a document."""

    NONE = "none"
    SLOW_DEVICE = "slow_device"
    SLOW_HOST = "slow_host"
    SLOW_LINK = "slow_link"
    ROUTING_IMBALANCE = "routing_imbalance"
    ROTATING_JITTER = "rotating_jitter"
    DATA_LOADER = "data_loader"
    PIPELINE_IMBALANCE = "pipeline_imbalance"


class Hot(Enum):
    """Where routing sends too many tokens: to one rank, to another by layer, or by layer and step."""

    RANK = "rank"
    LAYER = "layer"
    STEP = "step"


class Jitter(Enum):
    """What rotating jitter disturbs."""

    HOST = "host"
    DEVICE = "device"


class Extent(Enum):
    """How far a cause reaches: a rank, all the time and in all that it does, unless it says otherwise."""

    RANK = "rank"
    NODE = "node"
    """All ranks of the rank's host; of a slow link the NIC that they share, which only other hosts pass."""
    STEPS = "steps"
    """The second half of the steps, as heat slows a GPU."""
    GEMMS = "gemms"
    """Matrix products alone."""
    PAUSES = "pauses"
    """Of rotating jitter: hosts of all ranks stop before a layer now and then, for tenths of a ms."""


@dataclass(frozen=True, slots=True)
class RanksRun:
    """A run. `knobs` hold for every rank and stage; `layer_count` is of one stage, peers are not drawn late.

    `strength`: slow_device, slow_host, slow_link and jitter of a device: a factor of its times;
    routing_imbalance: tokens of the hot rank beside the mean; data_loader and jitter of a host: milliseconds
    a step; pipeline_imbalance: layers that `stage` has from another one. `every`: the loader is late in each
    k-th step. `rank` is that of slow_*, data_loader and of routing to one rank. `device_syncs`: the host
    waits for the device after each message of the pipeline, as by Megatron-Core's `batch_p2p_sync`.
    """

    seed: int = 0
    layout: Layout = field(default_factory=Layout)
    knobs: Knobs = field(default_factory=Knobs)
    cause: Cause = Cause.NONE
    rank: int | None = None
    stage: int | None = None
    strength: float = 1.0
    hot: Hot = Hot.RANK
    jitter: Jitter = Jitter.HOST
    every: int = 1
    device_syncs: bool = False
    extent: Extent = Extent.RANK

    def mended(self) -> RanksRun:
        """The same run without its cause."""
        return RanksRun(self.seed, self.layout, self.knobs, device_syncs=self.device_syncs)

    @property
    def late_ranks(self) -> tuple[int, ...]:
        """`rank`, and those of its host where the cause reaches so far."""
        if self.rank is None:
            return ()
        if self.extent is not Extent.NODE:
            return (self.rank,)
        layout = self.layout
        return tuple(one for one in range(layout.world_size) if layout.host(one) == layout.host(self.rank))

    def is_late(self, cause: Cause, rank: int, step: int) -> bool:
        """Whether this cause holds up the rank in a step."""
        heated = self.extent is not Extent.STEPS or 2 * step >= self.knobs.step_count
        return self.cause is cause and rank in self.late_ranks and heated

    def layers_of(self, stage: int) -> int:
        """Layers of a stage: the stage before the late one, or behind the first, gives what that has more."""
        count = self.knobs.layer_count
        if self.cause is not Cause.PIPELINE_IMBALANCE or self.stage is None:
            return count
        giver = self.stage - 1 if self.stage else 1
        return count + round(self.strength) * ((stage == self.stage) - (stage == giver))

    def knobs_of(self, rank: int) -> Knobs:
        """The knobs of one rank, whose small draws are its own."""
        return replace(
            self.knobs,
            seed=self.seed * 10_000 + rank,
            layer_count=self.layers_of(self.layout.stage(rank)),
            tensor_parallel_us=self.knobs.tensor_parallel_us if self.layout.tensor > 1 else 0.0,
            pipeline_us=0.0,
            context_parallel_us=0.0,
            peer_late_us=0.0,
        )
