"""What a page is made of: sections of sentences and tables. Foreign texts stay as they are until printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.words import milliseconds, percent

if TYPE_CHECKING:
    from reports.html.step_bar import Part

UNTOLD = "not told"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts: the first cell of each is its header, the last `numbers` columns are figures.

    `keys`: what each row looks like in the pictures, one entry a row or none at all. `total`: the last row is
    the sum of those above.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 0
    keys: tuple[str, ...] = ()
    total: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what is said under it; `folded` tables open when asked for, by their captions.

    `bars`: a title and the parts of each.
    """

    id: str
    title: str
    said: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    bars: tuple[tuple[str, tuple[Part, ...]], ...] = ()
    tables: tuple[Table, ...] = ()
    folded: tuple[Table, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing under the heading."""
        return not (self.said or self.listed or self.tables or self.folded)


def sentence(text: str) -> str:
    """A capital first, where the text begins with a plain word, and a full stop."""
    first = text.split(" ")[0].rstrip(":,")
    start = text[:1].upper() + text[1:] if first.isalpha() else text
    return start if start.endswith((".", ":", "?")) else f"{start}."


def exact_ms(ns: int | None) -> str:
    """Milliseconds with all six decimals, so that printed parts add up."""
    return UNTOLD if ns is None else milliseconds(ns)


def short_ms(ns: int | None) -> str:
    """Milliseconds to the microsecond."""
    return UNTOLD if ns is None else f"{ns / 1e6:,.3f}"


def share(part: float | None, whole: float = 1.0) -> str:
    """A part of a whole as percent."""
    return UNTOLD if part is None or not whole else percent(part / whole)
