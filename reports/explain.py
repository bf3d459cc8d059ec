"""What a word of a report means: a wall, a fix, a measure. Plain text, at most 80 columns.

Walls and fixes speak for themselves, from `heuristics`, which loads numpy; so these are imported when asked
for. Measures are in `measures.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from reports.explain_limits import item, limit_lines
from reports.layout import wrap
from reports.measures import GROUPS, Measure, measures, named
from reports.words import printable
from traces.errors import UsageError

if TYPE_CHECKING:
    from heuristics.run import WallId

_NEAREST: Final = 3
_LIST: Final = "Type moe-diag explain to list all."


def explain(topic: str = "") -> str:
    """The explanation of a topic, ending in a line break; without one, the list of all, grouped.

    A wall (`communication`), a fix (`COM-2`) or a measure (`launch_starved`, `ranks[0].sm.fill_frac`); upper
    and lower case, `-` and `_` are the same. A word that is both a wall and a measure gets both.

    Raises `UsageError` for an unknown topic, naming the nearest.
    """
    if not topic.strip():
        return _text(_everything())
    whole = _plain(topic)
    last = whole.rpartition(".")[2]
    for name in (whole, last):
        if lines := list(_about(name)):
            return _text(lines)
    raise UsageError(_unknown(topic, last))


def _plain(topic: str) -> str:
    return re.sub(r"\[[^]]*\]", "", topic).strip().lower().replace("-", "_").replace(" ", "_")


def _about(name: str) -> Iterator[str]:
    """Everything that has this name."""
    from reports.explain_fix import fix_lines
    from reports.explain_wall import wall_lines

    for wall in _walls():
        if wall == name:
            yield from wall_lines(wall)
    for number in _fixes():
        if _plain(number) == name:
            yield from fix_lines(number)
    for measure in named(name):
        yield from ("", "", *_measure_lines(measure))


def _measure_lines(measure: Measure) -> Iterator[str]:
    unit = f", in {measure.unit}" if measure.unit else ""
    yield from (f"{measure.name} (measure{unit})", "")
    yield from wrap(measure.what, "  ")
    yield from ("", *wrap(f"How: {measure.how}", "  "))
    yield from ("", *wrap(f"Group: {GROUPS[measure.group]}", "  "))
    yield from limit_lines(measure.limits)


def _everything() -> Iterator[str]:
    """All topics by group, fixes by wall."""
    yield from wrap("moe-diag explain WORD says what it means. Words are walls, fixes and measures.", "")
    yield from ("", "Walls", *wrap(", ".join(_walls()), "  "), "", "Fixes")
    for number, title in _fixes().items():
        yield from item(f"{number} {title}")
    for group, title in GROUPS.items():
        names = ", ".join(one.name for one in measures().values() if one.group == group)
        yield from ("", title, *wrap(names, "  "))


def _unknown(topic: str, last: str) -> str:
    known = {_plain(name): name for name in (*measures(), *_walls(), *_fixes())}
    nearest = [known[name] for name in get_close_matches(last, known, _NEAREST)]
    near = f" The nearest: {', '.join(nearest)}." if nearest else ""
    return f"no wall, fix or measure is named {printable(topic, 60)!r}.{near} {_LIST}"


def _walls() -> tuple[WallId, ...]:
    from heuristics.run import WALL_IDS

    return WALL_IDS


def _fixes() -> dict[str, str]:
    """Fix id -> title, in the order of the catalogue."""
    from heuristics.fixes.catalogue import CATALOGUE

    return {number: fix.title for number, fix in CATALOGUE.items()}


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"
