"""One side of a comparison: which run and rank, its steps, what they are made of, its own verdict."""

from __future__ import annotations

from heuristics.result.judged import Level
from heuristics.result.rank import StepSource
from heuristics.result.tables import Timeline
from heuristics.result.told import Count, Ns, Section, Told
from heuristics.run.run import WallId


class SideSteps(Section, frozen=True):
    """Lengths of the used steps; `dropped`: why the others are not."""

    source: StepSource
    count: Count
    mean_ns: Told[Ns]
    median_ns: Told[Ns]
    min_ns: Told[Ns]
    max_ns: Told[Ns]
    dropped: tuple[str, ...]


class SideLog(Section, frozen=True):
    """Lengths of the steady iterations of a training log."""

    name: str
    count: Count
    mean_ns: Told[Ns]
    median_ns: Told[Ns]


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
    gpu: Told[str]
    rank: Told[Count]
    device: int
    process: Told[Count]
    tool_version: str
    guidance: str | None
    step_ns: Ns
    steps: SideSteps
    log: Told[SideLog]
    wall: Told[WallId]
    walls_told: bool
    bound: Told[WallId]
    kind: Told[str]
    confidence: Told[Level]
    budget_rows: tuple[BudgetRow, ...]
    timeline: Timeline
