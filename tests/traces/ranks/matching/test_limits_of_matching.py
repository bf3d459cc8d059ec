"""Which ends belong together: at each limit a case, and one just beyond; and what a summary may hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings.ranks import US, Part, array, summary_of
from traces.arrays import IntArray
from traces.errors import DamagedTrace
from traces.intervals import spans
from traces.limits import MOST_RANKS
from traces.names.kernels import COMM_KINDS
from traces.ranks.clocks.clock_fit import in_common, in_time_of
from traces.ranks.clocks.rendezvous import Sequences, _pairs, _strides, sequences_of
from traces.ranks.matching import communicators
from traces.ranks.matching import match as matching
from traces.ranks.matching.communicators import shift_between
from traces.ranks.matching.gathered import OnClock, by_clock
from traces.ranks.matching.match import by_joints, match
from traces.ranks.summaries import codec
from traces.ranks.summaries.collectives import SpentInstants, _before, _of_all, _sequences, _turns
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import (
    UNKNOWN,
    ExpertWork,
    Group,
    GroupSource,
    Instances,
    Messages,
    Operation,
    Peers,
    RankSummary,
    StepParts,
    in_steps,
    messages_beside,
    recorded_of,
)


def ns(us: Sequence[float]) -> IntArray:
    return np.array([round(each * US) for each in us], dtype=np.int64)


APART = [[(0, 0)], [(1, 0)]]


def test_two_sequences_of_one_rank_are_in_no_one_group() -> None:
    ends = ns(range(0, 800, 100))
    assert by_clock([OnClock(0, ends - 5_000, ends)] * 2) == APART


@pytest.mark.parametrize(("each", "count"), [
    ((0, 0.5, 3.3, 3.8), 1), ((0, 0.5, 3.4, 3.9), 2),
    ((0, 0.5, 2.5, 3, 7, 7.5), 1), ((0, 0.5, 2.5, 3, 7.01, 7.51), 3),  # pairs 2 us apart, of all 4 us from 8
])  # fmt: skip
def test_pairs_are_groups_where_they_lie_farther_apart_than_a_group_of_all_from_the_next(
    each: Sequence[float], count: int
) -> None:
    """Of a pair ends lie within the finest 1 us, and others may be 8 us away: 2.83 us is as far from both."""
    ends = [ns([at + us for at in range(0, 800, 100)]) for us in each]
    assert len(by_clock([OnClock(place, one - 50 * US, one) for place, one in enumerate(ends)])) == count


@pytest.mark.parametrize(("others_us", "places"), [
    ((200, 200.5, 200.7, 200.9), (4, 5, 6, 7)),  # then all are of one size, though all may be one
    ((90, 90.5, 90.7, 90.9), (2, 5, 6, 7)),  # who is nearer is with another sequence of the same rank
])  # fmt: skip
def test_two_slow_links_of_a_group_come_to_the_others_of_it_where_that_makes_groups_of_one_size(
    others_us: Sequence[float], places: Sequence[int]
) -> None:
    """Ends of 0 and 1 lie together, of 2 and 3 50 us later; of four others the last lost its first."""
    ends = [ns(range(1_000, 9_000, 1_000)) + round(us * US) for us in (0, 0.5, 50, 50.3, *others_us)]
    ends[-1] = ends[-1][1:]
    each = [OnClock(at, end - 400 * US, end) for at, end in zip((0, 1, 2, 3, *places), ends, strict=True)]
    assert by_clock(each) == [[(0, 0), (1, 0), (2, 0), (3, 0)], [(4, 0), (5, 0), (6, 0), (7, 1)]]


EVERY_30 = np.arange(0, 600, 30)
ENDS = [100.0, 230, 320, 570, 680, 755]


@pytest.mark.parametrize(
    ("own", "led", "one_clock", "found"),
    [
        ([0, 100, 200], [40, 140, 240], True, (40_000, 0)),  # TOGETHER
        ([0, 100, 200], [40.001, 140.001, 240.001], True, None),
        ([0, 100, 200], [9_040, 9_140, 9_240], False, (0, 0)),
        ([0], [0], True, None),
        (EVERY_30, EVERY_30 + 20, True, (20_000, 0)),  # as it is: not twice as far as shifted by one
        (EVERY_30, EVERY_30 + 21, True, (9_000, -1)),
        (EVERY_30, EVERY_30 - 21, True, (9_000, 1)),
        (EVERY_30, EVERY_30 + 29.5, True, (500, -1)),
        ([*ENDS, 990], [680, 755, 990, 5_000, 6_100, 7_300, 8_600, 9_000, 9_700], True, None),  # of 7
        ([*ENDS, 990], [570, 680, 755, 990, 5_000, 6_100, 7_300, 8_600, 9_000], True, (0, -3)),
    ],
)
def test_a_shift_is_taken_where_ends_lie_twice_as_near_by_it(
    own: Sequence[float], led: Sequence[float], one_clock: bool, found: tuple[float, int] | None
) -> None:
    assert shift_between(ns(own), ns(led), one_clock=one_clock) == found


def test_of_shifts_that_contradict_those_that_fit_best_count(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = {(0, 1): (100.0, 5), (1, 2): (200.0, 5), (0, 2): (300.0, 0)}
    monkeypatch.setattr(communicators, "shift_between", lambda own, led, **_: fits[led[0], own[0]])
    flat: Any = SimpleNamespace(rows=SimpleNamespace(end_ns=np.arange(3)), place_of=lambda rows: 0)
    found = communicators._gathered(flat, [*np.arange(3)[:, None]], [0])
    assert found == [[(0, 0), (1, 5), (2, 10)]]


@pytest.mark.parametrize("source", [GroupSource.COMMUNICATOR, GroupSource.PROCESS_GROUP])
@pytest.mark.parametrize(("looked_at", "sizes"), [(6, [2, 3, 3, 3, 3]), (5, [3, 3, 3, 3, 3])])
def test_where_a_recording_lost_the_first_its_ends_not_its_numbers_say_which_they_are(
    monkeypatch: pytest.MonkeyPatch, looked_at: int, sizes: list[int], source: GroupSource
) -> None:
    """Of another group each has five, the last rank the last ones: that is seen where all are looked at."""
    monkeypatch.setattr(matching, "_LOOKED_AT", looked_at)
    both = [Group(source, key, 3) for key in (7, 8)]
    ranks = []
    for rank, lost in enumerate((0, 0, 1)):
        parts = [Part(0, number, end - 10, end) for number, end in enumerate(ENDS[lost:])]
        parts += [Part(1, number, end + 15, end + 25) for number, end in enumerate(ENDS[lost : lost + 5])]
        ranks.append(summary_of(rank, parts, both))
    found = match(ranks)
    assert (found.sizes.tolist(), found.sequence.min()) == ([2, 3, 3, 3, 3, 3, *sizes], 0)


@pytest.mark.parametrize(("most", "sizes"), [(3, [2, 3, 3, 3, 3, 3]), (2, [3, 3, 3, 3, 3, 2])])
def test_of_more_ranks_than_can_be_compared_those_known_by_order_stay_in_their_order(
    monkeypatch: pytest.MonkeyPatch, most: int, sizes: list[int]
) -> None:
    for module in (communicators, matching):
        monkeypatch.setattr(module, "MOST", replace(communicators.MOST, value=most))
    parts = [[Part(0, number, end - 10, end) for number, end in enumerate(ENDS[lost:])] for lost in (0, 1, 0)]
    ranks = [summary_of(rank, each, [Group(GroupSource.ORDER, 7)]) for rank, each in enumerate(parts)]
    assert match(ranks).sizes.tolist() == sizes
    other = replace(ranks[0], instances=replace(ranks[0].instances, operation=array([SEND] * 6)))
    assert by_joints([*ranks[:2], other]) == (None, most < 3)  # which is of another program
    assert by_joints([*ranks[:2], replace(other, instances=Instances.none())]) == (None, True)
    assert by_joints([other]) == by_joints([]) == (None, True)


def ends_of(*rows: tuple[float, Operation, int]) -> Sequences:
    ends, operations, streams = zip(*rows, strict=True)
    return sequences_of(ns(ends), array(operations), array(streams), 1)


REDUCE, SEND = Operation.ALL_REDUCE, Operation.EXCHANGE


def test_ends_coincide_with_the_nearest_of_their_operation_and_one_with_one() -> None:
    own = ends_of((100, REDUCE, 0), (105, REDUCE, 1), (200, SEND, 2), (300, REDUCE, 0), (400, REDUCE, 0))
    other = ends_of((1_102, REDUCE, 5), (1_200, REDUCE, 5), (1_310, REDUCE, 5), (1_410.001, REDUCE, 5))
    line, at = np.array([1_000.0 * US, 0.0]), np.zeros(5)
    met = _pairs(own, other, at, line, np.ones(5, dtype=np.bool_))
    assert (met.mine.tolist(), met.theirs.tolist()) == ([0, 3], [0, 2])
    assert _pairs(own, other, at, line, np.arange(5) > 0).mine.tolist() == [1, 3]
    several = ends_of(*((at / US, SEND, 0) for at in (0, 1, 3)))
    assert several.nearest(array([int(SEND)] * 2), array([-5, 2])).tolist() == [0, 1]  # of two the earlier
    assert in_time_of(ns([0, 10, 20, 30]), ns([20, 20])) == 3  # to 10 us to either side
    assert in_common(ns([0, 10, 20, 30]), ns([20, 20])) == in_common(ns([20, 20]), ns([0, 10, 20, 30])) == 2
    assert list(_strides(4)) == [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 3)), max_size=10))
def test_collectives_are_numbered_as_recorded_where_all_of_a_group_are_else_in_order(
    rows: list[tuple[int, int]],
) -> None:
    group, number = array([one for one, _ in rows]), array([one for _, one in rows])
    turns = [sum(one == other for other, _ in rows[:place]) for place, (one, _) in enumerate(rows)]
    assert _turns(group).tolist() == turns
    silent = {one for one, told in rows if told < 0}
    expected = [
        turns[place] if one in silent else 256 * told + sum(row == rows[place] for row in rows[:place])
        for place, (one, told) in enumerate(rows)
    ]
    assert _sequences(group, number).tolist() == expected
    many = _sequences(array([0] * 300), array([1] * 300))
    assert (many[-1], many[255]) == (511, 511)


def test_what_a_call_names_for_one_rank_is_given_by_as_many_as_there_are() -> None:
    columns = [5, 5, -1, 5, 0, 7], [4, 4, 4, 0, 4, 1], [1, 0, 1, 1, 1, 1]
    sizes, ranks, of_one = map(array, columns)
    assert _of_all(sizes, ranks, of_one > 0).tolist() == [20, 5, UNKNOWN, UNKNOWN, 0, 7]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 1)), min_size=1, max_size=6),
    st.lists(st.integers(0, 48), max_size=8),
)
def test_what_was_done_before_a_collective_is_that_of_single_nanoseconds(
    rows: list[tuple[int, int, int]], busy: list[int]
) -> None:
    rows = sorted(rows)
    start, end = (array([row[0] + last * row[1] for row in rows]) for last in (0, 1))
    group = array([row[2] for row in rows])
    some = spans(*((one, one + 1) for one in sorted({*busy})))
    none = spans()
    found = _before(group, start, end, SpentInstants(some, none, none, none, some, None))
    for place, (begin, _, mine) in enumerate(rows):
        before = [one for one in range(place) if rows[one][2] == mine]
        since = min(int(end[before[-1]]), begin) if before else begin
        inside = len({one for one in busy if since <= one < begin})
        assert found["compute_ns"][place] == (inside if before else UNKNOWN)
        ended = [int(one) for one in end if one <= begin]
        latest = max([*ended, *(row[0] for row in rows[:place])], default=begin)
        inside = len({one for one in busy if latest <= one < begin})
        assert found["host_ns"][place] == (inside if ended else UNKNOWN)
    assert found["grouped_ns"].max(initial=0) <= 0
    assert set(found["loader_ns"].tolist()) == {UNKNOWN}


def test_messages_of_ranks_that_tell_none_are_unknown_and_without_steps_all_is_in_them() -> None:
    parts = [Part(0, 0, 0, 10, step=0), Part(0, 1, 20, 30, step=-1)]
    steps = [{"start": 0, "end": 15}]
    told = replace(summary_of(0, parts, steps=steps), messages=Messages(*(array([4, 5]) for _ in range(3))))
    several = [summary_of(1, parts), told]
    assert messages_beside(several).sends.tolist() == [UNKNOWN, UNKNOWN, 4, 5]
    assert messages_beside(several[:1]).sends.tolist() == [UNKNOWN] * 2
    assert in_steps(several, recorded_of(several)).tolist() == [True, True, True, False]


def whole() -> RankSummary:
    parts = [Part(0, 0, 10, 20, before={"compute": 5}), Part(0, 1, 30, 40, step=1)]
    steps = [{"start": 5, "end": 25}, {"start": 25, "end": 45}]
    return replace(
        summary_of(0, parts, [Group(GroupSource.COMMUNICATOR, 7, 4, own=0)], steps=steps, kernels_us=[7]),
        messages=Messages(*(array([0, 1]) for _ in range(3))),
        peers=Peers(*(array([1]) for _ in fields(Peers))),
        experts=ExpertWork(array([0]), array([0]), array([5])),
    )


def read_again(blob: bytes) -> RankSummary | None:
    with suppress(DamagedTrace):
        return decode(blob, "a")
    return None


FAR, GROUPED = 1 << 61, GroupSource.COMMUNICATOR


@pytest.mark.parametrize(
    ("table", "column", "sound", "wrong"),
    [
        ("instances", "operation", tuple(Operation), (-1, len(Operation))),
        ("instances", "kind", (-1, len(COMM_KINDS) - 1), (-2, len(COMM_KINDS))),
        *(("instances", "group", (0,), (-1, 1)), ("instances", "step", (-1, 1), (-2, 2))),
        ("instances", "end_ns", (10_000, FAR), (9_999, FAR + 1)),
        ("instances", "size_bytes", (-FAR, FAR), (-FAR - 1, FAR + 1)),
        *(("steps", "end_ns", (5_000,), (4_999,)), ("steps", "compute_ns", (-FAR, FAR), (-FAR - 1, FAR + 1))),
        ("messages", "received_bytes", (-1, FAR - 1), (-2, FAR)),
        ("peers", "sent_bytes", (0, FAR - 1), (-1, FAR)),
        ("peers", "kind", (-1, len(COMM_KINDS) - 1), (-2, len(COMM_KINDS))),
        *(("experts", "step", (0, 1), (-1, 2)), ("experts", "layer", (0, (1 << 20) - 1), (-1, 1 << 20))),
        ("experts", "work_ns", (0, FAR - 1), (-1, FAR)),
    ],
)
def test_a_summary_is_read_with_each_number_that_can_be_and_damaged_with_the_next(
    table: str, column: str, sound: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    for value in (*sound, *wrong):
        given = whole()
        rows = getattr(given, table)
        bent = getattr(rows, column).copy()
        bent[0] = value
        read = read_again(codec._bytes_of(replace(given, **{table: replace(rows, **{column: bent})}), 1))
        assert (None if read is None else getattr(getattr(read, table), column)[0]) == (
            None if value in wrong else value
        )


def test_ranks_and_sizes_that_no_run_has_are_damage() -> None:
    most = int(MOST_RANKS.value)
    for rank, size, is_sound in ((most, most, 1), (most + 1, 1, 0), (-1, 1, 0), (0, most + 1, 0)):
        given = whole()
        identity = replace(given.identity, rank=rank, world_size=size)
        read = read_again(codec.encode(replace(given, identity=identity)))
        assert (read is not None and read.identity == identity) is (is_sound == 1)
    for count, is_sound in ((333_328, True), (333_329, False)):  # with 16 of two steps a million numbers
        given = replace(summary_of(0, [], steps=[{}, {}]), experts=ExpertWork(*[array([0] * count)] * 3))
        read = read_again(codec._bytes_of(given, 1))
        assert (read is not None and len(read.experts) == count) is is_sound
    far = replace(whole().dropped, resolution_ns=1 << 30)
    for bent in (replace(whole(), dropped=far), replace(whole(), groups=(Group(GROUPED, 7, most + 1),))):
        assert read_again(codec.encode(bent)) is None
    for length in (1, 3):
        messages = Messages(*(array([0] * length) for _ in range(3)))
        assert read_again(codec.encode(replace(whole(), messages=messages))) is None


@pytest.mark.parametrize(
    ("most", "width"), [(127, 1), (128, 2), (-128, 1), (-129, 2), (1 << 31, 8), (-(1 << 31), 4)]
)
def test_numbers_are_packed_as_narrow_as_the_largest_allows(most: int, width: int) -> None:
    table = np.zeros((len(StepParts.__match_args__), 2), dtype=np.int64)
    table[2, 1] = most
    packed = codec._packed({"steps": table}, {"steps": StepParts})
    assert (packed[0], len(packed)) == (width, 1 + width * table.size)
