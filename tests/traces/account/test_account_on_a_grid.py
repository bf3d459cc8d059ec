"""Calls, launches and gaps drawn on a coarse grid, where times often meet, against plain definitions."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.by_hand.run import Run
from traces.account.calls import host_calls
from traces.account.host import Handover
from traces.account.inferred import _latest_before, last_to_end, stream_waits
from traces.account.pieces import compute_gaps
from traces.account.producers import _believable, _LaunchOrder
from traces.arrays import PLACE, IntArray
from traces.columns import NULL
from traces.intervals import spans
from traces.launchers import helper_threads
from traces.limits import Limit
from traces.timeline import RankTimeline

DALI = "void dali::kernels::transforms::SliceFlipNormalizePermutePadKernel<float, unsigned char, 3>()"
TURNS = range(300)


def drawn(turn: int, most: int, *columns: int) -> list[IntArray]:
    """So many columns of one length, with numbers below each bound."""
    draw = random.Random(turn)
    count = draw.randint(1, most)
    return [np.array([draw.randrange(below) for _ in range(count)]) for below in columns]


def three_threads() -> RankTimeline:
    """Two threads that launch and one, 9, that decodes; their calls begin and end every 2 us."""
    run, draw = Run(), random.Random(5)
    for turn in range(120):
        thread, at, length = draw.choice((0, 0, 1, 9)), 2 * draw.randrange(200), 2 * draw.randrange(4)
        name = DALI if thread == 9 else "gemm"
        run.work(
            name, 500 + 10 * turn, 505 + 10 * turn, launch=(at, at + length), thread=thread, stream=thread
        )
    return run.rank()


def test_a_call_follows_its_own_threads_or_the_last_to_return_of_those_that_do_not_help() -> None:
    rank = three_threads()
    found = host_calls(rank, (-1 << 40, 1 << 40))
    calls = list(
        zip(found.start_ns.tolist(), found.end_ns.tolist(), (found.thread % 4096).tolist(), strict=True)
    )
    recorded, outer = rank.columns.calls, []
    for thread in {thread for *_, thread in calls}:
        rows = np.flatnonzero(recorded.thread_gid % 4096 == thread).tolist()
        mine = sorted((int(recorded.start_ns[row]), -int(recorded.end_ns[row])) for row in rows)
        for at, (start, minus_end) in enumerate(mine):
            if start >= max((-end for _, end in mine[:at]), default=NULL):
                outer.append((start, -minus_end, thread))
    assert sorted(calls) == sorted(outer)
    helper = max(thread for *_, thread in calls)
    for place, (start, _, thread) in enumerate(calls):
        own = max((at for at in range(place) if calls[at][2] == thread), default=-1)
        others = [(calls[at][1], at) for at in range(place) if thread == helper or calls[at][2] != helper]
        end, last = max((one for one in others if one[0] <= start), default=(NULL, -1))
        before = own if own >= 0 and calls[own][1] >= end else last
        assert (found.before[place], found.own_before[place]) == (before, own)
        assert found.pause_ns[place] == (start - calls[before][1] if before >= 0 else 0)


def test_the_thread_decides_that_returned_last_before_a_launch_helpers_aside() -> None:
    rank = three_threads()
    rows, calls = rank.activities, rank.columns.calls
    (helper,) = helper_threads(rows).tolist()
    theirs = [row for row in range(len(calls)) if calls.thread_gid[row] != helper]
    by_end = sorted(theirs, key=lambda row: (calls.end_ns[row], row))
    own, other, until_ns = Handover(rank).before(np.arange(len(rows)))
    assert own.tolist() == calls.thread_gid[rows.call].tolist()
    for place, launch in enumerate(rows.launch_ns.tolist()):
        last = [row for row in by_end if calls.end_ns[row] <= launch][-1:]
        told = [(calls.thread_gid[row], calls.end_ns[row]) for row in last]
        assert told == [(other[place], until_ns[place])][: len(told)]
        assert last or until_ns[place] < NULL + 1


def test_the_latest_before_a_launch_has_what_is_asked_for() -> None:
    for turn in TURNS:
        launch, have = drawn(turn, 9, 4, 2)
        rows: Any = SimpleNamespace(launch_ns=launch)
        places = np.arange(len(launch))
        some, asked = places[places % 3 > 0], places[places % 2 == 0]
        found = _latest_before(rows, some, have[some], asked, have[asked])
        for at, one in zip(found.tolist(), asked.tolist(), strict=True):
            fits = [
                (launch[two], two) for two in some if launch[two] < launch[one] and have[two] == have[one]
            ]
            assert at == max(fits, default=(0, -1))[1]


def before(times: IntArray, key: IntArray, place: int) -> int:
    """The latest earlier time with the key of a place."""
    return int(times[(key == key[place]) & (times < times[place])].max(initial=NULL))


def test_a_stream_waits_for_what_its_thread_asked_for_or_else_for_what_nobody_claims() -> None:
    for turn in TURNS:
        launch, stream, thread = drawn(turn, 8, 9, 2, 2)
        asked, asks = drawn(turn + len(TURNS), 6, 9, 2)
        rows = SimpleNamespace(launch_ns=launch, stream_id=stream, launch_thread=thread)
        columns = SimpleNamespace(calls=SimpleNamespace(start_ns=asked, thread_gid=asks))
        rank: Any = SimpleNamespace(activities=rows, columns=columns)
        with patch("traces.account.inferred.wait_calls", return_value=np.arange(len(asked))):
            found = stream_waits(rank)
        since = [[before(launch, key, place) for key in (stream, thread)] for place in range(len(launch))]
        own = [
            sum(max(since[place]) <= at < until for at in asked[asks == thread[place]])
            for place, until in enumerate(launch)
        ]
        claims = {launch[place] for place, count in enumerate(own) if count}
        for place, until in enumerate(launch):
            begin = since[place][0]
            left = sum(begin <= at < until for at in asked) - sum(begin < at < until for at in claims)
            assert found is not None
            assert found[place] == (own[place] or max(left, 0))


def test_the_last_to_end_holds_a_consumer_of_the_work_that_fits() -> None:
    for turn in TURNS:
        start, length, call, launch, stream, copies, took, turn_ns = drawn(turn, 9, 12, 6, 8, 4, 2, 2, 4, 3)
        start.sort()
        taken, ended = took - 1, (start + turn) % 9
        end, back = start + length, launch + call
        columns = {"start_ns": start, "end_ns": end, "launch_ns": launch, "launch_end_ns": back}
        about: Any = columns | {"stream_id": stream, "is_transfer": copies > 0, "is_launched": launch > 0}
        rows: Any = SimpleNamespace(**about)
        with patch("traces.account.inferred.UNEXPLAINED", Limit(2, "ns", "a test's")):
            pairs = last_to_end(rows, ended, start % 5 > 0, turn_ns, taken, 1, 3)
        found = dict(zip(*(places.tolist() for places in pairs), strict=True))
        for one, at in enumerate(start):
            within = launch[one] if copies[one] and back[one] >= at else min(back[one], at)
            since = max(within, ended[one])
            waits = at % 5 > 0 and launch[one] > 0 and at - since > 2
            fits = [
                (end[two], two)
                for two in range(len(start))
                if max(since, at - 4) < end[two] <= at and stream[two] != stream[one]
                if turn_ns[two] < turn_ns[one] and taken[two] >= 0 and taken[one] + taken[two] > 1
            ]
            assert found.get(one, -1) == (max(fits, default=(0, -1))[1] if waits else -1)


def test_beside_a_time_lies_the_next_or_the_last_launch_of_its_stream() -> None:
    for turn in TURNS:
        launch, stream = drawn(turn, 8, 5, 3)
        launch[launch == 0] = NULL  # of work without a recorded launch that before it on its stream counts
        known = [max(launch[: row + 1][stream[: row + 1] == stream[row]]) for row in range(len(launch))]
        launch_ns, launch = launch, np.where(launch == NULL, known, launch)
        order = _LaunchOrder(SimpleNamespace(launch_ns=launch_ns, stream_id=stream))  # type: ignore[arg-type]
        ns, of = (column.ravel() for column in np.meshgrid(np.arange(-1, 6), np.arange(4)))
        at = list(zip(launch.tolist(), range(len(launch)), strict=True))
        after, before = order.beside(of, ns, 0).tolist(), order.beside(of, ns, -1).tolist()
        some, late = np.flatnonzero(np.isin(of, stream)), np.arange(len(of)) % 9
        begun = dict(zip(some.tolist(), order.before(of[some], late[some], ns[some]).tolist(), strict=True))
        for place, (time, one) in enumerate(zip(ns.tolist(), of.tolist(), strict=True)):
            mine = [(when, row) for when, row in at if stream[row] == one]
            assert after[place] == min((two for two in mine if two[0] > time), default=(0, -1))[1]
            assert before[place] == max((two for two in mine if two[0] <= time), default=(0, -1))[1]
            last = max((row for _, row in mine if row < late[place]), default=-1)
            told = last if last >= 0 and launch[last] < time else -1
            assert begun.get(place, told) == told


def test_of_very_many_pairs_each_consumer_keeps_the_one_that_bound_more_often() -> None:
    """Of two that each could wait for, on streams 0 and 1, the first always ended as it began."""
    count = 70_000
    consumer, producer = np.arange(2 * count, 3 * count, dtype=PLACE), np.arange(2 * count, dtype=PLACE)
    at = np.arange(3 * count)
    end = at.copy()
    end[: 2 * count : 2] = at[consumer]
    about: Any = {"start_ns": at, "launch_ns": at, "end_ns": end, "stream_id": at % 2}
    rows: Any = SimpleNamespace(**about, **dict.fromkeys(("name", "bucket", "key"), 0 * at))
    found = _believable(rows, np.ones_like(at), (np.repeat(consumer, 2), producer), False, 5)
    assert (found[0] == consumer).all()
    assert (found[1] == producer[::2]).all()


def test_gaps_lie_between_compute_that_takes_time_within_the_windows_ends() -> None:
    for turn in TURNS:
        start, length, kind, first, last = drawn(turn, 6, 9, 4, 3, 6, 6)
        start.sort()
        end = start + length
        rows: Any = SimpleNamespace(start_ns=start, end_ns=end, is_compute=kind > 0)
        low, high = int(first[0]), int(first[0] + 1 + last[0])
        with patch("traces.account.pieces.helper_work", return_value=kind == 3):
            found = compute_gaps(rows, spans((low, low + 1), (high - 1, high)))
        some = [row for row in range(len(start)) if kind[row] > 0 and length[row] > 0]
        busy = {at for row in some for at in range(start[row], end[row])}
        held = set(range(low, high)) - busy
        told = {at for a, b in zip(found.start_ns, found.end_ns, strict=True) for at in range(a, b)}
        assert held <= told
        assert not told & busy
        for a, b, kernel in zip(found.start_ns, found.end_ns, found.kernel.tolist(), strict=True):
            assert set(range(a, b)) & set(range(low, high))
            assert a == low or a - 1 in busy
            assert b == high or b in busy
            own = [row for row in some if kind[row] != 3 and start[row] >= b and b in busy]
            assert kernel == min(own, default=-1)
