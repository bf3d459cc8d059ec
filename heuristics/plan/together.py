"""What the first steps of a plan save together: replayed as one, never added up."""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from heuristics.plan.gains import Replayed, most_ns
from heuristics.plan.planned import Planned
from heuristics.result.judged import Combined
from heuristics.run.run import Run
from traces.missing import Missing
from traces.replay.changes.change import Change, Joint, Together

STEPS: Final = 3
"""How many first steps of a plan are replayed as one."""
PAIRED: Final = 5
"""Of how many fixes each pair is replayed."""


def combined_of(
    fixes: Sequence[Planned], run: Run, ranks: Sequence[Replayed]
) -> tuple[Combined, ...] | Missing:
    """What sets of a plan's fixes save together, over the ranks that could be replayed.

    A set is the first steps, then each pair, of the fixes whose own saving was replayed. Missing where a
    recording is too large for it.
    """
    sets = list(_sets(fixes))
    if not sets:
        return ()
    for rank in ranks:
        if isinstance(rank.costs.together, Missing):
            return Missing("combined", rank.costs.together.reason, rank.costs.together.cure)
    for several in sets:
        known = _known(several, run, ranks)
        for rank in ranks:
            _expect(rank, known)
    return tuple(_combined(several, run, ranks) for several in sets)


def _sets(fixes: Sequence[Planned]) -> Iterator[tuple[Planned, ...]]:
    first = tuple(one for one in fixes[:STEPS] if one.low_frac is not None)
    if len(first) > 2:
        yield first
    yield from combinations([one for one in fixes if one.low_frac is not None][:PAIRED], 2)


def _combined(several: Sequence[Planned], run: Run, ranks: Sequence[Replayed]) -> Combined:
    """The range of one set.

    Its upper end is at most the sum of its fixes' own, but for what they hide of each other, and at least the
    largest of them. Its lower end may be below that of its best fix, where another may cost time.
    """
    known = _known(several, run, ranks)
    joints = [_joint(rank, known) for rank in ranks]
    whole_ns = sum(rank.window_ns for rank in ranks)
    low, high, beyond = (
        sum(values) / whole_ns
        for values in zip(*((one.low_ns, one.high_ns, one.beyond_ns) for one in joints), strict=True)
    )
    ceilings = [one.ceiling_frac or 0.0 for one in several]
    high = max(min(high, sum(ceilings) + beyond), *ceilings)
    return Combined(tuple(one.fix.id for one in several), (min(low, high), high))


def _known(several: Sequence[Planned], run: Run, ranks: Sequence[Replayed]) -> dict[str, Change]:
    """The changes that some fixes stand for, by kind, as found on any rank."""
    kinds = {kind for one in several for kind in one.fix.changes(run)}
    return {one.kind: one for rank in ranks for one in rank.changes if one.kind in kinds}


def _found(rank: Replayed, known: Collection[str]) -> dict[str, Change]:
    return {one.kind: one for one in rank.changes if one.kind in known}


def _expect(rank: Replayed, known: Collection[str]) -> None:
    """Let a rank learn what it will be asked."""
    if isinstance(rank.costs.together, Together):
        rank.costs.together.expect(_found(rank, known))


def _joint(rank: Replayed, known: dict[str, Change]) -> Joint:
    """What the known kinds of change save on one rank; what was not found there, at most what it acts on."""
    found = _found(rank, known)
    elsewhere_ns = sum(most_ns(rank.costs, one) for kind, one in known.items() if kind not in found)
    together = rank.costs.together
    if together is None or isinstance(together, Missing):
        low_ns = sum(one.low_ns or 0 for one in found.values())
        return Joint(low_ns, elsewhere_ns + sum(one.high_ns for one in found.values()), 0)
    joint = together.joint(found)
    return Joint(joint.low_ns, joint.high_ns + elsewhere_ns, joint.beyond_ns)
