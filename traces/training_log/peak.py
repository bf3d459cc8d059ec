"""The peak of memory over ranks, and what was reserved without being allocated, as a log reports them."""

from dataclasses import dataclass

from traces.training_log.log import OutOfMemory, TrainingLog


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The largest that any rank reports, in bytes; a figure that none reports is None.

    `rank`: of the largest allocation. `ranks_count`: ranks that report, often one of each data-parallel
    group only.
    """

    allocated_bytes: int | None
    reserved_bytes: int | None
    rank: int | None
    ranks_count: int


@dataclass(frozen=True, slots=True)
class Unallocated:
    """Memory that PyTorch held without using it: what fragments do not fit, or what a peak left behind."""

    line: int
    rank: int | None
    reserved_bytes: int
    allocated_bytes: int

    @property
    def unallocated_bytes(self) -> int:
        """Reserved and not allocated."""
        return self.reserved_bytes - self.allocated_bytes

    @property
    def unallocated_frac(self) -> float:
        """As part of what is reserved."""
        return self.unallocated_bytes / self.reserved_bytes


def peak_memory(log: TrainingLog) -> PeakMemory | None:
    """The peak over all ranks that report; None where none does."""
    if not log.memory:
        return None
    allocated = [
        (one.peak_allocated_bytes, one.rank) for one in log.memory if one.peak_allocated_bytes is not None
    ]
    reserved = [one.peak_reserved_bytes for one in log.memory if one.peak_reserved_bytes is not None]
    largest = max(allocated, key=lambda one: one[0], default=(None, None))
    return PeakMemory(
        allocated_bytes=largest[0],
        reserved_bytes=max(reserved, default=None),
        rank=largest[1],
        ranks_count=len({one.rank for one in log.memory}),
    )


def most_unallocated(log: TrainingLog) -> Unallocated | None:
    """The report or error with the largest part of its reserved memory not allocated; None without one."""
    found = [
        Unallocated(one.line, one.rank, one.peak_reserved_bytes, one.peak_allocated_bytes)
        for one in log.memory
        if one.peak_reserved_bytes and one.peak_allocated_bytes is not None
    ]
    found += [
        Unallocated(one.line, one.rank, one.reserved_bytes, one.allocated_bytes)
        for one in log.out_of_memory
        if one.reserved_bytes and one.allocated_bytes is not None
    ]
    return max(found, key=lambda one: one.unallocated_frac, default=None)


def pieces_suffice(log: TrainingLog) -> bool | None:
    """Whether what is reserved and not allocated, and free, could hold what each error asked for.

    None where no error has the numbers.
    """
    errors = log.out_of_memory
    held = [one.requested_bytes <= room for one in errors if one.requested_bytes and (room := _room(one))]
    return all(held) if held else None


def _room(one: OutOfMemory) -> int | None:
    """All that PyTorch could allocate at that moment; what lies outside PyTorch is not its own."""
    allocated, reserved, free = one.allocated_bytes, one.reserved_bytes, one.free_bytes
    if allocated is None:
        return None
    if reserved is not None and free is not None:
        return reserved - allocated + free
    return None if one.capacity_bytes is None else one.capacity_bytes - allocated
