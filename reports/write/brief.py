"""A result in short, for programs: below 4 kB whatever the run; long texts end in an ellipsis."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.brief import (
    Brief,
    BriefArm,
    BriefFix,
    BriefHang,
    BriefLate,
    BriefRun,
    BriefVerdict,
    BriefWall,
    Fault,
)
from heuristics.result.judged import Wall
from heuristics.result.result import Merged, Result
from heuristics.result.tool import SCHEMA_VERSION
from reports.content.analysis.hang import hang_words
from reports.content.analysis.plan import plan
from reports.content.blocks import Step
from reports.content.names import is_cure, name_of, plain
from reports.result.codec import lowered
from reports.result.json_text import render_json
from traces.limits import Limit
from traces.missing import Missing, known
from traces.sections.hang import Hang
from traces.sections.run import Run

SIZE: Final = Limit(4096, "bytes", "ours: a line of a log or a message of a chat takes it whole")
SENTENCE: Final = Limit(240, "bytes", "ours: the longest cure of ours fits but for one")
NAME: Final = Limit(64, "bytes", "ours: as for a sentence")
LINES: Final = Limit(320, "bytes", "ours: as for a sentence, of all lines of a step; flags are never cut")
STEPS: Final = 3
FAULTS: Final = 4
_NAMES: Final = 2
_AROUND: Final = len(render_json({"": ""}).encode())


def write_brief(result: Result) -> str:
    """The short document as JSON. Of what may be many, the last go where it would be too long."""
    for most in range(FAULTS, -1, -1):
        text = render_json(lowered(_brief(result, most)))
        if len(text.encode()) < SIZE.value:
            break
    return text


def _brief(result: Result, most: int) -> Brief:
    verdict = result.verdict
    why = (*verdict.confidence_because, *verdict.because)
    return Brief(
        schema_version=SCHEMA_VERSION,
        kind="brief",
        tool=result.tool,
        redacted=result.redacted,
        traces=tuple(_cut(one.name, NAME) for one in result.traces[:_NAMES]),
        verdict=BriefVerdict(
            known(verdict.wall), known(verdict.kind), known(verdict.confidence), _cut(" ".join(why[:1]))
        ),
        walls=tuple(_wall(one) for one in result.walls),
        fixes=tuple([_fix(one) for one in plan(result, None).steps if one.id][:STEPS]),
        faults=tuple(_faults(result))[:most],
    )


def _wall(wall: Wall) -> BriefWall:
    return BriefWall(
        wall.id, wall.outcome, known(wall.cost_ns), known(wall.cost_frac), known(wall.at_most_frac)
    )


def _fix(step: Step) -> BriefFix:
    in_use = step.in_use
    arms = [BriefArm(_cut(one.name, NAME), one.code.lines) for one in in_use if one.arm]
    lines = [line for one in in_use if not one.arm for line in one.code.lines]
    written = sum(map(_bytes, (*lines, *(line for arm in arms for line in arm.knobs))))
    if written > LINES.value:
        arms, lines = [], []
    gain = None if step.high is None else (step.low, step.high)
    return BriefFix(_cut(step.id, NAME), _cut(plain(step.title)), gain, tuple(lines), tuple(arms))


def _faults(result: Result) -> Iterator[Fault]:
    noted = (one for trace in result.traces for one in trace.capture.diagnostics)
    yield from (Fault(_cut(one), "") for one in (*result.warnings, *noted))
    for wall in result.walls:
        if wall.outcome == "unmeasurable":
            why = f": {wall.missing[0]}" if wall.missing else ""
            cure = wall.cure if is_cure(wall.cure) else ""
            yield Fault(_cut(f"{name_of(wall.id)} is not judged{why}"), _cut(cure))


_RANKS: Final = 8


def write_run_brief(merged: Merged) -> str:
    """The same of ranks put together."""
    for most in range(FAULTS, -1, -1):
        text = render_json(lowered(_brief_run(merged, most)))
        if len(text.encode()) < SIZE.value:
            break
    return text


def _brief_run(merged: Merged, most: int) -> BriefRun:
    run = merged.run
    unknown = [Fault(_cut(run.late.reason), _cut(run.late.cure))] if isinstance(run.late, Missing) else []
    wrong = (Fault(_cut(one), "") for one in (*(one.reason for one in run.problems), *merged.warnings))
    return BriefRun(
        schema_version=SCHEMA_VERSION,
        kind="brief_run",
        tool=merged.tool,
        redacted=merged.redacted,
        ranks_seen=run.ranks_seen,
        world_size=known(run.world_size),
        late=_late(run),
        hang=None if merged.hang is UNSET else _hang(merged.hang),
        faults=(*unknown, *wrong)[:most],
    )


def _late(run: Run) -> BriefLate | None:
    late, without = known(run.late), known(run.without)
    if late is None:
        return None
    numbers = [number for place in late.places if (number := known(run.ranks[place].rank)) is not None]
    return BriefLate(
        late.cause,
        late.host,
        tuple(numbers[:_RANKS]),
        len(late.places),
        late.cost_ns,
        late.wait_ns,
        without.saved_frac if without else None,
        _cut(late.repair),
    )


def _hang(hang: Hang) -> BriefHang:
    missing = known(hang.ranks_missing) or ()
    text = _cut(hang_words(hang))
    return BriefHang(hang.kind, hang.group, hang.operation, known(hang.sequence), missing[:_RANKS], text)


def _bytes(text: str) -> int:
    """How long a text is in JSON, without its quotes."""
    return len(render_json({"": text}).encode()) - _AROUND


def _cut(text: str, limit: Limit = SENTENCE) -> str:
    if _bytes(text) <= limit.value:
        return text
    text = text[: int(limit.value)]
    while _bytes(f"{text}…") > limit.value:
        text = text[:-1]
    return f"{text}…"
