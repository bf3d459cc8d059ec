"""Of a comparison: several ranks of both runs, those that changed most, and who is late."""

from enum import StrEnum

from traces.missing import OrMissing
from traces.sections.cause import Cause
from traces.sections.section import Count, Frac, Section
from traces.texts import Said


class LateState(StrEnum):
    """The late rank before and after."""

    APPEARED = "appeared"
    GONE = "gone"
    SAME = "same"
    """The same rank by the same cause."""
    OTHER = "other"
    """Another rank, or another cause."""
    NONE = "none"
    """No rank is late on either side."""
    UNKNOWN = "unknown"
    """On one side nobody can tell."""


class Place(Section):
    """Where a rank stands in its own result."""

    index: Count
    device: int
    rank: OrMissing[Count]


class ComparedGroup(Section):
    """Ranks that do the same work on both sides, by the numbers of their groups, and their median
    step.
    """

    base_group: Count
    new_group: Count
    base_count: Count
    new_count: Count
    step_delta_ns: OrMissing[int]


class ComparedRank(Section):
    """One rank of both sides, by its places in either `ranks[]`; times are of a mean step."""

    base_index: Count
    new_index: Count
    rank: Count | None
    by: Said
    step_delta_ns: OrMissing[int]
    waited_delta_ns: int
    caused_delta_ns: OrMissing[int]


class ComparedLate(Section):
    """Who is late on either side, null where nobody can tell or it is not one rank."""

    state: LateState
    base_cause: Cause | None
    new_cause: Cause | None
    base: Place | None
    new: Place | None


class ComparedRun(Section):
    """Several ranks of both runs. `ranks`: matched ones, first those that others wait for more, or
    less.
    """

    base_ranks: Count
    new_ranks: Count
    base_waiting_frac: OrMissing[Frac]
    new_waiting_frac: OrMissing[Frac]
    groups: tuple[ComparedGroup, ...]
    ranks: tuple[ComparedRank, ...]
    late: ComparedLate
