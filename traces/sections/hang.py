"""What a second witness shows of a run: where it hangs, and the ranks that nobody profiled."""

from enum import StrEnum

from traces.missing import OrMissing
from traces.sections.section import Count, Frac, Ns, Section
from traces.texts import Key, Keys, Said


class HangKind(StrEnum):
    """How the ranks of a group differ in the first collective that they did not all enter alike."""

    MISSING_RANK = "missing_rank"
    """A rank never entered it."""
    OTHER_OPERATION = "other_operation"
    """A rank entered another operation in its place."""
    OTHER_SIZE = "other_size"
    """A rank entered it with another number or type of elements."""
    OTHER_ORDER = "other_order"
    """Ranks call the same collectives in different order, and wait for each other."""
    TRANSFER = "transfer"
    """All ranks entered it alike, and none finished it."""
    TIMEOUT = "timeout"
    """A rank gave up waiting in it; which rank it waited for is not known."""


class WitnessSource(StrEnum):
    """Where it was seen."""

    FLIGHT_RECORDER = "flight_recorder"
    """Dumps of PyTorch's Flight Recorder."""
    INSPECTOR = "nccl_inspector"
    """JSON of NCCL Inspector."""
    LOG = "log"
    """Lines of the training log."""


class RanksAt(Section):
    """Ranks in one collective. `elements`: what they gave, such as `4096 Float`; empty where
    unknown.
    """

    ranks: tuple[Count, ...]
    group: Said
    operation: Key
    sequence: OrMissing[Count]
    finished: bool
    elements: Said = ""


class Hang(Section):
    """The first collective that the ranks of a group did not all enter alike.

    `ranks_missing`: those that did not enter it, or entered something else; `ranks_entered`: those
    that wait in it; `ranks_silent`: of the group, without a dump. `elsewhere`: where the missing
    ranks are.
    """

    kind: HangKind
    source: WitnessSource
    group: Said
    operation: Key
    sequence: OrMissing[Count]
    ranks_missing: OrMissing[tuple[Count, ...]]
    ranks_entered: tuple[Count, ...]
    ranks_silent: tuple[Count, ...] = ()
    group_size: OrMissing[Count] = None
    settings: Keys = ()
    elements: Said = ""
    elsewhere: tuple[RanksAt, ...] = ()
    advice: Said = ""


class WitnessedRank(Section):
    """One rank. `waited_ns`: in its collectives, for the last rank to arrive; `caused_ns`: others,
    for it.
    """

    rank: Count
    profiled: bool
    collectives: Count
    last_sequence: OrMissing[Count]
    waited_ns: OrMissing[Ns]
    caused_ns: OrMissing[Ns]
    arrived_last: OrMissing[Count]


class Witness(Section):
    """What files beside the recordings hold. `compared`: collectives whose times several ranks
    give.
    """

    sources: tuple[WitnessSource, ...]
    files: Count
    ranks: tuple[WitnessedRank, ...]
    compared: Count
    latest_rank: OrMissing[Count]
    latest_frac: OrMissing[Frac]
    caused_frac: OrMissing[Frac]
