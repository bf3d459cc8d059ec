"""A result in short, for programs: the verdict, what walls cost, the first steps, what the recording lacks.

Its keys mean what they mean in the whole document. What is null there is null here; the whole has the reason.
"""

from typing import Annotated, Literal

from msgspec import Meta

from heuristics.result.judged import Level, Outcome
from heuristics.result.tool import SchemaVersion, Tool
from traces.sections.section import Frac, Ns, Section
from traces.sections.tables import WallId


class Fault(Section, frozen=True):
    """What is wrong with the recording, or cannot be judged by it; `cure` is empty where there is none."""

    text: str
    cure: str


class BriefVerdict(Section, frozen=True):
    """The one wall, or none. `because`: the reason why it is not surer, else what it rests on."""

    wall: WallId | None
    kind: str | None
    confidence: Level | None
    because: str


class BriefWall(Section, frozen=True):
    """One wall: what it costs at most, as in the whole result."""

    id: WallId
    outcome: Outcome
    cost_ns: Ns | None
    cost_frac: Frac | None
    at_most_frac: Frac | None


class BriefArm(Section, frozen=True):
    """One of the changes to measure against each other."""

    name: str
    knobs: tuple[str, ...]


class BriefFix(Section, frozen=True):
    """One step to take: a fix, or a correction of the configuration (`CFG-...`).

    `knobs`: its lines for the framework in use, with the environment; empty where it has `arms`, is done by
    hand, or its lines are too long for a short result.
    """

    id: str
    title: str
    gain_frac: tuple[float | None, float | None] | None
    knobs: tuple[str, ...]
    arms: tuple[BriefArm, ...]


class Brief(Section, frozen=True, kw_only=True):
    """A short result of one run, version 1.x: keys may be added, none may change. Below 4 kB.

    `fixes`: the first three steps of the plan at most; `faults`: the gravest, four at most.
    """

    schema_version: SchemaVersion
    kind: Literal["brief"]
    tool: Tool
    redacted: bool
    traces: tuple[str, ...]
    verdict: BriefVerdict
    walls: tuple[BriefWall, ...]
    fixes: Annotated[tuple[BriefFix, ...], Meta(max_length=3)]
    faults: Annotated[tuple[Fault, ...], Meta(max_length=4)]
