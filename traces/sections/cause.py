"""What makes a run wait, and what can be wrong with its recordings, in the words of its
document.
"""

from enum import StrEnum


class Cause(StrEnum):
    """Why ranks wait for each other."""

    SLOW_DEVICE = "slow_device"
    """One rank's kernels take longer than those of ranks like it."""
    SLOW_HOST = "slow_host"
    """One rank's GPU waits for its host, time and again, or for one that is slower in all it
    does."""
    SLOW_LINK = "slow_link"
    """One rank arrives with the others and moves its data longer."""
    ROUTING_IMBALANCE = "routing_imbalance"
    """Tokens are spread unevenly: always to one rank, or to another by layer and step."""
    ROTATING_JITTER = "rotating_jitter"
    """Ranks are late in single steps, now this one and now that, without uneven tokens."""
    DATA_LOADER = "data_loader"
    """One rank begins steps late: its host had no batch."""
    PIPELINE_IMBALANCE = "pipeline_imbalance"
    """One pipeline stage has more layers than the others."""
    NONE = "none"
    """No rank is late by more than ranks of a healthy run are."""


class HotRank(StrEnum):
    """Which rank has the most expert work of its group."""

    EVEN = "even"
    """None has more than balanced routing leaves."""
    SAME_RANK = "same_rank"
    """The same one in all layers: what lies on it is popular, or it is slow."""
    BY_LAYER = "by_layer"
    """Another one by layer, the same in every step."""
    BY_STEP = "by_step"
    """Another one from step to step."""


class Sure(StrEnum):
    """How sure a statement is."""

    HIGH = "high"
    """Of a dozen collectives or more, in several steps."""
    MEDIUM = "medium"
    """Of a dozen or more, in one step."""
    LOW = "low"
    """Of few, or paired by their order alone."""


class ClockSource(StrEnum):
    """By what the clocks of several recordings are put together."""

    COLLECTIVES = "collectives"
    """The ends of collectives that ranks took part in together."""
    SESSION_START = "session_start"
    """The time at which each recording says that it began: host clocks may differ by
    milliseconds."""


class ProblemKind(StrEnum):
    """What can be wrong with the recordings of a run."""

    MIXED_RUNS = "mixed_runs"
    """Recordings of another run than the others; they are left out."""
    DUPLICATE = "duplicate"
    """A recording that is there already, or another one of the same rank; it is left out."""
    TRUNCATED = "truncated"
    """A recording that ends, or begins, within what the others of its groups recorded."""
    MISSING_RANKS = "missing_ranks"
    """Ranks of the run that no recording is of."""
    MIXED_VERSIONS = "mixed_versions"
    """Recordings by several recorders, or several versions of one."""
    APART = "apart"
    """Ranks that took part in no collective with the others: nobody can put them on one clock."""
