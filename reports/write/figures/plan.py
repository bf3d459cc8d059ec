"""The first steps of the plan: what to set, what it saves as a range, the condition that matters."""

import textwrap
from collections.abc import Sequence
from typing import Final

from reports.content.blocks import Hue, Plan, Step, Words
from reports.content.names import plain
from reports.write.figures.bars import fill
from reports.write.figures.canvas import BODY, LARGE, LINE, SMALL, Area
from reports.write.figures.lettering import MONO, MORE, cut, fitted, harmless, inches, mono_inches
from reports.write.palette import HAIR, HUES, INK, SOFT

_RANGE: Final = 0.05
_APART: Final = 0.1
_SHORT: Final = 0.185
"""Inches from one line of small text to the next."""
_DETAILS: Final = (
    ((2, 1), (2, 1)),
    ((2, 1), (1, 1)),
    ((2, 1), (1, 0)),
    ((1, 1), (1, 0)),
    ((1, 0), (1, 0)),
    ((1, 0), (0, 0)),
    ((0, 0), (0, 0)),
)
"""Lines of code and notes to the first step and to each other one, the first of these that fits."""


def draw_plan(area: Area, plan: Plan) -> None:
    area.text(0, 0.08, fitted(plan.title, area.width, LARGE, bold=True), LARGE, weight="bold")
    notes = [plain(plan.together)] if plan.together else []
    notes += [f"{plan.left_out} more: --full"] if plan.left_out else []
    words = fitted(" ".join(notes), area.width - (inches(plan.title, LARGE, bold=True) + 0.3), SMALL)
    area.text(area.width, 0.08, words, SMALL, color=SOFT, ha="right")
    for details in _DETAILS:
        texts = [_said(step, area.width, details[min(place, 1)]) for place, step in enumerate(plan.steps)]
        if sum(_height(*one) for one in texts) <= area.height - 0.42:
            break
    top = 0.42
    for number, (step, (code, said)) in enumerate(zip(plan.steps, texts, strict=True), start=1):
        _step(area.part(0, top, area.width, _height(code, said)), number, step, code, said)
        top += _height(code, said)


def _said(step: Step, width: float, detail: tuple[int, int]) -> tuple[list[str], tuple[Words, ...]]:
    lines, conditions = detail
    return _code(step, width - 0.3, lines), step.notes[:conditions]


def _height(code: Sequence[str], notes: Sequence[Words]) -> float:
    return LINE + (len(code) + len(notes)) * _SHORT + (_APART if code or notes else 0.12)


def _step(area: Area, number: int, step: Step, code: Sequence[str], notes: Sequence[Words]) -> None:
    saves = f"{step.saves}  {step.id}"
    right = inches(saves, SMALL, bold=True)
    area.text(0, 0, str(number), LARGE, weight="bold", color=HUES[Hue.COMPUTE].light)
    area.text(0.28, 0, fitted(plain(step.title), area.width - right - 0.5, BODY, bold=True), weight="bold")
    area.text(area.width, 0, saves, SMALL, weight="bold", ha="right")
    if step.high is not None:
        _range(area.part(area.width - right, 0.11, right, _RANGE), step.low, step.high)
    top = LINE + 0.03
    for line in code:
        area.text(0.28, top, line, SMALL, family=MONO, color=INK)
        top += _SHORT
    for note in notes:
        area.text(0.28, top, fitted(plain(note), area.width - 0.3, SMALL), SMALL, color=SOFT)
        top += _SHORT


def _code(step: Step, width: float, most: int) -> list[str]:
    """The change as the framework in use spells it: a line each where there are few, else joined."""
    if not step.spellings or not most:
        return []
    lines = step.spellings[0].code.lines
    whole = lines if len(lines) <= most else ("  ".join(lines),)
    letters = int(width / mono_inches(SMALL)) - len(MORE)
    return cut(
        [one for line in whole for one in textwrap.wrap(harmless(line), letters, break_on_hyphens=False)],
        most,
    )


def _range(area: Area, low: float | None, high: float) -> None:
    axes = area.axes()
    axes.axhspan(0, area.height, color=HAIR, linewidth=0)
    axes.barh(area.height / 2, high * area.width, area.height, color="#8fc1e3", linewidth=0)
    if low:
        fill(axes, (0, 0, max(0.0, low) * area.width, area.height), Hue.COMPUTE)
