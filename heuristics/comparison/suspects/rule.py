"""A cause, how one is held against a difference, and which way a setting or a release went."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from heuristics.comparison.configured import Value
from heuristics.comparison.figures import milliseconds, signed_milliseconds
from heuristics.comparison.suspects.view import View
from heuristics.result.compared import ComparedChange, ComparedRow, Suspect
from heuristics.result.judged import Level
from heuristics.walls.words import percent
from traces.limits import Limit
from traces.names.kinds import compute_classes

Signs = tuple[str, ...] | None
"""Sentences of what the trace shows of a cause; empty: it shows nothing of it; None: it rules it out."""

_ORDER: Final[tuple[Level, ...]] = ("low", "medium", "high")


def shows_nothing(view: View) -> Signs:
    """No sign in a trace is known."""
    return ()


def any_way(change: ComparedChange) -> bool:
    """Whatever way it changed."""
    return True


def way_of(wanted: Literal["more", "less"]) -> Callable[[ComparedChange], bool]:
    """Whether a setting went one way; also where that is not known."""
    return lambda change: way(change) in (0, 1 if wanted == "more" else -1)


@dataclass(frozen=True, slots=True)
class Rule:
    """A cause that comes up on the new side; where it went away there, `mirrored` is its title.

    `slower`, `faster`, `either`: patterns of the rows that it makes longer, shorter, or either. `observed`:
    what the trace shows of it besides these rows. `changed`: patterns of changed things that are the cause,
    `went` whether one of them changed the way that brings it. `needs`: the evidence without which it is no
    suspect. `at_most`, `at_least`: between which its confidence lies.
    """

    id: str
    title: str
    mirrored: str
    next: str
    source: str
    slower: tuple[str, ...] = ()
    faster: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    observed: Callable[[View], Signs] = shows_nothing
    changed: tuple[str, ...] = ()
    went: Callable[[ComparedChange], bool] = any_way
    needs: Literal["observed", "changed", "any"] = "any"
    at_most: Level = "high"
    at_least: Level = "low"


@dataclass(frozen=True, slots=True)
class Found:
    """A suspect, what its rows moved whatever their sign, and the changes it speaks for.

    `is_known`: a published cause, or one that was seen to change, which no other suspect stands for.
    """

    suspect: Suspect
    gross_ns: int
    spoken_for: tuple[str, ...]
    is_known: bool = False


def find(rule: Rule, view: View) -> Found | None:
    """The rule's suspect in a view, or None where its rows did not move its way or evidence is lacking."""
    rows = moved_its_way(rule, view)
    if not rows:
        return None
    observed = rule.observed(view)
    changed = tuple(change for change in view.changes(*rule.changed) if rule.went(change))
    if observed is None or not _enough(rule, bool(observed), bool(changed)):
        return None
    evidence = (*observed, *change_sentences(view, changed))
    suspect = Suspect(
        id=rule.id,
        title=rule.title if view.sign == 1 else rule.mirrored,
        rows=tuple(row.row for row in rows),
        explains_ns=view.sign * sum(row.delta_ns for row in rows),
        confidence=_confidence(rule, bool(observed), bool(changed)),
        because=(*row_sentences(view, rows), *evidence),
        next=rule.next,
        source=rule.source,
        seen=evidence,
    )
    gross_ns = sum(abs(row.delta_ns) for row in rows)
    return Found(suspect, gross_ns, tuple(change.what for change in changed), rule.needs == "changed")


def moved_its_way(rule: Rule, view: View) -> tuple[ComparedRow, ...]:
    """Rows of a rule that moved as it would move them, in the order of the rows."""
    longer = {row.row for row in view.matching(*rule.slower) if row.delta_ns > 0}
    shorter = {row.row for row in view.matching(*rule.faster) if row.delta_ns < 0}
    any_way = {row.row for row in view.matching(*rule.either)}
    return tuple(row for name, row in view.rows.items() if name in longer | shorter | any_way)


def _enough(rule: Rule, observed: bool, changed: bool) -> bool:
    return {"observed": observed, "changed": changed, "any": observed or changed}[rule.needs]


def _confidence(rule: Rule, observed: bool, changed: bool) -> Level:
    least, most = _ORDER.index(rule.at_least), _ORDER.index(rule.at_most)
    return _ORDER[min(max(int(observed) + int(changed), least), most)]


Row = Mapping[str, Any]


@cache
def table() -> Row:
    """The file; its set `classes` is all classes of compute."""
    text = files("heuristics.comparison.suspects").joinpath("causes.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    found["sets"]["classes"] = [f"compute.{class_}" for class_ in compute_classes()]
    return found


@cache
def named(*names: str) -> tuple[str, ...]:
    """A list in which `@name` stands for a set of the table."""
    return expanded(names, table()["sets"])


@cache
def families() -> Mapping[str, Row]:
    """Families of communication: their words, kinds and settings."""
    found: Mapping[str, Row] = table()["families"]
    return found


def expanded(listed: Sequence[str], sets: Row) -> tuple[str, ...]:
    """Names, with those of a set where its `@name` stands; none of a set that is not there."""
    return tuple(
        name
        for one in listed
        for name in (expanded(sets.get(one[1:], ()), sets) if one.startswith("@") else (one,))
    )


Way = Literal[1, 0, -1]

_OFF: Final = (None, False, 0, 0.0, (), "", "none", "None", "null", "off", "false", "0")
_BITS: Final = {"fp4": 4, "fp8": 8, "16": 16, "32": 32}
"""Bits of a precision by what its name has in it; the narrower first, as in `bf16_with_mxfp8`."""
_FULLER: Final = {"selective": 1, "full": 2}


def way(change: ComparedChange) -> Way:
    """1 where the new side has more of it, -1 where less, 0 where that is unknown.

    Off (None, False, 0, nothing in a list, `none`) is less than on; numbers and lists are compared; of two
    precisions the narrower is more; full recompute is more than selective.
    """
    if change.withheld:
        return 0
    base, new = change.base, change.new
    bits = _bits(base), _bits(new)
    if None not in bits:
        return _compared(-(bits[0] or 0), -(bits[1] or 0))
    if is_off(base) or is_off(new):
        return _compared(int(not is_off(base)), int(not is_off(new)))
    if isinstance(base, int | float) and isinstance(new, int | float):
        return _compared(base, new)
    if isinstance(base, tuple) and isinstance(new, tuple):
        return _by_parts(frozenset(base), frozenset(new))
    return _compared(_FULLER.get(str(base), 0), _FULLER.get(str(new), 0))


def is_off(value: Value) -> bool:
    """Whether a value is one of those that switch a thing off."""
    return any(value == off and type(value) is type(off) for off in _OFF)


def _bits(value: Value) -> int | None:
    if not isinstance(value, str):
        return None
    return next((bits for part, bits in _BITS.items() if part in value.lower()), None)


def _by_parts(base: frozenset[Value], new: frozenset[Value]) -> Way:
    if base < new:
        return 1
    return -1 if new < base else 0


def _compared(base: float, new: float) -> Way:
    if base == new:
        return 0
    return 1 if base < new else -1


def crossed(since: str, at_least: str = "0", until: str = "9999") -> Callable[[ComparedChange], bool]:
    """Whether a version went from below `since`, not below `at_least`, to `since` or above, below `until`."""

    def went(change: ComparedChange) -> bool:
        base, new = _numbers(change.base), _numbers(change.new)
        if base is None or new is None:
            return False
        low, border, high = (_numbers(one) or () for one in (at_least, since, until))
        return low <= base < border <= new < high

    return went


def _numbers(version: Value) -> tuple[int, ...] | None:
    found = re.findall(r"\d+", version) if isinstance(version, str) else []
    return tuple(int(one) for one in found[:4]) or None


SHOWN_ROWS: Final = Limit(3, "rows", "ours: what else moved stands in the table of rows")
SHOWN_CHANGES: Final = Limit(4, "changes", "ours: all of them stand in the list of changes")


def row_sentences(view: View, rows: Sequence[ComparedRow]) -> tuple[str, ...]:
    """The largest rows with their times, and how many more there are."""
    most = int(SHOWN_ROWS.value)
    largest = sorted(rows, key=lambda row: (-abs(row.delta_ns), row.row))
    found = [_row(view, row) for row in largest[:most]]
    if left := largest[most:]:
        moved_ns = view.sign * sum(row.delta_ns for row in left)
        more = "1 more row moves" if len(left) == 1 else f"{len(left)} more rows together move"
        found.append(f"{more} {signed_milliseconds(moved_ns)} a step")
    return tuple(found)


def _row(view: View, row: ComparedRow) -> str:
    part = percent(abs(row.delta_ns) / view.moved_ns)
    found = view.arrow(f"{row.row} a step", milliseconds(row.base_ns), milliseconds(row.new_ns))
    return f"{found} ({signed_milliseconds(view.sign * row.delta_ns)}, {part} of all that moved)"


def change_sentences(view: View, changes: Sequence[ComparedChange]) -> tuple[str, ...]:
    """What changed."""
    return tuple(_change(view, one) for one in changes[: int(SHOWN_CHANGES.value)])


def _change(view: View, change: ComparedChange) -> str:
    if change.withheld:
        return f"{change.what} differs; its value is withheld"
    before = _value(change.base) if change.said_base else "not set"
    after = _value(change.new) if change.said_new else "not set"
    return f"{view.arrow(change.what, before, after)} ({change.source})"


def _value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
