"""Which ranks share what: groups of ranks as Megatron-Core makes them, and their hosts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Group(Enum):
    """A kind of process group; the values are the descriptions that Megatron-Core gives them."""

    TENSOR = "TENSOR_MODEL_PARALLEL_GROUP"
    EXPERT = "EXPERT_MODEL_PARALLEL_GROUP"
    DATA = "DATA_PARALLEL_GROUP_WITH_CP"
    EXPERT_DATA = "EXPERT_DATA_PARALLEL_GROUP"
    PIPELINE = "PIPELINE_MODEL_PARALLEL_GROUP"
    WORLD = "default_pg"


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the groups. Ranks count tensor, then data, then pipeline; experts are not cut by tensor."""

    tensor: int = 1
    expert: int = 8
    pipeline: int = 1
    data: int = 8
    ranks_per_host: int = 8

    def __post_init__(self) -> None:
        if self.stage_size % self.expert:
            raise ValueError(
                f"a stage of {self.stage_size} ranks is no multiple of {self.expert} experts' ranks"
            )

    @property
    def stage_size(self) -> int:
        """Ranks of one pipeline stage."""
        return self.tensor * self.data

    @property
    def world_size(self) -> int:
        """All ranks."""
        return self.stage_size * self.pipeline

    def stage(self, rank: int) -> int:
        """The pipeline stage of a rank."""
        return rank // self.stage_size

    def host(self, rank: int) -> int:
        """The host of a rank."""
        return rank // self.ranks_per_host

    def local(self, rank: int) -> int:
        """The CUDA device of a rank on its host."""
        return rank % self.ranks_per_host

    def ranks_of_stage(self, stage: int) -> tuple[int, ...]:
        """The ranks of a stage."""
        return tuple(range(stage * self.stage_size, (stage + 1) * self.stage_size))

    def group(self, kind: Group, rank: int) -> tuple[int, ...]:
        """The group of a kind that a rank is in, rising."""
        if kind is Group.WORLD:
            return tuple(range(self.world_size))
        if kind is Group.PIPELINE:
            return tuple(range(rank % self.stage_size, self.world_size, self.stage_size))
        stage = self.ranks_of_stage(self.stage(rank))
        within = rank - stage[0]
        if kind is Group.DATA:
            return stage[within % self.tensor :: self.tensor]
        if kind is Group.EXPERT_DATA:
            return stage[within % self.expert :: self.expert]
        size = self.tensor if kind is Group.TENSOR else self.expert
        return stage[within - within % size :][:size]
