"""Rules of steps on small numbers that often meet, against plain definitions."""

from __future__ import annotations

import random
from statistics import median_low
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from traces.arrays import IntArray
from traces.columns import NULL
from traces.steps.borders import HostOrder, step_borders
from traces.steps.found import Step, drop
from traces.steps.optimizer import _gap_that_parts, _shared, _where_step_begins
from traces.steps.period import _busiest_compute_stream, _cut, _least_divisor, _with_input, match_at
from traces.steps.rules import _median_without
from traces.timeline import Bucket, Source

TURNS = range(300)


def drawn(turn: int, least: int, most: int, *below: int) -> list[IntArray]:
    """So many columns of one length, with numbers below each bound."""
    draw = random.Random(turn)
    count = draw.randint(least, most)
    return [np.array([draw.randrange(bound) for _ in range(count)], dtype=np.int64) for bound in below]


def test_borders_lie_between_what_was_launched_before_and_the_compute_after() -> None:
    for turn in range(150):
        start, length, launch, bucket, helps, source = drawn(turn, 1, 14, 9, 5, 9, 3, 5, 3)
        start.sort()
        launch, helps = np.minimum(launch, start), helps == 0
        helps[turn % len(helps)] = False  # somebody is left to help
        rows: Any = SimpleNamespace(start_ns=start, end_ns=start + length, length_ns=length, launch_ns=launch,
                                    launched_ns=np.where(launch > 0, launch, start), is_launched=launch > 0,
                                    is_compute=bucket == Bucket.COMPUTE, is_comm=bucket == Bucket.COMM,
                                    is_transfer=source == Source.COPY)  # fmt: skip
        with patch("traces.steps.borders.helper_work", return_value=helps):
            order = HostOrder(rows)
        queued = start < min(start[launch > 0], default=0)
        launch = np.where(launch > 0, launch, np.where(queued, -1, start))
        own = [row for row in range(len(start)) if not helps[row]]
        compute = [row for row in own if bucket[row] == Bucket.COMPUTE]
        at = np.arange(-1, 11)
        border_at = dict(zip(at.tolist(), order.borders_ns(at).tolist(), strict=True))
        for host, border in border_at.items():
            before = [start[row] + length[row] for row in own if launch[row] < host]
            after = [start[row] for row in (compute if before else own) if launch[row] >= host]
            assert border == min([max(before), *after] if before else after)
        first, last = at[:-3], at[3:]
        comm, held = (order.until_ns(ends, first, last) for ends in (order.comm_end_ns, order.held_end_ns))
        for place, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            mine = [row for row in own if low <= launch[row] < high]
            ends = [(bucket[row] == Bucket.COMM, start[row] + length[row]) for row in mine]
            assert comm[place] == max((end for is_comm, end in ends if is_comm), default=NULL)
            assert held[place] == max((end for is_comm, end in ends if not is_comm), default=NULL)
            between = [row for row in range(len(start)) if low <= launch[row] < high]
            count = sum(source[row] != Source.COPY for row in between)
            assert order.kernels_between(first, last)[place] == count
            assert order.compute_between(first, last)[place] == len({*compute} & {*between})
        taken = [length[row] * (row in compute) for row in order.places.tolist()]
        assert order.compute_work_ns(np.array([0, 1]), np.array([len(start)] * 2)).tolist() == [
            sum(taken),
            sum(taken[1:]),
        ]
        assert order.kernel_count == sum(source != Source.COPY)
        alone = step_borders(order, first[5:6], last[5:6])
        assert np.concatenate(alone).tolist() == [border_at[4], max(border_at[7], held[5])]
        begin, end = step_borders(order, first[[1, 5]], last[[1, 5]])
        launched = sorted(launch[compute].tolist())
        own_end = border_at[3 if 3 in launched else 4]
        assert (begin.tolist(), end[0]) == ([border_at[0], border_at[4]], own_end)
        both_work = any(0 <= one < 3 for one in launched) and any(4 <= one < 7 for one in launched)
        if both_work and max(launched) < 7 and comm[1] > own_end:
            assert end[1] == min(border_at[7], held[5] + max(own_end - held[1], 0))
        else:
            assert end[1] == border_at[7]


def test_a_level_of_gaps_parts_what_is_a_tenth_of_a_period_and_jumps_most() -> None:
    for turn in TURNS:
        gaps = drawn(turn, 0, 6, 5)[0] ** 5 * 100
        own, fits = 900 * (turn % 7), []
        for level in sorted(set(gaps.tolist())):
            period = (sum(gaps) + own) / sum(gaps >= level)
            below = max((gap for gap in gaps.tolist() if gap < level), default=0)
            if below < period / 10 <= level:
                fits.append((level / max(below, 1_000), -level))
        assert _gap_that_parts(gaps, own) == (-max(fits)[1] if fits else None)


def test_a_head_is_cut_where_what_is_left_is_most_like_a_step() -> None:
    for turn in TURNS:
        head, step = drawn(turn, 0, 40, 2)[0], drawn(turn + 1, 1, 25, 2)[0]
        if turn % 2:
            end = drawn(turn + 2, 0, 9, 2)[0] if turn % 3 else step[16:-1]
            head = np.concatenate((head, step[:16], end))
        shared = _shared(head, step).tolist()
        for place in range(len(head)):
            rest = head[place:].tolist()
            assert shared[place] == sum(min(rest.count(kind), step.tolist().count(kind)) for kind in (0, 1))
        fits = []
        for cut in range(len(head)):
            left = len(head) - cut
            alike = shared[cut] >= 0.95 * max(left, len(step))
            begins = step[:16].tolist() == head[cut : cut + min(16, len(step))].tolist()
            if alike and begins and abs(left - len(step)) <= 0.05 * len(step):
                fits.append((abs(left - len(step)), cut))
        assert _where_step_begins(head, step) == min(fits, default=(0, 0))[1]
    step = np.arange(20)  # of which a twentieth may differ
    for own, cut in ((19, 1), (18, 0)):
        assert _where_step_begins(np.concatenate(([77], step[:own], [88] * (20 - own))), step) == cut
    assert _where_step_begins(np.zeros(20, int), np.zeros(20, int)) == 0  # as long as a step: nothing before
    assert _where_step_begins(np.zeros(20, int), np.zeros(0, int)) == 0


def test_the_busiest_stream_is_the_one_whose_compute_takes_longest() -> None:
    """On stream 5 run more kernels, later; on stream 3 lasts what is no compute."""
    start, stream, length = (
        np.array(one) for one in ([0, 5, 10, 900, 901, 902], [7, 3, 7, 5, 5, 5], [4, 99, 4, 2, 2, 2])
    )
    rows = SimpleNamespace(start_ns=start, length_ns=length, stream_id=stream, is_compute=stream != 3)
    some: Any = SimpleNamespace(activities=rows)
    assert _busiest_compute_stream(some).tolist() == [0, 2]
    rows.is_compute = stream == 9
    assert _busiest_compute_stream(some).tolist() == []


def test_a_period_begins_with_the_recording_or_behind_the_largest_gap_that_returns() -> None:
    for turn in TURNS:
        gaps, lag = drawn(turn, 1, 60, 4)[0] * 10, (20, 1 + turn % 25)[turn % 2]
        start = np.cumsum(gaps + 5)
        phase, why = _cut(start, start + 5, lag)
        by_phase = [gaps[at::lag].tolist() for at in range(lag)]
        by_phase[0] = by_phase[0][1:]  # nothing came before the first
        middle = [median_low(one) if one else -1 for one in by_phase]
        largest, over = middle.index(max(middle)), len(start) % lag
        if over <= 0.05 * lag and largest > over:
            assert (phase, why) == (0, "from the first recorded")
        else:
            others = [one for at, one in enumerate(middle) if at != largest]
            stands_out = max([0, *others]) <= middle[largest] / 2
            said = (
                "from the largest gap that returns" if stands_out else "cut somewhere, as no gap stands out"
            )
            assert (phase, why) == (largest, said)


def test_a_lag_is_divided_as_long_as_the_result_matches_as_well() -> None:
    for lag in range(1, 50):
        for period in (one for one in range(1, lag + 1) if lag % one == 0):
            codes = np.tile(np.arange(period) + 1, 100 // period + 2)
            assert _least_divisor(codes, lag, match_at(codes, lag, 0), 1, 0) == period
    assert [_least_divisor(codes * 0, 4, 1.0, shortest, 0) for shortest in (1, 2, 3)] == [1, 2, 4]


def test_a_replay_begins_with_its_first_input_copy_and_the_first_with_as_many_as_the_next() -> None:
    for turn in TURNS:
        replays, copies = np.unique(drawn(turn, 2, 4, 9)[0]), np.sort(drawn(turn + 1, 0, 9, 10)[0])
        rank: Any = SimpleNamespace(activities=SimpleNamespace(launch_ns=copies))
        with patch("traces.steps.period.input_copies", return_value=np.arange(len(copies))):
            found = _with_input(rank, replays)
        feeds = [sum(replay < copy for replay in replays) for copy in copies]
        used = list(zip(feeds, copies, strict=True))[max(feeds.count(0) - feeds.count(1), 0) :]
        for place, replay in enumerate(replays):
            assert found[place] == min((copy for at, copy in used if at == place), default=replay)


def test_the_lower_median_of_the_others_and_a_first_reason_to_leave_out_stay() -> None:
    for turn in TURNS:
        ordered = sorted(drawn(turn, 1, 7, 4)[0].tolist())
        for place, one in enumerate(ordered):
            others = ordered[:place] + ordered[place + 1 :]
            assert _median_without(ordered, one) == (median_low(others) if others else None)
    assert drop(drop(Step(0, 0, 5), "first"), "second").dropped == "first"
