"""One side of a comparison: which run and rank, its steps, what they are made of, its own verdict."""

from heuristics.result.judged import Level
from traces.missing import OrMissing
from traces.sections.rank import StepSource
from traces.sections.section import Count, Ns, Section
from traces.sections.tables import Timeline, WallId


class SideSteps(Section, frozen=True):
    """Lengths of the used steps; `dropped`: why the others are not."""

    source: StepSource
    count: Count
    mean_ns: OrMissing[Ns]
    median_ns: OrMissing[Ns]
    min_ns: OrMissing[Ns]
    max_ns: OrMissing[Ns]
    dropped: tuple[str, ...]


class SideLog(Section, frozen=True):
    """Lengths of the steady iterations of a training log."""

    name: str
    count: Count
    mean_ns: OrMissing[Ns]
    median_ns: OrMissing[Ns]


class BudgetRow(Section, frozen=True):
    """A part of the mean step."""

    row: str
    mean_ns: int


class Side(Section, frozen=True):
    """A run and the rank of it that is compared.

    `step_ns`: the mean of its used steps, or the window without steps; `budget_rows` add up to it.
    `walls_told`: whether any wall could be judged. What its own result could not tell, it tells with its own
    reason.
    """

    name: str
    traces: tuple[str, ...]
    gpu: OrMissing[str]
    rank: OrMissing[Count]
    device: int
    process: OrMissing[Count]
    tool_version: str
    guidance: str | None
    step_ns: Ns
    steps: SideSteps
    log: OrMissing[SideLog]
    wall: OrMissing[WallId]
    walls_told: bool
    bound: OrMissing[WallId]
    kind: OrMissing[str]
    confidence: OrMissing[Level]
    budget_rows: tuple[BudgetRow, ...]
    timeline: Timeline
