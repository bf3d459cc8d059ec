"""The first steps of the plan: what to set, what it saves as a range, the condition that
matters.
"""

import textwrap
from dataclasses import replace
from typing import Final

from reports.content.blocks import Hue, Plan, Step
from reports.content.names import beyond, plain, when
from reports.rows import each
from reports.write.figures.bars import fill
from reports.write.figures.canvas import BODY, LARGE, LINE, SMALL, Area
from reports.write.figures.lettering import MONO, fitted, harmless, inches, mono_inches, wrapped
from reports.write.palette import HAIR, HUES, INK
from traces.frozen import frozen
from traces.texts import Texts

_RANGE: Final = 0.05
_APART: Final = 0.1
_TOP: Final = 0.42
_SHORT: Final = 0.185
"""Inches from one line of small text to the next."""
_ROOMS: Final = ((3, 2), (3, 1), (2, 2), (2, 1), (1, 3), (1, 2), (1, 1), (1, 0))
"""Steps with their lines, and notes to each: the first of these that fits, as no line to type is
cut.

Of the others only the titles stand, as far as they have room.
"""


@frozen
class _Texts:
    """A step as it is drawn: lines of its title, of what is to be typed, and of its conditions."""

    title: Texts
    code: Texts
    notes: Texts

    @property
    def height(self) -> float:
        rows = len(self.code) + len(self.notes)
        return len(self.title) * LINE + rows * _SHORT + (_APART if rows else 0.12)


def draw_plan(area: Area, plan: Plan) -> None:
    area.strong(0, 0.08, fitted(plan.title, area.width, LARGE, bold=True), LARGE)
    for most, notes in _ROOMS:
        texts = [_texts(step, area.width, notes) for step in plan.steps[:most]]
        if sum(each(texts, "height")) <= area.height - _TOP:
            break
    for step in plan.steps[len(texts) :]:
        title = replace(_texts(step, area.width, 0), code=())
        if sum(each((*texts, title), "height")) > area.height - _TOP:
            break
        texts.append(title)
    below = when(len(texts) == len(plan.steps), plain(plan.together))
    more = beyond(plan.left_out + len(plan.steps), len(texts), "{} more: --full")
    below = " ".join(filter(None, (below, more)))
    beside = fitted(below, area.width - (inches(plan.title, LARGE, bold=True) + 0.3), SMALL)
    area.note(area.width, 0.08, beside, ha="right")
    top = _TOP
    for number, (step, step_texts) in enumerate(zip(plan.steps, texts, strict=False), start=1):
        _step(area.across(top, step_texts.height), number, step, step_texts)
        top += step_texts.height


def _texts(step: Step, width: float, notes: int) -> _Texts:
    title = wrapped(plain(step.title), width - _saves_inches(step) - 0.5, BODY, bold=True)
    notes_lines, code, letters = [], [], int((width - 0.3) / mono_inches(SMALL))
    for note in step.notes[:notes]:
        notes_lines += wrapped(plain(note), width - 0.3, SMALL)
    for spelling in step.in_use:  # as the framework in use spells it; several settings share a line
        if spelling.arm:
            code.append(f"{spelling.name}:")
        line = "  ".join(map(harmless, spelling.code.lines))
        code += textwrap.wrap(line, letters, break_on_hyphens=False)
    return _Texts(tuple(title), tuple(code), tuple(notes_lines))


def _saves_inches(step: Step) -> float:
    return inches(f"{step.saves}  {step.id}", SMALL, bold=True)


def _step(area: Area, number: int, step: Step, texts: _Texts) -> None:
    right = _saves_inches(step)
    area.strong(0, 0, str(number), LARGE, color=HUES[Hue.COMPUTE].light)
    for place, line in enumerate(texts.title):
        area.strong(0.28, place * LINE, line)
    area.strong(area.width, 0, f"{step.saves}  {step.id}", SMALL, ha="right")
    if step.high is not None:
        axes = area.part(area.width - right, 0.11, right, _RANGE).axes()
        axes.axhspan(0, _RANGE, color=HAIR, linewidth=0)
        axes.barh(_RANGE / 2, step.high * right, _RANGE, color="#8fc1e3", linewidth=0)
        if step.low:
            fill(axes, (0, 0, max(0.0, step.low) * right, _RANGE), Hue.COMPUTE)
    top = len(texts.title) * LINE + 0.03
    for line in texts.code:
        area.text(0.28, top, line, SMALL, family=MONO, color=INK)
        top += _SHORT
    for line in texts.notes:
        area.note(0.28, top, line)
        top += _SHORT
