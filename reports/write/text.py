"""A page as plain text for a terminal or a pipe: the first screen fits its rows, whatever the
width.

It is made to fit by leaving out steps and whole sentences: what is to be typed is never cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Final

from rich.text import Text

from reports.content import blocks
from reports.content.blocks import Block, CodeBlock, Plan, Step
from reports.content.names import optional, when
from reports.content.page import Detail, Page, View
from reports.measures import words_of
from reports.rows import each
from reports.write.terminal import (
    Lines,
    bar_lines,
    continued,
    plain,
    printed,
    shortened,
    table_lines,
    text_of,
    wrapped,
)
from traces.toml_tables import TableRow, read_table

ACTION: Final = 0.6
"""The part of the screen by whose end the first thing to do begins."""
_REASON: Final = 2
"""Lines that a sentence under the headline has at least: how sure it is must be read whole."""
_FIX: Final = 5
"""Lines that what must be corrected first has at least: its cure stands at its end."""
_LABEL: Final = 11
_MORE: Final = f"{'More':<{_LABEL}}"


class Room(TableRow):
    """What a page may use: steps of the plan, lines of one sentence, items of a list; 0 is no
    limit.

    `under`: sentences below the headline, the last go first. `spellings`: a change as every
    framework writes it, not only as the one in use does.
    """

    steps: int = 0
    lines: int = 0
    items: int = 0
    under: int = 0
    gaps: bool = True
    spellings: bool = False


@cache
def _rooms() -> Mapping[str, tuple[Room, ...]]:
    return read_table("reports.write", "rooms.toml", dict[str, tuple[Room, ...]])


def write_text(page: Page, view: View) -> str:
    if page.detail is Detail.FULL:
        return printed(_lines(page, view, Room()), view)
    if page.of_kind(blocks.Part):
        return printed(_fitted(page, view), view)
    plans = each(page.of_kind(Plan), "title")
    for room in _rooms()["screen"]:
        lines = _lines(page, view, room)
        above = [*takewhile(lambda line: line.plain not in plans, lines)]
        is_early = not plans or len(above) + 2 <= ACTION * view.rows
        if is_early and len(lines) <= view.rows:
            break
    return printed(lines, view)


def _fitted(page: Page, view: View) -> Lines:
    rows = _head(page, view)
    for room in _rooms()["parts"]:
        titled = list[tuple[str, Lines]]()
        for part in page.blocks:
            titled += _titled(part, view, room)
        if len(rows) + sum(len(lines) for _, lines in titled) < view.rows:
            break
    end = [] if room == Room() else _more(page, view)
    for place, (_, lines) in enumerate(titled):
        if len(rows) + len(lines) + len(end) > view.rows:
            left = [title.lower() for title, _ in titled[place:] if title]
            end = shortened(
                plain(f"{page.more}: {'; '.join(left)}", "dim"), view.width, len(end), _MORE
            )
            break
        rows += lines
    return [*rows, *end]


def _titled(part: Block, view: View, room: Room) -> Iterator[tuple[str, Lines]]:
    """Each block of a part by its title; its own title stands with the first."""
    gap, first = [], []
    if room.gaps:
        gap = [plain("")]
    inner: Sequence[Block] = (part,)
    if isinstance(part, blocks.Part):
        first, inner = [*gap, plain(part.title.upper(), "bold underline")], part.blocks
    for block in inner:
        yield getattr(block, "title", ""), [*first, *gap, *block_lines(block, view, room)]
        first = []


def _more(page: Page, view: View) -> Lines:
    return wrapped(plain(page.more, "dim"), view.width, _MORE)


def _lines(page: Page, view: View, room: Room) -> Lines:
    lines = _head(page, view)
    last = None
    for block in page.blocks:
        follows = isinstance(block, blocks.Sentence | blocks.Command) and isinstance(
            last, blocks.Sentence
        )
        if room.gaps and not follows:
            lines.append(plain(""))
        if isinstance(block, blocks.Command) and page.more:
            lines += _more(page, view)
        lines += block_lines(block, view, room)
        last = block
    return lines


def _head(page: Page, view: View) -> Lines:
    title, facts = text_of(page.title, view, "bold"), text_of(page.facts, view)
    lines = [title + plain("   ") + facts]
    if lines[0].cell_len > view.width:
        lines = [*wrapped(title, view.width), *wrapped(facts, view.width)]
    for note in page.note:
        lines += wrapped(text_of((note,), view), view.width)
    return lines


def block_lines(block: Block, view: View, room: Room) -> Lines:
    match block:
        case blocks.Headline():
            return _headline_lines(block, view, room)
        case blocks.Sentence():
            label = optional(f"{{:<{_LABEL - 2}}}  ", block.label)
            text = text_of(block.said, view, words_of("tone_style")[block.tone])
            most = 0 if block.whole or not label else room.lines
            return shortened(text, view.width, most, label)
        case blocks.Items():
            return _items_lines(block, view, room)
        case blocks.Table():
            return table_lines(block, view, room.lines)
        case blocks.Bar():
            return bar_lines(block, view, room.lines)
        case blocks.CodeBlock():
            return code_lines(block, view, "  ")
        case blocks.Drawing():
            return [*map(plain, map("  {}".format, block.lines))]
        case blocks.Command():
            text = plain(block.said)
            if text.cell_len + 2 + len(block.line) > view.width:
                return [*wrapped(text, view.width), *continued(block.line, view.width, "  ")]
            return [text + plain("  ") + plain(block.line, "cyan")]
        case blocks.Fold():
            lines = [plain(block.title, "bold")]
            for inner in block.blocks:
                lines += block_lines(inner, view, room)
            return lines
        case blocks.Part():
            lines = [plain(block.title.upper(), "bold underline")]
            for inner in block.blocks:
                lines += [plain(""), *block_lines(inner, view, Room(spellings=True))]
            return lines
        case blocks.Plan():
            return _plan_lines(block, view, room)


def _items_lines(block: blocks.Items, view: View, room: Room) -> Lines:
    lines = [plain(block.title, "bold")] if block.title else []
    shown = block.items[: room.items or None]
    for place, item in enumerate(shown, start=1):
        mark, most = "  - ", room.lines
        if block.numbered:
            mark = f"  {place}. "
            if most and place == 1:
                most = max(_FIX, most)
        lines += shortened(text_of(item, view), view.width, 0 if block.whole else most, mark)
    if left := len(block.items) - len(shown):
        lines.append(plain(f"    {left} more", "dim"))
    return lines


def _headline_lines(block: blocks.Headline, view: View, room: Room) -> Lines:
    label = plain(block.label, words_of("tone_style")[block.tone])
    headline, indent = text_of(block.whole, view, "bold"), " " * _LABEL
    space = plain(" " * max(2, _LABEL - label.cell_len))
    lines = wrapped(label + space + headline, view.width, "", indent)
    if len(lines) > 1 and label.cell_len + 2 > _LABEL:
        lines = [label, *wrapped(headline, view.width, indent)]
    most = max(_REASON, room.lines) if room.lines else 0
    for under in block.under[: room.under or None]:
        lines += shortened(text_of(under, view), view.width, most, indent)
    return lines


def _plan_lines(block: Plan, view: View, room: Room) -> Lines:
    steps = block.steps[: room.steps or None]
    lines, together = [plain(block.title, "bold")], Text()
    for place, step in enumerate(steps, start=1):
        lines += _step_lines(place, step, view, room)
    if len(steps) == len(block.steps):
        together = text_of(block.together, view)
    if left_out := block.left_out + len(block.steps) - len(steps):
        together += plain(f"{when(together.plain, ' ')}{left_out} more in --full.")
    if together.plain:
        lines += wrapped(together, view.width, "  ")
    return lines


def _step_lines(place: int, step: Step, view: View, room: Room) -> Lines:
    number = f"  {place}  "
    saves = plain(step.saves, when(step.replayed and step.high is not None, "green"))
    saves += plain(optional("  [{}]", step.id), "dim")
    width = min(view.width, 100)
    lines = wrapped(text_of(step.title, view, "bold"), width, number)
    if lines[-1].cell_len + 2 + saves.cell_len > width:
        lines.append(plain(""))
    lines[-1] += plain(" " * max(2, width - lines[-1].cell_len - saves.cell_len)) + saves
    for spelling in step.spellings if room.spellings else step.in_use:
        if spelling.arm or room.spellings:
            lines.append(plain(f"       {spelling.name}:", "dim"))
        lines += code_lines(spelling.code, view, "       ")
    for note in step.notes:
        lines += shortened(text_of(note, view), view.width, room.lines, "     ")
    return lines


def code_lines(code: CodeBlock, view: View, indent: str) -> Lines:
    """Lines to copy; settings of a shell share a line while it has room; a long one goes on in the
    next.
    """
    lines = list[str]()
    rows = []
    for text in code.lines:
        if code.language == "python":  # calls, and what to do in words
            rows += wrapped(plain(text, "cyan"), view.width, indent)
        elif (
            lines
            and not lines[-1].endswith("\\")
            and len(indent) + len(lines[-1]) + 1 + len(text) <= view.width
        ):
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    for line in lines:
        rows += continued(line, view.width, indent)
    return rows
