"""A result in short, for programs: below 4 kB whatever the run; long texts end in an ellipsis."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Final

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
from reports.content.analysis.late import numbers_of
from reports.content.analysis.plan import plan
from reports.content.analysis.unproven import unjudged
from reports.content.blocks import Step
from reports.content.names import is_cure, name_of, optional, plain, when
from reports.result.codec import lowered
from reports.result.json_text import render_json
from reports.rows import each
from traces.limits import MESSAGE, Limit
from traces.missing import Missing, known
from traces.sections.section import copied

SENTENCE: Final = Limit(240, "bytes", "ours: the longest cure of ours fits but for one")
NAME: Final = Limit(64, "bytes", "ours: as for a sentence")
LINES: Final = Limit(
    320, "bytes", "ours: as for a sentence, of all lines of a step; flags are never cut"
)
STEPS: Final = 3
FAULTS: Final = 4
_NAMES: Final = 2
_RANKS: Final = 8
_AROUND: Final = len(render_json({"": ""}).encode())


def write_brief(result: Result) -> str:
    """The short document as JSON."""
    verdict = result.verdict
    why = (*verdict.confidence_because, *verdict.because)
    steps = [step for step in plan(result, None).steps if step.id]
    brief = copied(
        Brief,
        result,
        kind="brief",
        traces=tuple(_cut(trace.name, NAME) for trace in result.traces[:_NAMES]),
        verdict=copied(BriefVerdict, verdict, because=_cut(" ".join(why[:1]))),
        walls=tuple(map(partial(copied, BriefWall), result.walls)),
        fixes=tuple(map(_fix, steps[:STEPS])),
        faults=tuple(islice(_faults(result), FAULTS)),
    )
    return _short(brief)


def write_run_brief(merged: Merged) -> str:
    """The same of ranks put together."""
    run, late, hang = merged.run, merged.run.late, merged.hang
    faults = [_fault(late.reason, late.cure)] if isinstance(late, Missing) else []
    faults += map(_fault, (*each(run.problems, "reason"), *merged.warnings))
    brief_late = brief_hang = None
    if late:
        without, numbers = known(run.without), numbers_of(run, late.places)
        brief_late = copied(
            BriefLate,
            late,
            ranks=tuple(numbers[:_RANKS]),
            count=len(late.places),
            saved_frac=without and without.saved_frac,
            repair=_cut(late.repair),
        )
    if hang:
        missing = hang.ranks_missing or ()
        brief_hang = copied(
            BriefHang, hang, ranks_missing=missing[:_RANKS], text=_cut(hang_words(hang))
        )
    return _short(
        copied(
            BriefRun,
            run,
            merged,
            kind="brief_run",
            late=brief_late,
            hang=brief_hang,
            faults=tuple(faults[:FAULTS]),
        )
    )


def _short(brief: Brief | BriefRun) -> str:
    """The document as JSON. Of what may be many, the last go where it would be too long."""
    text = render_json(lowered(brief))
    if len(text.encode()) < MESSAGE.value or not brief.faults:
        return text
    return _short(replace(brief, faults=brief.faults[:-1]))


def _fix(step: Step) -> BriefFix:
    arms, lines, written = [], list[str](), 0
    for spelling in step.in_use:
        written += sum(map(_bytes, spelling.code.lines))
        if spelling.arm:
            arms.append(BriefArm(_cut(spelling.name, NAME), spelling.code.lines))
        else:
            lines += spelling.code.lines
    if written > LINES.value:
        arms, lines = [], []
    gain = None if step.high is None else (step.low, step.high)
    return BriefFix(_cut(step.id, NAME), _cut(plain(step.title)), gain, tuple(lines), tuple(arms))


def _faults(result: Result) -> Iterator[Fault]:
    noted = chain.from_iterable(each(result.traces, "capture.diagnostics"))
    yield from map(_fault, (*result.warnings, *noted))
    for wall in unjudged(result):
        why = optional(": {}", "".join(wall.missing[:1]))
        yield _fault(f"{name_of(wall.id)} is not judged{why}", when(is_cure(wall.cure), wall.cure))


def _fault(what: str, cure: str = "") -> Fault:
    return Fault(_cut(what), _cut(cure))


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
