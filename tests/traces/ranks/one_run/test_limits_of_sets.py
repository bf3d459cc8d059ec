"""Which recordings are of one run: of each rule the case at its edge, and the nearest that is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.recordings.ranks import MS, US, Part, Work, analyse_run, array, shifted, summary_of, together
from traces.limits import MOST_RANKS
from traces.missing import Missing
from traces.ranks.matching.match import match
from traces.ranks.one_run import problems
from traces.ranks.one_run import together as one_run
from traces.ranks.one_run.align import Aligned, Clocks
from traces.ranks.one_run.problems import RecordingProblem
from traces.ranks.one_run.together import put_together
from traces.ranks.summaries.first_steps import without_warm_ups
from traces.ranks.summaries.identity import WorldSize, with_numbers, with_world_size, world_size_of
from traces.ranks.summaries.summary import UNKNOWN, FirstStep, Group, GroupSource, Operation, RankSummary
from traces.ranks.waiting.arrivals import _by_order, arrives_last
from traces.ranks.waiting.waits import measure_waits
from traces.sections.cause import ProblemKind, Sure
from traces.sections.run import ArrivesLast

S = 1_000 * MS
ONE_CLOCK = Clocks(True, 0, ())


def one(number: int, *keys: int, at_s: float | None = None, **identity: Any) -> RankSummary:
    """A recording of 1 s, of communicators of these keys, begun at a time where that is told."""
    groups = [Group(GroupSource.COMMUNICATOR, key) for key in keys]
    told = {"rank": None, "session_start_ns": None if at_s is None else round(at_s * S), "end_ns": S}
    made = summary_of(number, [], groups or [Group(GroupSource.ORDER, 1)])
    return replace(made, identity=replace(made.identity, **told | {"device": 0} | identity))


Check = Callable[[problems.Left], list[RecordingProblem]]


def gone(check: Check, *several: RankSummary) -> list[int]:
    found = check(dict(enumerate(several)))
    assert all(problem.left_out for problem in found)
    return sorted(index for problem in found for index in problem.indices)


def test_a_recording_is_there_again_where_its_device_is_the_same_too() -> None:
    same = problems.same_recordings
    assert gone(same, one(0, recording=7), one(1), one(2, recording=7), one(3, recording=7)) == [2, 3]
    assert gone(same, one(0, recording=7), one(1, recording=7, device=1)) == []


def test_of_recordings_of_one_rank_that_one_stays_whose_communicator_most_others_have() -> None:
    same = problems.same_ranks
    several = [one(0, 7, rank=3), one(1, 8, 9, rank=3), one(2, 8, rank=4), one(3, 8), one(4, 7)]
    assert gone(same, *several) == [0]
    assert gone(same, *several[:2]) == [1]  # of equals the first stays
    assert gone(same, one(0, rank=3), one(1, 8, rank=3), one(2, rank=None), one(3, rank=None)) == [0]


@pytest.mark.parametrize(("sizes", "others"), [((8, 8, 4, None), [2]), ((4, 8), [1]), ((None, None, 4), [])])
def test_another_size_than_most_recorded_is_of_another_run(
    sizes: list[int | None], others: list[int]
) -> None:
    several = [one(number, world_size=size) for number, size in enumerate(sizes)]
    assert gone(problems.other_sizes_and_times, *several) == others
    given = [replace(each, identity=replace(each.identity, world_size_from="a:1")) for each in several]
    assert gone(problems.other_sizes_and_times, *given) == []
    told_once = (one(number, world_size=size, at_s=999 * number) for number, size in ((0, 8), (0, 8), (1, 4)))
    assert gone(problems.other_sizes_and_times, *told_once) == [2]


@pytest.mark.parametrize(
    ("at_s", "others"), [([0, 0, 61], []), ([0, 0, 61.1], [2]), ([0, 50, 100, 200, 201], [3, 4])]
)
def test_recorded_a_minute_after_the_last_of_the_others_is_of_another_run(
    at_s: list[float], others: list[int]
) -> None:
    """Each lasts a second; what is in between holds two together."""
    several = [one(number, at_s=each) for number, each in enumerate(at_s)]
    assert gone(problems.other_sizes_and_times, *several) == others
    untold = [*several, one(9), one(10, at_s=9_999, begin_ns=S)]
    assert gone(problems.other_sizes_and_times, *untold) == others


def test_a_set_of_communicators_whose_ranks_a_larger_set_has_too_is_another_run() -> None:
    first = [one(rank, 7, rank=rank) for rank in range(3)]
    second = [one(5 + rank, 8, rank=rank) for rank in range(2)]
    assert gone(problems.other_runs, *second, *first) == [0, 1]
    assert gone(problems.other_runs, *first, one(5, 8, rank=4)) == []  # of no rank that is there
    assert gone(problems.other_runs, *first, one(5, rank=0)) == []  # of no communicator
    assert gone(problems.other_runs, one(0, 7), one(1, 8)) == []  # of ranks that nothing tells
    assert gone(problems.other_runs, *first, one(5, 7, rank=0)) == []  # of the same set: one rank twice


@pytest.mark.parametrize(
    ("second", "others"),
    [
        (one(1, at_s=2, process=5), [1]),
        (one(1, at_s=1, process=5), []),  # as the first ends
        (one(1, at_s=-0.5, process=5), []),
        (one(1, at_s=-1, process=5), []),  # until the first begins
        *((one(1, at_s=2, process=6), []), (one(1, at_s=2, process=5, device=1), [])),
        *((one(1, at_s=2, process=5, rank=1), []), (one(1, process=5), [])),
        (one(1, 9, at_s=2, process=5), []),  # a communicator joins the two
    ],
)
def test_a_process_on_a_gpu_at_two_times_is_two_runs(second: RankSummary, others: list[int]) -> None:
    first = one(0, *(group.key for group in second.groups if group.key == 9), at_s=0, process=5)
    assert gone(problems.same_processes, first, second) == others
    beside = [one(number, at_s=2.5) for number in (7, 8)]
    kept = [0] if others else []
    assert gone(problems.same_processes, first, second, *beside) == kept  # beside which more were recorded


def test_of_several_of_one_process_each_is_held_beside_the_first_and_the_one_before() -> None:
    last = one(2, at_s=1.5, process=5)
    for begins_s in ((0, 0.9), (1, 0.2)):  # before which the first ended, and the second
        first, second = (one(number, at_s=at_s, process=5) for number, at_s in enumerate(begins_s))
        assert gone(problems.same_processes, first, second, last) == [2]
    first, second, third = (one(number, at_s=at_s, process=5) for number, at_s in enumerate((0, 3, 0.5)))
    assert gone(problems.same_processes, first, second, third, one(3, at_s=3.5)) == [1]  # not the third too


@pytest.mark.parametrize(
    ("strangers", "trace", "size", "left_out"),
    [(1, "a", None, True), (1, "0.sqlite", None, False), (1, "a", 8, False), (2, "0.sqlite", 8, True)],
)
def test_who_met_none_of_most_stays_where_it_is_alone_and_of_their_recording_or_recorded_size(
    strangers: int, trace: str, size: int | None, left_out: bool
) -> None:
    several = []
    for rank in range(3 + strangers):
        key = 7 if rank < 3 else 9
        made = summary_of(rank, [Part(0, 0, 10, 20)], [Group(GroupSource.COMMUNICATOR, key)], world_size=size)
        named = replace(made.identity, trace=trace if key == 9 else made.identity.trace)
        several.append(replace(made, identity=named))
    (found,) = put_together(several).of_kind(ProblemKind.APART)
    assert (found.indices, found.left_out) == (tuple(range(3, 3 + strangers)), left_out)


def sized(ranks: int | None, said: str | None, rank: int | None = None) -> RankSummary:
    return one(rank or 0, world_size=ranks, world_size_from=said, rank=rank)


@pytest.mark.parametrize(
    ("several", "size"),
    [
        ([sized(8, "a:1"), sized(4, None)], WorldSize(4)),
        ([sized(4, "a:1"), sized(8, "b:2"), sized(8, "b:2")], WorldSize(8, "b:2")),
        ([sized(8, "a:1"), sized(4, "b:2")], WorldSize(4, "b:2")),  # of as many the smaller, in any order
        ([sized(2, "a:1")] * 3, None),  # there are three
        ([sized(8, "a:1", rank=7)], WorldSize(8, "a:1")),
        ([sized(8, "a:1", rank=8)], None),  # and a ninth
        ([sized(2, None)] * 3, WorldSize(2)),  # what was recorded holds
        ([sized(int(MOST_RANKS.value), None)], WorldSize(int(MOST_RANKS.value))),
        ([sized(int(MOST_RANKS.value) + 1, None)], None),
        ([sized(None, None)], None),
    ],
)
def test_the_size_of_the_world_is_recorded_else_given_and_large_enough(
    several: list[RankSummary], size: WorldSize | None
) -> None:
    assert world_size_of(several) == world_size_of(several[::-1]) == size


def test_a_size_that_is_given_fills_what_was_not_recorded() -> None:
    told = with_world_size(one(0), WorldSize(8, "a:1")).identity
    assert (told.world_size, told.world_size_from) == (8, "a:1")
    assert with_world_size(one(0), WorldSize(8)).identity.world_size_from == "given"
    recorded = one(0, world_size=4)
    assert with_world_size(recorded, WorldSize(8)) == recorded == with_world_size(recorded, None)


@pytest.mark.parametrize(("size", "numbers"), [(3, [0, 2, 1]), (2, [None] * 3)])
def test_a_place_among_all_ranks_is_the_number_of_a_rank(size: int, numbers: list[int | None]) -> None:
    """Of two a communicator may be one of some pair; what one of them does not have is not of all."""

    def placed(*owns: tuple[int, int]) -> RankSummary:
        groups = tuple(Group(GroupSource.COMMUNICATOR, key, size, own=own) for key, own in owns)
        return replace(one(owns[0][1], world_size=size), groups=groups)

    ranks = [placed((7, 0), (8, 1)), placed((7, 2)), placed((7, 1), (8, 0))]
    assert [each.identity.rank for each in with_numbers(ranks)] == numbers
    assert with_numbers([placed((7, 0), (8, 1))])[0].identity.rank is None  # two places that differ
    pair = replace(one(0, world_size=3), groups=(Group(GroupSource.COMMUNICATOR, 7, 2, own=1),))
    assert with_numbers([pair])[0].identity.rank is None


def of_ranks(
    *numbers: int, size: int | None, own: bool = True, world: int | None = None
) -> list[RankSummary]:
    """Ranks of one communicator, of so many; `own`: each with its place in it, which is its number."""
    parts = [Part(0, number, 100 * number, 100 * number + 10) for number in range(4)]
    return [
        summary_of(
            rank,
            parts,
            [Group(GroupSource.COMMUNICATOR, 7, size, own=rank if own else None)],
            world_size=world,
        )
        for rank in numbers
    ]


def without_numbers(ranks: list[RankSummary]) -> list[RankSummary]:
    return [replace(each, identity=replace(each.identity, rank=None)) for each in ranks]


WHOLE = Group(GroupSource.COMMUNICATOR, 8, 2, own=0)
"""Both ranks of another communicator are there."""


@pytest.mark.parametrize(
    ("ranks", "missing"),
    [
        *((of_ranks(0, 2, size=None, world=4), (1, 3)), (of_ranks(0, 1, 2, 3, size=None, world=4), None)),
        *((of_ranks(0, 2, size=None), (1,)), (of_ranks(0, 1, size=None), None)),
        *((of_ranks(0, 2, size=5), (1, 3, 4)), (of_ranks(0, 1, 2, size=3), None)),
        (of_ranks(0, 2, size=5, own=False), (1,)),
        ([replace(each, groups=(*each.groups, WHOLE)) for each in of_ranks(0, 1, size=4)], (2, 3)),
        (without_numbers(of_ranks(0, 2, size=5)), ()),
        (without_numbers(of_ranks(0, 2, size=None, world=4)), ()),
    ],
)  # fmt: skip
def test_which_ranks_are_missing_by_the_world_the_communicator_or_the_numbers(
    ranks: list[RankSummary], missing: tuple[int, ...] | None
) -> None:
    found = [each for each in put_together(ranks).problems if each.kind is ProblemKind.MISSING_RANKS]
    assert [each.ranks for each in found] == ([] if missing is None else [missing])
    assert put_together(ranks).all_ranks_seen is (missing is None)


@pytest.mark.parametrize(
    ("own_us", "steps"), [((50, 50), 4), ((51, 51), 3), ((0, 100), 4), ((49, 100, 53), 3)]
)
def test_a_first_step_is_a_warm_up_where_the_median_rank_spends_more_than_half_of_it_itself(
    own_us: tuple[int, ...], steps: int
) -> None:
    """Each rank's first step of four takes 100 us more than the others, so many outside of waiting."""
    works = [[Work(compute=100 + us), *map(Work, (80, 120, 100))] for us in own_us]
    ranks = []
    for each, us in zip(together(works, per_step=1), own_us, strict=True):
        start = each.steps.start_ns.copy()
        start[0] = each.steps.end_ns[0] - 210 * US
        exposed = each.steps.exposed_comm_ns.copy()
        exposed[0] = (110 - us) * US
        parts = replace(each.steps, start_ns=start, exposed_comm_ns=exposed)
        ranks.append(replace(each, steps=parts, first_step=FirstStep.LONGER))
    assert [len(each.steps) for each in without_warm_ups(ranks)] == [steps] * len(ranks)
    equal = [{"start": 100 * number, "end": 100 * number + 100} for number in range(4)]
    no_longer = [replace(summary_of(rank, [], steps=equal), first_step=FirstStep.LONGER) for rank in (0, 1)]
    assert [len(each.steps) for each in without_warm_ups(no_longer)] == [3, 3]
    assert [len(each.steps) for each in without_warm_ups(ranks[:1])] == [3]  # one alone does not tell
    initialising = replace(ranks[0], first_step=FirstStep.INITIALISES)
    assert [len(each.steps) for each in without_warm_ups([initialising, *ranks])[1:]] == [3] * len(ranks)


@dataclass(frozen=True)
class Put:
    """Collectives put together, of which groups are known by order: as far as it is asked here."""

    name: str
    by_order: Any
    clocks: object = None
    agreed: bool = True

    def take(self, which: Any) -> Put:
        return replace(self, name=f"{self.name} {which.tolist()}")


@pytest.mark.parametrize(
    ("by_order", "joints", "fitted", "held", "taken", "asked"),
    [
        ((False, False), None, "78", (9, 0), ("matched", None, True), []),
        ((True, False), None, "78", (0, 9), ("again", None, True), ["matched [False, True]"]),
        ((True, False), None, "7", (9, 0), ("matched", None, True), ["matched [False, True]"]),
        ((True, False), None, None, (9, 0), ("matched", None, True), ["matched [False, True]"]),
        ((True, True), "78", "78", (0, 9), ("again", "78", True), []),
        ((True, True), None, "78", (5, 5), ("again", None, True), ["matched", "again"]),
        ((True, True), None, "78", (4, 5), ("matched", None, False), ["matched", "again"]),
        ((True, True), None, None, (9, 0), ("matched", None, False), ["matched"]),
    ],
)
def test_groups_known_by_order_are_put_together_again_on_a_clock_of_all(
    monkeypatch: pytest.MonkeyPatch, by_order: tuple[bool, bool], joints: str | None, fitted: str | None,
    held: tuple[int, int], taken: tuple[str, str | None, bool], asked: list[str],
) -> None:  # fmt: skip
    """`joints`: clocks that the order of all gives; `fitted`: those of what is aligned, of 7 and 8."""
    seen: list[str] = []

    def aligned(_: object, one: Put) -> Any:
        seen.append(one.name)
        clocks = SimpleNamespace(
            aligned=fitted is not None, by_fingerprint=lambda: dict.fromkeys(fitted or "78")
        )
        return SimpleNamespace(clocks=clocks)

    monkeypatch.setattr(
        one_run, "match", lambda _, fits=None: Put("again" if fits else "matched", np.array(by_order))
    )
    monkeypatch.setattr(one_run, "align", aligned)
    monkeypatch.setattr(one_run, "by_joints", lambda _: (joints, False))
    monkeypatch.setattr(one_run, "clocks_of", lambda _: ("78", None))
    monkeypatch.setattr(one_run, "_held", lambda one, _: held[one.name == "matched"])
    found: Any = one_run._matched({})
    assert (found.name, found.clocks, found.agreed) == taken
    assert seen == asked
    monkeypatch.setattr(one_run, "by_sessions", lambda _: "9")
    monkeypatch.setattr(one_run, "hold", lambda *_: True)
    assert str(one_run._matched({}).clocks) == str("9" if any(by_order) and joints is None else joints)


def test_participations_hold_where_they_join_all_ranks() -> None:
    for keys, held in (((7, 7, 7, 7), 4), ((7, 7, 8, 8), 0)):
        part = [Part(0, 0, 10, 20)]
        matched = match(
            [summary_of(n, part, [Group(GroupSource.COMMUNICATOR, key)]) for n, key in enumerate(keys)]
        )
        assert one_run._held(matched, Aligned(matched.start_ns, matched.end_ns, ONE_CLOCK)) == held


def last_of(*lasts_us: Sequence[float], steps: int = 1) -> Any:
    """Who arrives last in collectives of 1 ms apart, by how long each rank is in each of them."""
    parts = [
        [
            Part(0, turn, 1_000 * turn + 500 - each[rank], 1_000 * turn + 500)
            for turn, each in enumerate(lasts_us)
        ]
        for rank in range(len(lasts_us[0]))
    ]
    group = [Group(GroupSource.COMMUNICATOR, 7, len(parts))]
    used = [summary_of(rank, each, group) for rank, each in enumerate(parts)]
    matched = match(used)
    waits = measure_waits(matched, Aligned(matched.start_ns, matched.end_ns, ONE_CLOCK))
    return arrives_last(used, matched, waits, steps, all_ranks_seen=True)


def test_of_several_collectives_one_rank_must_have_most_of_the_waiting_and_many_make_it_sure() -> None:
    first, second, third, fourth = ([110.0] * place + [10.0] + [110.0] * (3 - place) for place in range(4))
    three = last_of(first, first, second, third)
    assert isinstance(three, Missing)  # half is a quarter above a quarter
    most = last_of(first, first, first, second)
    assert (most.indices, most.waiting_frac, most.wait_ns, most.collectives) == ((0,), 0.75, 900 * US, 4)
    assert isinstance(last_of(first, second, third, fourth), Missing)
    others = [second, third, fourth, second, third, fourth, second, third]
    for count, told in ((13, True), (12, False)):  # ABOVE: of twenty thirteen are 0.4 above a quarter
        assert isinstance(last_of(*[first] * count, *others[: 20 - count]), ArrivesLast) is told
    for us, told in ((870, True), (871, False)):  # WALL: a tenth of all time in collectives
        assert isinstance(last_of([us, 1_000, 1_000, 1_000]), ArrivesLast) is told
    assert last_of([110.0, 10, 110]).indices == (1,)
    assert last_of([110.0, 10]).reason == last_of([110.0, 10], [110.0, 10]).reason != three.reason
    sure = [last_of(*[first] * count, steps=steps).confidence for count, steps in ((11, 2), (12, 1), (12, 2))]
    assert sure == [Sure.LOW, Sure.MEDIUM, Sure.HIGH]


@pytest.mark.parametrize("source", [GroupSource.ORDER, GroupSource.COMMUNICATOR, GroupSource.PROCESS_GROUP])
def test_one_collective_shows_the_node_that_arrives_last(source: GroupSource) -> None:
    """By how long it is on each rank of three nodes, in us, every one by a clock of its own."""
    lasts_us = 55_000, 52_000, 63_000, 35_000, 34_800, 35_200, 48_000, 50_000, 61_000
    ranks = []
    for rank, us in enumerate(lasts_us):
        part = Part(0, 0, 100_000 - us, 100_000, step=UNKNOWN)
        group = Group(source, 7, None if source is GroupSource.ORDER else 9)
        each = summary_of(rank, [part], [group], world_size=9)
        each = replace(each, identity=replace(each.identity, device=rank % 3))
        ranks.append(shifted(each, 7_000_000 * (rank // 3) + 137 * rank))
    last = analyse_run(ranks).arrives_last
    assert isinstance(last, ArrivesLast)
    assert (last.indices, last.host, last.collectives) == ((3, 4, 5), "node 1", 1)
    assert (last.waiting_frac, last.confidence) == (1.0, Sure.LOW)
    assert last.wait_ns == sum(US * (us - 34_800) for us in lasts_us)
    assert last.by_order is (source is GroupSource.ORDER)
    first, *others = ranks
    gathers = replace(first, instances=replace(first.instances, operation=array([Operation.ALL_GATHER])))
    sends = [replace(one, instances=replace(one.instances, operation=array([0]))) for one in ranks]
    none = replace(first, instances=first.instances.take(array([])))
    several = ranks, ranks[:3], ranks[:2], [gathers, *others], sends, [none, *others], [none] * 3
    assert [_by_order(used) is not None for used in several] == [last.by_order] * 2 + [False] * 5
