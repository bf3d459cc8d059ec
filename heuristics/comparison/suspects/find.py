"""All suspects of a difference, the one that explains most and is surest first."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from msgspec import structs

from heuristics.comparison.difference.rows import Facts
from heuristics.comparison.suspects.causes import named
from heuristics.comparison.suspects.communication import FUSED, asked_for
from heuristics.comparison.suspects.movers import Movable, movable
from heuristics.comparison.suspects.rule import Found, change_sentences, find, row_sentences
from heuristics.comparison.suspects.table import rules
from heuristics.comparison.suspects.view import View
from heuristics.result.compared import ComparedChange, Suspect
from heuristics.result.judged import Level
from traces.limits import Limit

MOST: Final = Limit(8, "suspects", "ours: a judgement: nobody tries more; the list of changes has them all")
LEAST: Final = Limit(0.02, "fraction of all that moved", "ours: a judgement: less is not worth an A/B run")
OPPOSED: Final = Limit(
    0.5, "of what its rows moved", "ours: GEMMs that shrink and launches that grow may have one cause"
)
WEIGHTS: Final[dict[Level, Limit]] = {
    "high": Limit(1.0, "weight", "ours: changed and observed"),
    "medium": Limit(
        0.7,
        "weight",
        "ours: a judgement: goes before up to twice as much that is neither changed nor observed",
    ),
    "low": Limit(0.35, "weight", "ours: only consistent: half of a cause that changed or was observed"),
}


_CONTROL: Final = (
    "as the control arm, run the new side with moe_token_dispatcher_type alltoall: what stays slower there "
    "is not the dispatcher's"
)
"""Megatron-Bridge, skill perf-moe-dispatcher-selection: alltoall is for debugging such regressions."""


def with_explained(facts: Facts) -> Facts:
    """Each change with the rows that it can move and that moved; none: it explains nothing."""
    rows = tuple(View(facts).rows.values())
    changed = (structs.replace(one, can_explain=movable(one, rows).rows) for one in facts.changed)
    return structs.replace(facts, changed=tuple(changed))


def find_suspects(facts: Facts) -> tuple[Suspect, ...]:
    """Causes, by the part of all movement that their rows are, weighted by how sure they are.

    Those that move the step the other way than it went come last. Swapped sides give the same suspects,
    mirrored. Empty where nothing we know explains what moved.
    """
    view = View(facts)
    if not view.moved_ns:
        return ()
    found = _by_rules(view)
    ranked = sorted((*found, *_by_changes(view, found)), key=lambda one: _place(view, one))
    large = [one for one in ranked if one.gross_ns >= LEAST.value * view.moved_ns]
    kept = _without_repeats(large)[: int(MOST.value)]
    return tuple(_with_control(view, one.suspect) for one in kept)


def _with_control(view: View, suspect: Suspect) -> Suspect:
    """Where exchanges between experts got longer by a flex backend: alltoall shows whether that is why."""
    runs = view.after.detected.dispatcher
    backend = asked_for(view) if runs == "unknown" else runs
    experts = {row.row for row in view.matching(*named("@ep"))}
    longer = suspect.explains_ns > 0 and not experts.isdisjoint(suspect.rows)
    if not longer or backend not in FUSED or not suspect.next:
        return suspect
    return structs.replace(suspect, next=f"{suspect.next}; {_CONTROL}")


def _by_rules(view: View) -> tuple[Found, ...]:
    """One of each rule: that of the direction which moves more; of two alike, the one the step went."""
    found: dict[str, Found] = {}
    for side in (view, view.other()):
        for rule in rules():
            one = find(rule, side)
            if one and (rule.id not in found or _place(view, one) < _place(view, found[rule.id])):
                found[rule.id] = one
    return tuple(found.values())


@cache
def _rule_places() -> Mapping[str, int]:
    return {rule.id: place for place, rule in enumerate(rules())}


def _place(view: View, found: Found) -> tuple[bool, float, bool, int, str]:
    """Where a suspect stands: of two that are alike what changed goes first, then as the rules are listed."""
    suspect = found.suspect
    against = suspect.explains_ns * view.facts.attribution.step_delta_ns < 0
    opposed = against and abs(suspect.explains_ns) >= OPPOSED.value * found.gross_ns
    weighted_ns = found.gross_ns * WEIGHTS[suspect.confidence].value
    place = _rule_places().get(suspect.id, len(rules()))
    return opposed, -weighted_ns, not found.spoken_for, place, suspect.id


def _without_repeats(ranked: list[Found]) -> list[Found]:
    """Without those whose rows and changes a suspect that is at least as sure has all."""
    kept: list[Found] = []
    for one in ranked:
        covered = any(
            set(one.suspect.rows) <= set(other.suspect.rows)
            and set(one.spoken_for) <= set(other.spoken_for)
            and WEIGHTS[other.suspect.confidence].value >= WEIGHTS[one.suspect.confidence].value
            for other in kept
        )
        if one.is_known or not covered:
            kept.append(one)
    return kept


def _by_changes(view: View, found: tuple[Found, ...]) -> list[Found]:
    """A suspect for each change that can move rows which no rule explained by it."""
    rows = tuple(view.rows.values())
    result = []
    for change in view.facts.changed:
        if change.source == "trace" and not change.what.startswith("gpu"):
            continue  # an observation, which rules look at: no cause
        able = movable(change, rows)
        spoken = {row for one in found if change.what in one.spoken_for for row in one.suspect.rows}
        left = replace(able, rows=tuple(row for row in able.rows if row not in spoken))
        if left.rows:
            result.append(_of_change(view, change, left))
    return result


def _of_change(view: View, change: ComparedChange, able: Movable) -> Found:
    rows = [view.rows[name] for name in able.rows]
    changes = change_sentences(view, (change,))
    suspect = Suspect(
        id=f"knob.{change.what}" if change.source == "configuration" else change.what,
        title=f"{change.what} changed, which can move these rows",
        rows=able.rows,
        explains_ns=sum(row.delta_ns for row in rows),
        confidence="low" if able.is_broad else "medium",
        because=(*changes, *row_sentences(view, rows)),
        next=f"run the new side with {change.what} as on the base, nothing else changed",
        source=able.sources[0],
        seen=changes,
    )
    return Found(suspect, sum(abs(row.delta_ns) for row in rows), (change.what,))
