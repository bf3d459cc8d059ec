"""The whole of one comparison: differences are new less base, positive is slower; integers are in
ns.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from heuristics.result.compared_ranks import ComparedRun, Place
from heuristics.result.compared_runs import BetweenRuns, Whole
from heuristics.result.exits import Exit
from heuristics.result.expected import Expected
from heuristics.result.gate import Gate
from heuristics.result.judged import Level
from heuristics.result.tool import OfKind
from traces.missing import OrMissing, known
from traces.sections.section import Count, Frac, Ns, Section
from traces.sections.steps import StepSource, Unit
from traces.sections.tables import Phase, Timeline, WallId
from traces.texts import FileName, Given, GpuName, Key, Keys, Recorded, Release, Said, Sentences


class SideSteps(Section):
    """Lengths of the used steps; `dropped`: why the others are not."""

    source: StepSource
    count: Count
    mean_ns: OrMissing[Ns]
    median_ns: OrMissing[Ns]
    min_ns: OrMissing[Ns]
    max_ns: OrMissing[Ns]
    dropped: Sentences
    unit: Unit = "step"


class SideLog(Section):
    """Lengths of the steady iterations of a training log."""

    name: FileName
    count: Count
    mean_ns: OrMissing[Ns]
    median_ns: OrMissing[Ns]


class BudgetRow(Section):
    """A part of the mean step."""

    row: Key
    mean_ns: int


class Side(Section):
    """A run and the rank of it that is compared.

    `step_ns`: the mean of its used steps, or the window without steps; `budget_rows` add up to it.
    `walls_told`: whether any wall could be judged. What its own result could not tell, it tells
    with its own reason.
    """

    name: FileName
    traces: tuple[FileName, ...]
    gpu: OrMissing[GpuName]
    rank: OrMissing[Count]
    device: int
    process: OrMissing[Count]
    tool_version: Release
    guidance: Key | None
    step_ns: Ns
    steps: SideSteps
    log: OrMissing[SideLog]
    wall: OrMissing[WallId]
    walls_told: bool
    bound: OrMissing[WallId]
    kind: OrMissing[Key]
    confidence: OrMissing[Level]
    budget_rows: tuple[BudgetRow, ...]
    timeline: Timeline


ComparisonVerdict = Literal["regression", "improvement", "no_change", "undecided", "not_comparable"]
SizeSource = Literal["log", "trace"]
State = Literal["yes", "with_differences", "no"]
KernelChange = Literal["slower", "faster", "more", "fewer", "new", "gone", "grid"]
Source = Literal["configuration", "log", "given", "trace"]
Number = Annotated[float, Meta(ge=0)]
Grid = tuple[Count, Count, Count]
Ends = tuple[int, int]
"""Lower and upper end of an interval."""


class Difference(Section):
    """One reason why two runs are not alike; `source`: of the rule, `ours` where nobody published
    it.
    """

    what: Said
    base: Said
    new: Said
    state: State
    because: Said
    source: Said = "ours"


class Comparable(Section):
    """`state` is the worst of the differences, `yes` without any. Those that forbid it stand
    first.
    """

    state: State
    differences: tuple[Difference, ...]


class ComparedSize(Section):
    """How much slower, by the logs where both tell enough, else by the steps. `level_frac`: how
    sure.

    `base_mean_ns`: with several recordings of base the mean of their means. `shows_ns`: about the
    smallest difference that could have been shown. `p_frac`: of the permutation test, null where
    none was made.
    """

    source: SizeSource
    base_count: Count
    new_count: Count
    base_mean_ns: Ns
    new_mean_ns: Ns
    base_median_ns: Ns
    new_median_ns: Ns
    delta_ns: int
    delta_frac: float
    low_ns: OrMissing[int]
    high_ns: OrMissing[int]
    low_frac: OrMissing[float]
    high_frac: OrMissing[float]
    level_frac: OrMissing[Frac]
    method: OrMissing[Said]
    shows_ns: OrMissing[Ns] | UnsetType = UNSET
    shows_frac: OrMissing[Number] | UnsetType = UNSET
    p_frac: Frac | None = None
    between_runs: BetweenRuns | None = None

    @property
    def ends_ns(self) -> Ends | None:
        """Both ends of the interval of `delta_ns`; None without one."""
        low, high = known(self.low_ns), known(self.high_ns)
        if low is None or high is None:
            return None
        return low, high


class ComparedRow(Section):
    """One row of both sides; `count_ns`, `duration_ns` and `overlap_ns` add up to `delta_ns`.

    `row` is as in the ledger, or `noise`, which has no interval and names the rows in it in
    `parts`. `share_frac`: of all that its list moved, up and down, with the row's sign; None where
    nothing moved.
    """

    row: Key
    wall: WallId | None
    delta_ns: int
    count_ns: OrMissing[int]
    duration_ns: OrMissing[int]
    overlap_ns: OrMissing[int]
    base_ns: int
    new_ns: int
    base_count: Number
    new_count: Number
    parts: Keys
    ci95_ns: OrMissing[Ends]
    share_frac: Annotated[float, Meta(ge=-1, le=1)] | None


class LayerDelta(Section):
    """One MoE layer, all modules and passes, wall time per step; `module`: the one that moved
    most.
    """

    layer: Count
    delta_ns: int
    base_ns: Ns
    new_ns: Ns
    module: Key
    module_delta_ns: int


class KernelDelta(Section):
    """Kernels of one name (and grid), per step: work, not wall time. `each_ns`: mean duration of
    one.

    `change`: `slower` and `faster` where the mean duration moved, `more` and `fewer` where the
    count did, of both what moves more work; `grid` where a name has another grid on each side (both
    are told; None where its grids change from step to step). `new` and `gone`: on one side only, or
    below the end of the list of the other. `key` ends with its first word (`comm`) where the sides
    resolve one kernel differently. `base_block`, `new_block`: None where it is not one.
    """

    name: Recorded
    key: Key
    change: KernelChange
    delta_ns: int
    base_grid: Grid | None
    new_grid: Grid | None
    base_count: Number
    new_count: Number
    base_each_ns: Ns | None
    new_each_ns: Ns | None
    base_block: Grid | None = None
    new_block: Grid | None = None


class Change(Section):
    """One thing that differs, whatever shows it.

    `what` is a knob, `version.nccl`, `gpu`, `detected.dispatcher` and the like. A side that says
    nothing of it, or null, has None; a withheld text differs without being shown.
    """

    what: Key
    base: Given
    new: Given
    source: Source
    withheld: bool


class ComparedChange(Change):
    """One thing that differs in what two recordings hold, and the rows it can explain."""

    said_base: bool
    said_new: bool
    can_explain: Keys


class PossibleCause(Section):
    """One cause of the difference, whatever shows it. `next`: what to do to be sure.

    `because`: one sentence per piece of evidence.
    """

    id: Key
    title: Said
    confidence: Level
    because: Sentences
    next: Said


class Suspect(PossibleCause):
    """A cause that two recordings show, by the `rows` it can move and that moved its way.

    `id` names the rule (`graphs_stopped`, `nccl_host_cpu`), a knob
    (`knob.moe_token_dispatcher_type`), what else changed (`version.torch`) or, without a proven
    cause, the row (`row.compute.gemm`). `confidence`: high where it is said and the trace shows it,
    medium where one of the two, low where it is only consistent. `explains_ns`: the sum of its rows
    per step, or what was measured of the cause itself where that is less. `source`: where the rule
    comes from. `seen`: of `because` what is more than the figures of its rows.
    """

    rows: Keys
    explains_ns: int
    source: Said
    seen: Sentences = ()


PairedBy = Literal["rank", "group", "order", "chosen"]


class ComparedPair(Section):
    """Two ranks held against each other; the first pair is compared in full."""

    base: Place
    new: Place
    by: PairedBy
    step_delta_ns: OrMissing[int]


ExchangeChange = Literal["exchanged", "more", "fewer", "new", "gone"]


class Worked(Section):
    """Kernels of one name in a step, or copies by their key: how many, and their time, summed."""

    name: Recorded
    key: Key
    count: Number
    work_ns: Ns


class Exchange(Section):
    """Work that stands in the same places of both steps, over all layers. `key`: what most of it
    is.

    `base` and `new` list the kernels with the most work; the counts and times are of all.

    `change`: `exchanged` where a side does it by other kernels; `more` or `fewer` of the same;
    `new` and `gone` where one side alone has it. `phase` None where it is of several, or not known.
    """

    change: ExchangeChange
    key: Key
    phase: Phase | None
    base: tuple[Worked, ...]
    new: tuple[Worked, ...]
    base_count: Number
    new_count: Number
    base_ns: Ns
    new_ns: Ns
    delta_ns: int


class ExchangeSum(Section):
    """Activities of either side, and their time, summed."""

    base_count: Number
    new_count: Number
    base_ns: Ns
    new_ns: Ns


class Exchanges(Section):
    """The mean step of each side, aligned in the order of launches of a typical one: what one does
    by other kernels.

    `rows`, the largest difference first, `same` (the same kernels, as many, wherever they are) and
    `left_out` (the `left_out_rows` smallest) add up to the mean steps of both, or to their
    sequences where not all kernels are listed.
    """

    rows: tuple[Exchange, ...]
    same: ExchangeSum
    left_out_rows: Count
    left_out: ExchangeSum


_OPEN: Final[dict[ComparisonVerdict, Exit]] = {
    "undecided": Exit.UNDECIDED,
    "not_comparable": Exit.NOT_COMPARABLE,
}


def exit_of(verdict: ComparisonVerdict, gate: Gate | None) -> Exit:
    """The exit code: of a gate its answer alone, else whether there is a verdict."""
    if gate is not None:
        if gate.lets_pass:
            return Exit.DONE
        return Exit.NO
    return _OPEN.get(verdict, Exit.DONE)


class TwoRuns(OfKind, kw_only=True):
    """A comparison of two runs, whatever the evidence: recordings (`Compared`), or configurations
    and logs.

    `record`: what would decide, where it is undecided; `gate` is None where none was asked.
    """

    verdict: ComparisonVerdict
    because: Sentences
    record: Said
    comparable: Comparable
    base: Section
    new: Section
    size: OrMissing[ComparedSize]
    step_delta_ns: OrMissing[int]
    step_delta_frac: OrMissing[float]
    step_delta_ci95_ns: OrMissing[Ends]
    changed: tuple[Change, ...]
    gate: Gate | None


class Compared(TwoRuns, kw_only=True):
    """Two recordings compared, version 1.x of its JSON document: keys may be added, none may
    change.

    `attribution` adds up to `step_delta_ns`, its last row being `noise`, of which `scattered` are
    the rows that are much of the difference. `run` is there where both sides hold several ranks.
    """

    kind: Literal["comparison"]
    base: Side
    new: Side
    size: ComparedSize
    step_delta_ns: int
    attribution: tuple[ComparedRow, ...]
    reasons: tuple[ComparedRow, ...]
    modules: tuple[ComparedRow, ...]
    layers: tuple[LayerDelta, ...]
    kernels: tuple[KernelDelta, ...]
    changed: tuple[ComparedChange, ...]
    suspects: tuple[Suspect, ...]
    pairs: Annotated[tuple[ComparedPair, ...], Meta(min_length=1)]
    expected: tuple[Expected, ...] = ()
    run: ComparedRun | UnsetType = UNSET
    whole: OrMissing[Whole] | UnsetType = UNSET
    exchanged: OrMissing[Exchanges] | UnsetType = UNSET
    scattered: tuple[ComparedRow, ...] = ()
