"""A result in short, for programs: below 4 kB whatever the run; long texts end in an ellipsis."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

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
from heuristics.result.result import Merged, Result
from reports.content.analysis.hang import hang_words
from reports.content.analysis.plan import plan
from reports.content.blocks import Step
from reports.content.names import is_cure, name_of, plain
from reports.result.codec import lowered
from reports.result.json_text import render_json
from traces.limits import MESSAGE, Limit
from traces.missing import Missing, known
from traces.sections.hang import Hang
from traces.sections.run import Late, Run
from traces.sections.section import copied

SENTENCE: Final = Limit(240, "bytes", "ours: the longest cure of ours fits but for one")
NAME: Final = Limit(64, "bytes", "ours: as for a sentence")
LINES: Final = Limit(320, "bytes", "ours: as for a sentence, of all lines of a step; flags are never cut")
STEPS: Final = 3
FAULTS: Final = 4
_NAMES: Final = 2
_RANKS: Final = 8
_AROUND: Final = len(render_json({"": ""}).encode())


def write_brief(result: Result) -> str:
    """The short document as JSON."""
    verdict = result.verdict
    why = (*verdict.confidence_because, *verdict.because)
    brief = copied(
        Brief,
        result,
        kind="brief",
        traces=tuple(_cut(one.name, NAME) for one in result.traces[:_NAMES]),
        verdict=copied(BriefVerdict, verdict, because=_cut(" ".join(why[:1]))),
        walls=tuple(copied(BriefWall, one) for one in result.walls),
        fixes=tuple([_fix(one) for one in plan(result, None).steps if one.id][:STEPS]),
        faults=tuple(_faults(result))[:FAULTS],
    )
    return _short(brief)


def write_run_brief(merged: Merged) -> str:
    """The same of ranks put together."""
    late, hang, faults = merged.run.late, merged.hang, tuple(_faults_of_run(merged))
    brief = copied(
        BriefRun,
        merged.run,
        merged,
        kind="brief_run",
        late=None if isinstance(late, Missing) or late is None else _late(merged.run, late),
        hang=None if hang is UNSET else _hang(hang),
        faults=faults[:FAULTS],
    )
    return _short(brief)


def _short(brief: Brief | BriefRun) -> str:
    """The document as JSON. Of what may be many, the last go where it would be too long."""
    text = render_json(lowered(brief))
    if len(text.encode()) < MESSAGE.value or not brief.faults:
        return text
    return _short(replace(brief, faults=brief.faults[:-1]))


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


def _faults_of_run(merged: Merged) -> Iterator[Fault]:
    run = merged.run
    if isinstance(run.late, Missing):
        yield Fault(_cut(run.late.reason), _cut(run.late.cure))
    for one in (*(problem.reason for problem in run.problems), *merged.warnings):
        yield Fault(_cut(one), "")


def _late(run: Run, late: Late) -> BriefLate:
    without = known(run.without)
    numbers = [number for place in late.places if (number := known(run.ranks[place].rank)) is not None]
    return copied(
        BriefLate,
        late,
        ranks=tuple(numbers[:_RANKS]),
        count=len(late.places),
        saved_frac=without.saved_frac if without else None,
        repair=_cut(late.repair),
    )


def _hang(hang: Hang) -> BriefHang:
    missing = known(hang.ranks_missing) or ()
    return copied(BriefHang, hang, ranks_missing=missing[:_RANKS], text=_cut(hang_words(hang)))


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
