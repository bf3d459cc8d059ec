"""What two runs are compared by, and one step as it ran: `ledger`, `kernel_table`, `timeline`,
`sequence`.
"""

from typing import Annotated, Literal

from msgspec import Meta

from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Frac, Ns, Section
from traces.texts import Key, Keys, Recorded

Group = Literal["budget", "absent", "moe"]
WallId = Literal["memory", "communication", "host_overhead", "compute"]
HostRows = Literal["calls", "ranges", "functions"]
NameIndex = Annotated[int, Meta(ge=-1)]


class LedgerRow(Section):
    """A row of the ledger; `per_step_ns` has an entry per used step, one where there are no
    steps.
    """

    row: Key
    group: Group
    wall: WallId | None
    count: Count
    work_ns: Ns
    per_step_ns: tuple[Ns, ...]


class Kernel(Section):
    """Kernels of one name, grid and key; `key` as in the ledger but for `comm.KIND`. `block` is
    unknown where they have several as well.
    """

    name: Recorded
    grid: OrMissing[tuple[Count, Count, Count]]
    key: Key
    count: Count
    work_ns: Ns
    std_ns: Ns
    block: OrMissing[tuple[Count, Count, Count]] = None


class KernelsLeftOut(Section):
    """What is beyond the rows of the table."""

    rows: Count
    count: Count
    work_ns: Ns


class KernelTable(Section):
    """Kernels by name and grid, those with the most work first."""

    rows: tuple[Kernel, ...]
    left_out: KernelsLeftOut


class Lane(Section):
    """The activities of one stream as columns of one length; `key` and `name` point into the
    timeline's.
    """

    stream: int
    at_ns: tuple[Ns, ...]
    length_ns: tuple[Ns, ...]
    key: tuple[Count, ...]
    name: tuple[NameIndex, ...]
    launch_ns: tuple[OrMissing[int], ...] = ()
    """When the launch of each began, from the timeline's `start_ns` on, below zero where it was
    before."""


class HostLane(Section):
    """CUDA calls, NVTX ranges or functions of one launching thread, as columns of one length."""

    thread: Count
    kind: HostRows
    depth: Count
    at_ns: tuple[Ns, ...]
    length_ns: tuple[Ns, ...]
    name: tuple[NameIndex, ...]


class ReasonLane(Section):
    """Why no compute ran, as columns of one length; `reason` points into `reasons`."""

    at_ns: tuple[Ns, ...]
    length_ns: tuple[Ns, ...]
    reason: tuple[Count, ...]
    reasons: Keys
    left_out: Count = 0
    """Shorter stretches that are not among them."""


class Timeline(Section):
    """One step by stream, cut at its borders; times in `at_ns` are from `start_ns` on.

    `left_out` counts activities, `host_left_out` calls and ranges that are not in the columns. In
    `other_steps` of a rank, `keys` and `names` are empty: columns point to those of its `timeline`.
    """

    step: OrMissing[Count]
    start_ns: int
    end_ns: int
    left_out: Count
    keys: Keys
    names: tuple[Recorded, ...]
    lanes: tuple[Lane, ...]
    reasons: OrMissing[ReasonLane]
    host: tuple[HostLane, ...] = ()
    host_left_out: Count = 0


class MemoryCurve(Section):
    """Memory in use over the windows, as columns of one length: the most of each stretch."""

    start_ns: int
    at_ns: tuple[Ns, ...]
    used_bytes: tuple[Bytes, ...]


Phase = Literal["forward", "backward", "optimizer"]


class Kind(Section):
    """Activities of a sequence that are alike: kernels of one name, or copies and whole replays of
    one key.

    `phase` by its name, or by the thread that launched it; None where neither says. `size_bytes`:
    of copies.
    """

    name: Recorded | None
    key: Key
    phase: Phase | None
    size_bytes: OrMissing[Bytes] | None


class Loops(Section):
    """Runs that are repeated, as columns of one length, outer loops before those within them.

    The `run_count` runs from `first_run` on stand `times` times behind each other.
    """

    first_run: tuple[Count, ...]
    run_count: tuple[Count, ...]
    times: tuple[Count, ...]


class Sequence(Section):
    """The work of one step in the order of its launches, as columns of one length; `of` points into
    `kinds`.

    `run_length`: how many alike ones follow each other, each time; `work_ns`: of all times
    together, as long as such activities are in the mean step.
    """

    step: OrMissing[Count]
    kinds: tuple[Kind, ...]
    of: tuple[Count, ...]
    run_length: tuple[Count, ...]
    work_ns: tuple[Ns, ...]
    loops: Loops


class UnknownKernel(Section):
    """One kernel that no rule names. `finding`: large enough to be one.

    `probably_communication`: it has a stream of its own, waits for compute and is waited for, with
    nothing beside it.
    """

    name: Recorded
    frac: Frac
    busy_ns: Ns
    count: Count
    mean_ns: Ns
    grid: OrMissing[tuple[Count, Count, Count]]
    per_step_ns: OrMissing[Ns]
    finding: bool
    probably_communication: bool = False
