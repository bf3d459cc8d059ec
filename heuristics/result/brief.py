"""A result in short, for programs: the verdict, what walls cost, the first steps, what the
recording lacks.

Its keys mean what they mean in the whole document. What is null there is null here; the whole has
the reason.
"""

from typing import Annotated, Literal

from msgspec import Meta

from heuristics.result.judged import Level, Outcome
from heuristics.result.tool import SchemaVersion, Tool
from traces.sections.cause import Cause
from traces.sections.hang import HangKind
from traces.sections.section import Count, Frac, Ns, Section
from traces.sections.tables import WallId
from traces.texts import Texts


class Fault(Section):
    """What is wrong with the recording, or cannot be judged by it; `cure` is empty where there is
    none.
    """

    text: str
    cure: str


class BriefVerdict(Section):
    """The one wall, or none. `because`: the reason why it is not surer, else what it rests on."""

    wall: WallId | None
    kind: str | None
    confidence: Level | None
    because: str


class BriefWall(Section):
    """One wall: what it costs at most, as in the whole result."""

    id: WallId
    outcome: Outcome
    cost_ns: Ns | None
    cost_frac: Frac | None
    at_most_frac: Frac | None


class BriefArm(Section):
    """One of the changes to measure against each other."""

    name: str
    knobs: Texts


class BriefFix(Section):
    """One step to take: a fix, or a correction of the configuration (`CFG-...`).

    `knobs`: its lines for the framework in use, with the environment; empty where it has `arms`, is
    done by hand, or its lines are too long for a short result.
    """

    id: str
    title: str
    gain_frac: tuple[float | None, float | None] | None
    knobs: Texts
    arms: tuple[BriefArm, ...]


class Brief(Section, kw_only=True):
    """A short result of one run, version 1.x: keys may be added, none may change. Below 4 kB.

    `fixes`: the first three steps of the plan at most; `faults`: the gravest, four at most.
    """

    schema_version: SchemaVersion
    kind: Literal["brief"]
    tool: Tool
    redacted: bool
    traces: Texts
    verdict: BriefVerdict
    walls: tuple[BriefWall, ...]
    fixes: Annotated[tuple[BriefFix, ...], Meta(max_length=3)]
    faults: Annotated[tuple[Fault, ...], Meta(max_length=4)]


class BriefLate(Section):
    """Who makes the others wait. `ranks`: their numbers where recorded, the first eight; `count`:
    of all.
    """

    cause: Cause
    host: str | None
    ranks: Annotated[tuple[Count, ...], Meta(max_length=8)]
    count: Count
    cost_ns: Ns
    wait_ns: Ns
    saved_frac: Frac | None
    repair: str


class BriefHang(Section):
    """Where the run hangs. `ranks_missing`: the first eight."""

    kind: HangKind
    group: str
    operation: str
    sequence: Count | None
    ranks_missing: Annotated[tuple[Count, ...], Meta(max_length=8)]
    text: str


class BriefRun(Section, kw_only=True):
    """A short result of ranks put together, version 1.x: keys may be added, none may change. Below
    4 kB.

    `late`: null where nobody can tell, with the reason in `faults`, which are four at most.
    """

    schema_version: SchemaVersion
    kind: Literal["brief_run"]
    tool: Tool
    redacted: bool
    ranks_seen: Count
    world_size: Count | None
    late: BriefLate | None
    hang: BriefHang | None
    faults: Annotated[tuple[Fault, ...], Meta(max_length=4)]
