"""A drawn world: sizes of a run, its speeds, who is in which group. Times in us, rates in bytes per us."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from random import Random
from typing import Final

MIB: Final = 1 << 20
_WORLDS: Final = (
    # tensor, context, expert, data, pipeline, ranks a node
    (1, 1, 4, 8, 1, 4),
    (1, 1, 4, 8, 1, 8),
    (1, 1, 8, 8, 1, 4),
    (2, 1, 4, 4, 1, 4),
    (2, 1, 4, 4, 1, 8),
    (1, 2, 4, 4, 1, 4),
    (1, 1, 8, 16, 1, 4),
    (1, 1, 2, 4, 2, 4),
    (1, 1, 2, 2, 4, 4),
    (2, 1, 2, 2, 2, 4),
    (1, 1, 4, 4, 4, 8),
)


class Group(Enum):
    """Communicators, by the stream that each has on every rank."""

    EXPERT = 20
    DATA = 24
    EXPERT_DATA = 27
    WORLD = 28
    TENSOR = 31
    CONTEXT = 35
    PIPELINE = 39


@dataclass(frozen=True)
class Layout:
    """Ranks count tensor, context, data, pipeline, as Megatron's do; expert groups lie inside a stage."""

    tensor: int
    context: int
    expert: int
    data: int
    pipeline: int
    per_node: int

    @property
    def stage_size(self) -> int:
        return self.tensor * self.context * self.data

    @property
    def size(self) -> int:
        return self.stage_size * self.pipeline

    def node(self, rank: int) -> int:
        return rank // self.per_node

    def stage(self, rank: int) -> int:
        return rank // self.stage_size

    @cached_property
    def _groups(self) -> dict[tuple[Group, int], tuple[int, ...]]:
        """Groups by what their ranks have in common."""
        keys: dict[Group, Callable[[int], object]] = {
            Group.WORLD: lambda rank: 0,
            Group.TENSOR: lambda rank: rank // self.tensor,
            Group.CONTEXT: lambda rank: (rank % self.tensor, rank // (self.tensor * self.context)),
            Group.DATA: lambda rank: (rank % self.tensor, self.stage(rank)),
            Group.EXPERT: lambda rank: rank // self.expert,
            Group.EXPERT_DATA: lambda rank: (rank % self.expert, self.stage(rank)),
            Group.PIPELINE: lambda rank: rank % self.stage_size,
        }
        found = {}
        for group, key in keys.items():
            for rank in range(self.size):
                alike = tuple(other for other in range(self.size) if key(other) == key(rank))
                found[group, rank] = alike
        return found

    def group(self, group: Group, rank: int) -> tuple[int, ...]:
        """The ranks of one's group, itself among them."""
        return self._groups[group, rank]


@dataclass(frozen=True)
class World:
    """Everything drawn of a run but its handicap. `steps` are recorded, and one before them runs as well."""

    seed: int
    layout: Layout
    layers: int
    microbatches: int
    steps: int
    dispatcher: str
    gemm_us: float
    head: float
    python_us: float
    python_sigma: float
    call_us: float
    kernel_sigma: float
    rank_sigma: float
    routing_sigma: float
    tokens_mib: float
    gradients_mib: float
    stretch: float
    overlap_reduce: bool
    overlap_gather: bool
    end_reads: bool
    loader_us: float
    pause_p: float
    pause_us: float
    frees: bool
    nvlink: float = 280e3
    nic: float = 45e3

    def random(self, *place: object) -> Random:
        """Draws of one place of the run: the same whatever else happens."""
        return Random(f"third {self.seed}/{place}")


DISPATCHERS: Final = ("alltoall", "deepep", "hybridep")


def draw_world(seed: int, least_stages: int = 1, least_nodes: int = 1) -> World:
    """The world of a seed, with so many stages and nodes at least."""
    draw = Random(f"third world {seed}")
    fitting = [
        one
        for one in (Layout(*sizes) for sizes in _WORLDS)
        if one.pipeline >= least_stages and one.size // one.per_node >= least_nodes
    ]
    layout = draw.choice(fitting)
    return World(
        seed=seed,
        layout=layout,
        layers=draw.choice((1, 2)) if layout.pipeline > 2 else draw.choice((2, 3)),
        microbatches=max(draw.choice((2, 2, 3)), layout.pipeline),
        steps=draw.choice((3, 4, 5)),
        dispatcher=draw.choice(DISPATCHERS),
        gemm_us=35 * 4.4 ** draw.random(),
        head=draw.uniform(0.1, 2.0) / layout.pipeline,
        python_us=draw.uniform(1.8, 4.0),
        python_sigma=draw.uniform(0.3, 0.7),
        call_us=draw.uniform(2.5, 4.5),
        kernel_sigma=draw.uniform(0.005, 0.03),
        rank_sigma=draw.uniform(0.002, 0.01),
        routing_sigma=draw.uniform(0.01, 0.06),
        tokens_mib=draw.uniform(6, 24),
        gradients_mib=draw.uniform(45, 135),
        stretch=draw.uniform(0.0, 0.11),
        overlap_reduce=draw.random() < 0.6,
        overlap_gather=draw.random() < 0.5,
        end_reads=draw.random() < 0.7,
        loader_us=draw.uniform(240, 800),
        pause_p=draw.choice((0.0, 0.02)),
        pause_us=draw.uniform(500, 1900),
        frees=draw.random() < 0.15,
    )
