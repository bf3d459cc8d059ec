"""What a rule is, how one is held against a difference, and how its evidence is worded.

Sentences give figures per step, always from base to new.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.comparison.difference.changed import Value
from heuristics.comparison.suspects.direction import way
from heuristics.comparison.suspects.view import View
from heuristics.result.compared import ComparedChange, ComparedRow, Suspect
from heuristics.result.judged import Level
from traces.limits import Limit
from traces.spelling import in_ms, percent, signed_ms

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
        found.append(f"{more} {signed_ms(moved_ns)} a step")
    return tuple(found)


def _row(view: View, row: ComparedRow) -> str:
    part = percent(abs(row.delta_ns) / view.moved_ns)
    found = view.arrow(f"{row.row} a step", in_ms(row.base_ns), in_ms(row.new_ns))
    return f"{found} ({signed_ms(view.sign * row.delta_ns)}, {part} of all that moved)"


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
