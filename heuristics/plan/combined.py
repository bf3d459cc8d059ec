"""What several fixes of a plan save together: their changes replayed as one, on each rank."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Final

from heuristics.plan.gains import Kinds, Replayed, most_ns
from heuristics.plan.planned import Planned, ids_of
from heuristics.result.judged import Combined
from heuristics.run.run import Run
from traces.missing import Missing
from traces.replay.changes.change import Change, ChangesTogether, Joint

STEPS: Final = 3
"""How many first steps of a plan are replayed as one."""
PAIRED: Final = 5
"""Of how many fixes each pair is replayed."""
Replay = Callable[[Sequence[tuple[Replayed, Sequence[Kinds]]]], Sequence[Sequence[Joint]]]
"""Of each rank the kinds of change that are to be made as one -> what each of these saves."""


def replay_here(kinds_of_ranks: Sequence[tuple[Replayed, Sequence[Kinds]]]) -> list[list[Joint]]:
    answers = list[list[Joint]]()
    for rank, kind_sets in kinds_of_ranks:
        together = rank.costs.together
        answers.append(
            list(map(together.joint, kind_sets)) if isinstance(together, ChangesTogether) else []
        )
    return answers


def combined_of(
    fixes: Sequence[Planned], run: Run, ranks: Sequence[Replayed], replay: Replay = replay_here
) -> tuple[Combined, ...] | Missing:
    """What sets of a plan's fixes save together, over the ranks that could be replayed.

    A set is the first steps, then each pair, of the fixes whose own saving was replayed. Missing
    where a recording is too large for it.
    """
    sets = list(_sets(fixes))
    if not sets:
        return ()
    every = dict[str, Change]()
    for rank in ranks:
        if isinstance(rank.costs.together, Missing):
            return Missing("combined", rank.costs.together.reason, rank.costs.together.cure)
        every |= rank.by_kind
    changes, kinds_of_ranks, joints, combined = [], [], [], list[Combined]()
    for fix_set in sets:
        kinds = set(chain.from_iterable(step.fix.changes(run) for step in fix_set))
        changes.append({kind: change for kind, change in every.items() if kind in kinds})
    for rank in ranks:
        to_replay = dict.fromkeys(_kinds_found(rank, known) for known in changes)
        kinds_of_ranks.append((rank, list(to_replay) if rank.costs.together else []))
    for (_, made), answers in zip(kinds_of_ranks, replay(kinds_of_ranks), strict=True):
        joints.append(dict(zip(made, answers, strict=True)))
    for fix_set, known in zip(sets, changes, strict=True):
        combined.append(_combined(fix_set, known, ranks, joints))
    return tuple(combined)


def _sets(fixes: Sequence[Planned]) -> Iterator[tuple[Planned, ...]]:
    replayed = [step for step in fixes if step.low_frac is not None]
    if len(replayed) >= STEPS and replayed[STEPS - 1] is fixes[STEPS - 1]:  # as all before it
        yield tuple(replayed[:STEPS])
    yield from combinations(replayed[:PAIRED], 2)


def _combined(
    fix_set: Sequence[Planned],
    known: Mapping[str, Change],
    ranks: Sequence[Replayed],
    joints: Sequence[Mapping[Kinds, Joint]],
) -> Combined:
    """The range of one set: on each rank the joint of its changes; of one not found, at most what
    it acts on.

    Its upper end is at most the sum of its fixes' own, but for what they hide of each other, and at
    least the largest of them. Its lower end may be below that of its best fix, where another may
    cost time.
    """
    low_ns = high_ns = beyond_ns = whole_ns = 0
    for rank, joint_of in zip(ranks, joints, strict=True):
        whole_ns += rank.window_ns
        kinds = _kinds_found(rank, known)
        for kind, change in known.items():
            if kind not in kinds:
                high_ns += most_ns(rank.costs, change)
        if rank.costs.together is None:
            for change in rank.changes:
                if change.kind in kinds:
                    low_ns += change.low_ns or 0
                    high_ns += change.high_ns
        else:
            joint = joint_of[kinds]
            low_ns, high_ns = low_ns + joint.low_ns, high_ns + joint.high_ns
            beyond_ns += joint.beyond_ns
    ceilings = [step.ceiling_frac or 0.0 for step in fix_set]
    high = max(min(high_ns / whole_ns, sum(ceilings) + beyond_ns / whole_ns), *ceilings)
    return Combined(ids_of(fix_set), (min(low_ns / whole_ns, high), high))


def _kinds_found(rank: Replayed, known: Collection[str]) -> Kinds:
    return tuple(kind for kind in rank.by_kind if kind in known)
