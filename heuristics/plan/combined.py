"""What several fixes of a plan save together: their changes replayed as one, on each rank."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from heuristics.plan.gains import Kinds, Replayed, most_ns
from heuristics.plan.planned import Planned, ids_of
from heuristics.result.judged import Combined
from heuristics.run.run import Run
from traces.missing import Missing
from traces.replay.changes.change import Change, Joint, Together

STEPS: Final = 3
"""How many first steps of a plan are replayed as one."""


PAIRED: Final = 5
"""Of how many fixes each pair is replayed."""


Replay = Callable[[Sequence[tuple[Replayed, Sequence[Kinds]]]], Sequence[Sequence[Joint]]]
"""Of each rank the kinds of change that are to be made as one -> what each of these saves."""


def replay_here(asked: Sequence[tuple[Replayed, Sequence[Kinds]]]) -> list[list[Joint]]:
    return [
        [rank.costs.together.joint(kinds) for kinds in several if isinstance(rank.costs.together, Together)]
        for rank, several in asked
    ]


def combined_of(
    fixes: Sequence[Planned], run: Run, ranks: Sequence[Replayed], replay: Replay = replay_here
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
    changes = [_changes(several, run, ranks) for several in sets]
    asked = [
        (rank, list(dict.fromkeys(_found(rank, several) for several in changes if rank.costs.together)))
        for rank in ranks
    ]
    joints = [
        dict(zip(kinds, answers, strict=True))
        for (_, kinds), answers in zip(asked, replay(asked), strict=True)
    ]
    return tuple(
        _combined(several, ranks, [_joint(*one, known) for one in zip(ranks, joints, strict=True)])
        for several, known in zip(sets, changes, strict=True)
    )


def _sets(fixes: Sequence[Planned]) -> Iterator[tuple[Planned, ...]]:
    first = tuple(one for one in fixes[:STEPS] if one.low_frac is not None)
    if len(first) > 2:
        yield first
    yield from combinations([one for one in fixes if one.low_frac is not None][:PAIRED], 2)


def _combined(several: Sequence[Planned], ranks: Sequence[Replayed], joints: Sequence[Joint]) -> Combined:
    """The range of one set, of which each rank saves its joint.

    Its upper end is at most the sum of its fixes' own, but for what they hide of each other, and at least the
    largest of them. Its lower end may be below that of its best fix, where another may cost time.
    """
    whole_ns = sum(rank.window_ns for rank in ranks)
    low, high, beyond = (
        sum(values) / whole_ns
        for values in zip(*((one.low_ns, one.high_ns, one.beyond_ns) for one in joints), strict=True)
    )
    ceilings = [one.ceiling_frac or 0.0 for one in several]
    high = max(min(high, sum(ceilings) + beyond), *ceilings)
    return Combined(ids_of(several), (min(low, high), high))


def _changes(several: Sequence[Planned], run: Run, ranks: Sequence[Replayed]) -> dict[str, Change]:
    kinds = {kind for one in several for kind in one.fix.changes(run)}
    return {one.kind: one for rank in ranks for one in rank.changes if one.kind in kinds}


def _found(rank: Replayed, known: Collection[str]) -> Kinds:
    return tuple(one.kind for one in rank.changes if one.kind in known)


def _joint(rank: Replayed, joints: Mapping[Kinds, Joint], known: Mapping[str, Change]) -> Joint:
    """What the known kinds of change save on one rank; what was not found there, at most what it acts on."""
    found = _found(rank, known)
    elsewhere_ns = sum(most_ns(rank.costs, one) for kind, one in known.items() if kind not in found)
    if rank.costs.together is None:
        own = [one for one in rank.changes if one.kind in found]
        return Joint(sum(one.low_ns or 0 for one in own), elsewhere_ns + sum(one.high_ns for one in own), 0)
    joint = joints[found]
    return Joint(joint.low_ns, joint.high_ns + elsewhere_ns, joint.beyond_ns)
