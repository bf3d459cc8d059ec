"""The order that pays: what a replay defends comes first, largest first, each fix after what it waits for."""

from collections.abc import Sequence

from heuristics.plan.planned import Planned
from heuristics.walls.price import LITTLE


def in_paying_order(fixes: Sequence[Planned], first: Sequence[str] = ()) -> list[Planned]:
    """Fixes by the saving that their replay defends, whatever their wall.

    Those whose ids are in `first` lead, in its order. After the defended ones come those without a defended
    saving, in the order they have, then those that gain little at most, then those that a recipe may have
    already. One that others wait for stands before them.
    """
    result: list[Planned] = []
    lead = {number: place for place, number in enumerate(first)}
    for one in sorted(fixes, key=lambda one: (lead.get(one.fix.id, len(lead)), *_place(one))):
        _put(one, fixes, result)
    return result


def _place(one: Planned) -> tuple[int, float]:
    """How late a fix comes, and what it is sorted by among those as late."""
    if any(need.late for need in one.preconditions):
        return 3, 0.0
    if one.ceiling_frac is not None and one.ceiling_frac < LITTLE.value:
        return 2, 0.0
    return (0, -one.low_frac) if one.low_frac is not None and one.low_frac > 0 else (1, 0.0)


def _put(one: Planned, fixes: Sequence[Planned], result: list[Planned]) -> None:
    """Append a fix after the earlier ones that it waits for."""
    if one in result:
        return
    needs = {*one.after, *(need.cure for need in one.preconditions if need.state != "met")} - {""}
    for other in fixes[: fixes.index(one)]:
        if {other.fix.id, other.fix.same_as} & needs:
            _put(other, fixes, result)
    result.append(one)
