"""Where the time of a window went: its buckets, and why no compute ran."""

from collections.abc import Mapping

from traces.missing import OrMissing
from traces.sections.section import Frac, Ns, Section
from traces.texts import Key


class Budget(Section):
    """Every nanosecond of the window in one bucket; the buckets add up to it."""

    window: Ns
    compute: Ns
    exposed_comm: OrMissing[Ns]
    exposed_copy: Ns
    idle: Ns


class BudgetShares(Section):
    """The buckets as parts of the window."""

    compute: Frac
    exposed_comm: OrMissing[Frac]
    exposed_copy: Frac
    idle: Frac


class Latency(Section):
    """Short delays that every launch has."""

    arrival: Ns
    kernel_gap: Ns


class Absent(Section):
    """Why no compute ran; the reasons add up to window - compute."""

    launch_starved: Mapping[Key, Ns]
    blocking: Mapping[Key, Ns]
    launch_latency: Latency
    graph_opaque: Ns
    dependency_stalled: Ns
    trailing: Ns


class DecidedBy(Section):
    """What the reasons of `Absent` rest on, as parts of it."""

    recorded: Frac
    inferred: Frac
    none: Frac
