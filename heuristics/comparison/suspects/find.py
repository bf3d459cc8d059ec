"""All suspects of a difference, the one that explains most and is surest first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product, starmap
from typing import Final

from msgspec import structs

from heuristics.comparison.causes.table import named
from heuristics.comparison.difference.rows import (
    NOISE,
    SMALL_FRAC,
    Facts,
    delta_ns,
    gross_ns,
    names_of,
    sides_ns,
)
from heuristics.comparison.difference.subject import Value
from heuristics.comparison.suspects.figures import dispatcher_seen, fused_dispatcher_asked
from heuristics.comparison.suspects.shown import VIEWED, more_of
from heuristics.comparison.suspects.table import Movable, SuspectRule, causes, movable
from heuristics.comparison.suspects.view import View, matches
from heuristics.config.features import FLEX
from heuristics.result.compared import ComparedChange, ComparedRow, Suspect
from heuristics.result.judged import Level
from heuristics.words import say
from traces.arrays import codes_of
from traces.frozen import frozen
from traces.limits import MOST, WALL, Limit
from traces.patterns import compiled
from traces.sections.section import copied
from traces.spelling import in_ms
from traces.texts import Texts

LISTED: Final = Limit(
    8, "suspects", "ours: a judgement: nobody tries more; the list of changes has them all"
)
LEAST: Final = Limit(0.02, "fraction of all that moved", "ours: less is not worth an A/B run")
SHOWN: Final = Limit(3, "lines", "ours: all rows and all changes stand in their tables")
UNPROVEN: Final = "row."
"""How the id of a row begins that moved without a proven cause."""
_LEVELS: Final[tuple[Level, ...]] = ("low", "medium", "high")
_FIGURE: Final = compiled(r"\{(.+?)\}")


@frozen
class FoundSuspect:
    """A suspect, what its rows moved whatever their sign, and the changes it speaks for.

    `gross_ns`: with the rows that it hides, which are `hidden` and which it does not explain, and
    no more than was measured of it. `covers`: its rows, but where that is not most of them.
    `is_known`: a published cause, or one that was seen to change, which no other suspect stands
    for. `weight`: of the three things that speak for a cause, rows that moved, what was observed
    and what changed, how many do.
    """

    suspect: Suspect
    gross_ns: int
    spoken_for: Texts
    covers: Texts
    is_known: bool = False
    hidden: Texts = ()

    @property
    def weight(self) -> int:
        return 1 + _LEVELS.index(self.suspect.confidence)


def with_explained(facts: Facts) -> Facts:
    """Each change with the rows that it can move and that moved; none: it explains nothing."""
    rows, changed = tuple(View(facts).rows.values()), []
    for change in facts.changed:
        changed.append(structs.replace(change, can_explain=names_of(movable(change, rows).rows)))
    return structs.replace(facts, changed=tuple(changed))


def find_suspects(facts: Facts) -> tuple[Suspect, ...]:
    """Causes, by the part of all movement that their rows are, weighted by how sure they are.

    Those that move the step the other way than it went come last. Swapped sides give the same
    suspects, mirrored. Empty where nothing we know explains what moved.
    """
    view = View(facts)
    by_rules = _by_rules(view)
    place = partial(_place, view)
    ranked = sorted((*by_rules, *_by_changes(view, by_rules)), key=place)
    least_ns = LEAST.value * view.moved_ns
    large = [
        found
        for found in ranked
        if found.gross_ns >= least_ns and not _is_beside_noise(view, found)
    ]
    kept = sorted(_without_repeats((*large, *_unexplained(view, large))), key=place)
    return tuple(_with_control(view, found.suspect) for found in kept[: LISTED.whole])


def _is_beside_noise(view: View, found: FoundSuspect) -> bool:
    """Whether steps vary by more than its rows moved, which are no visible part of the step: no
    cause.
    """
    rows = view.facts.attribution.rows
    noise_ns = gross_ns(row for row in rows if row.row == NOISE)
    return found.gross_ns < min(noise_ns, SMALL_FRAC.value * min(sides_ns(rows)))


def _unexplained(view: View, suspects: Sequence[FoundSuspect]) -> Iterator[FoundSuspect]:
    """Large rows that moved and that no suspect explains, each with where to look: no cause is made
    up.
    """
    explained = set[str]()
    for found in suspects:
        explained.update(found.covers, found.hidden)
    for name, row in view.rows.items():
        if name not in explained and abs(row.delta_ns) >= WALL.value * view.moved_ns:
            suspect = Suspect(
                id=f"{UNPROVEN}{name}",
                title=say("comparison.row-title"),
                rows=(name,),
                explains_ns=row.delta_ns,
                confidence="low",
                because=tuple(_row_sentences(view, [row])),
                next=next(look.next for look in causes().looks if matches(name, look.rows)),
                source="ours: the row itself",
            )
            yield FoundSuspect(suspect, abs(row.delta_ns), (), (name,))


def _with_control(view: View, suspect: Suspect) -> Suspect:
    """Where exchanges between experts got longer by a flex backend: alltoall shows whether that is
    why.
    """
    backend = dispatcher_seen(view.after) or fused_dispatcher_asked(view.after)
    longer = suspect.explains_ns > 0 and any(matches(row, named("@ep")) for row in suspect.rows)
    if not longer or backend not in FLEX or not suspect.next:
        return suspect
    return structs.replace(suspect, next=say("comparison.with-control", next=suspect.next))


def _by_rules(view: View) -> tuple[FoundSuspect, ...]:
    """One of each rule: that of the direction which moves more; of two alike, the one the step
    went.
    """
    best = dict[str, FoundSuspect]()
    # a cause that went away is the same cause seen from the other side
    for side in (view, view.other()):
        for rule in causes().rules:
            found = _by_rule(rule, side)
            if found and (rule.id not in best or _place(view, found) < _place(view, best[rule.id])):
                best[rule.id] = found
    return tuple(best.values())


def _by_rule(rule: SuspectRule, view: View) -> FoundSuspect | None:
    """The rule's suspect in a view, or None where its rows did not move its way or evidence is
    lacking.
    """
    rows = _moved_its_way(rule, view)
    if not rows:
        return None
    observed: bool | None = True if rule.signs else None  # its rows are its sign
    if rule.observed:
        observed = rule.observed.holds(view)
    if observed is False:
        return None
    changed = tuple(filter(rule.went, view.changes(rule.changed)))
    evidence = {"observed": observed, "changed": bool(changed), "any": observed or bool(changed)}
    if not evidence[rule.needs]:
        return None
    hidden = tuple(row for row in view.matching(rule.hides) if row not in rows)
    rows_ns = gross_ns((*rows, *hidden))
    own_ns = more_of(rule.measured, view) if rule.measured else None
    most_ns = rows_ns if own_ns is None else min(round(own_ns), rows_ns)
    if most_ns <= 0:
        return None
    seen = list[str]()
    if observed and hidden:  # what one side does not show stays unexplained
        seen.append(say("comparison.hidden", moved=view.signed(delta_ns(hidden))))
    if observed:
        seen += _signs(rule, view)
    seen += _change_sentences(view, changed)
    sure = _LEVELS[bool(observed) + bool(changed)]
    suspect = copied(
        Suspect,
        rule,
        title=rule.titled(view.sign == -1),
        rows=names_of(rows),
        explains_ns=view.sign * min(delta_ns(rows), most_ns),
        confidence=sorted((rule.at_least, sure, rule.at_most), key=_LEVELS.index)[1],
        because=(*_row_sentences(view, rows), *seen),
        seen=tuple(seen),
        next="".join(_filled(view, rule.next)),
    )
    return FoundSuspect(
        suspect,
        most_ns,
        tuple(change.what for change in changed),
        names_of(rows) if most_ns >= MOST.value * rows_ns else (),
        rule.needs == "changed",
        names_of(hidden),
    )


def _moved_its_way(rule: SuspectRule, view: View) -> list[ComparedRow]:
    moved = []
    for name, row in view.rows.items():
        its_way = rule.slower if row.delta_ns > 0 else rule.faster
        if matches(name, rule.either) or matches(name, its_way):
            moved.append(row)
    return moved


def _signs(rule: SuspectRule, view: View) -> Iterator[str]:
    """What the trace shows: a sentence for each of several values, none where a figure is
    unknown.
    """
    for sign in rule.signs:
        when, text = (None, sign) if isinstance(sign, str) else sign
        if when is None or when.holds(view):
            yield from _filled(view, text)


def _filled(view: View, text: str) -> Iterator[str]:
    figures = [_several(VIEWED.named(name).of(view)) for name in _FIGURE.findall(text)]
    return starmap(_FIGURE.sub("{}", text).format, product(*figures))


def _several(figure: object) -> tuple[object, ...]:
    """A figure as all its values: none where it is unknown."""
    if figure is None:
        return ()
    if isinstance(figure, tuple):
        return figure
    return (figure,)


def _row_sentences(view: View, rows: Sequence[ComparedRow]) -> Iterator[str]:
    most = SHOWN.whole
    largest = sorted(rows, key=lambda row: (-abs(row.delta_ns), row.row))
    for row in largest[:most]:
        yield say(
            "comparison.row",
            row=row.row,
            times=view.arrow(in_ms(row.base_ns), in_ms(row.new_ns)),
            delta=view.signed(row.delta_ns),
            part_frac=abs(row.delta_ns) / view.moved_ns,
        )
    if unlisted := largest[most:]:
        yield say(
            "comparison.row-more" if len(unlisted) == 1 else "comparison.rows-more",
            count=len(unlisted),
            moved=view.signed(delta_ns(unlisted)),
        )


def _change_sentences(view: View, changes: Sequence[ComparedChange]) -> Iterator[str]:
    for row in changes[: SHOWN.whole]:
        if row.withheld:
            yield say("comparison.change-withheld", what=row.what)
        else:
            values = view.arrow(_value(row.base, row.said_base), _value(row.new, row.said_new))
            yield f"{row.what}: {values} ({row.source})"


def _value(value: Value, is_said: bool = True) -> str:
    if not is_said:
        return "not set"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


@cache
def _rule_places() -> Mapping[str, int]:
    return codes_of(rule.id for rule in causes().rules)


def _place(view: View, found: FoundSuspect) -> tuple[bool, int, bool, int, str]:
    """Where a suspect stands: of two that are alike what changed goes first, then as the rules are
    listed.
    """
    suspect, places = found.suspect, _rule_places()
    against = suspect.explains_ns * view.facts.attribution.step_delta_ns < 0
    opposed = against and abs(suspect.explains_ns) >= MOST.value * found.gross_ns
    place = places.get(suspect.id, len(places))
    return opposed, -found.gross_ns * found.weight, not found.spoken_for, place, suspect.id


def _without_repeats(ranked: Iterable[FoundSuspect]) -> list[FoundSuspect]:
    """Without those whose rows and changes a suspect that is at least as sure has all."""
    kept = list[FoundSuspect]()
    for found in ranked:
        if found.is_known or not any(_covers(earlier, found) for earlier in kept):
            kept.append(found)
    return kept


def _covers(kept: FoundSuspect, later: FoundSuspect) -> bool:
    has_rows = {*later.suspect.rows} <= {*kept.covers}
    return has_rows and {*later.spoken_for} <= {*kept.spoken_for} and kept.weight >= later.weight


def _by_changes(view: View, by_rules: tuple[FoundSuspect, ...]) -> Iterator[FoundSuspect]:
    """A suspect for each change that can move rows which no rule explained by it."""
    rows = tuple(view.rows.values())
    for change in view.facts.changed:
        if change.source == "trace" and not change.what.startswith("gpu"):
            continue  # an observation, which rules look at: no cause
        able = movable(change, rows)
        spoken = set[str]()
        for found in by_rules:
            if change.what in found.spoken_for:
                spoken.update(found.suspect.rows)
        unspoken = replace(able, rows=tuple(row for row in able.rows if row.row not in spoken))
        if unspoken.rows:
            yield _of_change(view, change, unspoken)


def _of_change(view: View, change: ComparedChange, able: Movable) -> FoundSuspect:
    changes = tuple(_change_sentences(view, (change,)))
    suspect = Suspect(
        id=f"knob.{change.what}" if change.source == "configuration" else change.what,
        title=say("comparison.change-title", what=change.what),
        rows=names_of(able.rows),
        explains_ns=delta_ns(able.rows),
        confidence="low" if able.is_broad else "medium",
        because=(*changes, *_row_sentences(view, able.rows)),
        next=say("comparison.change-next", what=change.what),
        source=able.source,
        seen=changes,
    )
    return FoundSuspect(suspect, gross_ns(able.rows), (change.what,), suspect.rows)
