"""Whom GPU work waits for: events, repetition, tight starts, room, and what a stream was told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from bench.simulate.export import write_export
from tests.by_hand.names import KERNELS
from tests.by_hand.run import Run
from tests.kept.pairs import both_sides
from traces.account.inferred import _busiest, signature, stream_waits, synchronised_streams, wait_calls
from traces.account.producers import MOST, event_edges, find_producers, pending
from traces.columns import NULL
from traces.formats.open import read_trace
from traces.gpu_work import build
from traces.timeline import RankTimeline

US = 1_000
Place = tuple[int, float]


def producers_of(rank: RankTimeline, word: str, which: int = -1) -> list[Place]:
    """Producers of one kernel of a name, latest end first: stream and start in microseconds."""
    rows, place = rank.activities, find_producers(rank).place
    mine = [code >= 0 and rank.columns.kernel_names[code] == KERNELS[word] for code in rows.name.tolist()]
    found = place[np.flatnonzero(mine)[which]].tolist()
    return [(int(rows.stream_id[one]), int(rows.start_ns[one]) / US) for one in found if one >= 0]


def edges(run: Run, place: int = 0) -> tuple[list[tuple[float, float]], bool]:
    """Starts of consumer and producer of each recorded edge, and whether these are all."""
    rank = run.rank(place)
    consumer, producer, every = event_edges(rank)
    starts = rank.activities.start_ns / US
    return sorted(zip(starts[consumer].tolist(), starts[producer].tolist(), strict=True)), every


def waiting(with_id: bool = True, recorded: float = 13, waits: float = 15) -> Run:
    """A gather on stream 20 launched at 10 and one at 40; a norm on stream 7 launched at 30 and one at 50."""
    run = Run()
    run.work("gemm", 0, 100)
    run.work("all_gather", 50, 180, launch=10, stream=20)
    run.wait(20, by=7, recorded=recorded, waits=waits, with_id=with_id)
    run.work("norm", 200, 260, launch=30)
    run.work("all_gather", 190, 240, launch=40, stream=20)
    run.work("norm", 260, 300, launch=50)
    return run


@pytest.mark.parametrize("with_id", [True, False])
@pytest.mark.parametrize(
    ("recorded", "waits", "edge"),
    [
        (13, 15, (200, 50)),
        (43, 45, (260, 190)),  # after both were launched: the second of each
        (13, 45, (260, 50)),
        (5, 15, None),  # nothing was launched before the record
        (13, 55, None),  # nothing is launched after the wait
        (10, 30, (260, 50)),  # what was launched in the same instant was launched before
    ],
)
def test_a_wait_holds_the_next_work_of_its_stream_behind_the_last_before_the_record(
    with_id: bool, recorded: float, waits: float, edge: tuple[float, float] | None
) -> None:
    found, every = edges(waiting(with_id, recorded, waits))
    assert found == ([edge] if edge else [])
    assert every


def test_events_of_another_process_hold_no_work_of_this_one() -> None:
    run = waiting()
    other = run.process(1, device=0)
    other.work("gemm", 0, 100)
    other.work("all_gather", 50, 180, launch=10, stream=20)
    other.work("norm", 200, 260, launch=30)
    assert (edges(run, 0), edges(run, 1)) == (([(200, 50)], True), ([], False))
    nowhere = replace(run.rank(0), process_gid=NULL)
    assert [len(wait_calls(rank)) for rank in (run.rank(0), run.rank(1), nowhere)] == [1, 0, 1]


@pytest.mark.parametrize("with_id", [True, False])
def test_a_record_of_another_process_is_never_the_one_that_a_wait_is_for(with_id: bool) -> None:
    run = waiting(with_id=with_id, recorded=13, waits=17)
    other = run.process(1, device=0)
    other.work("gemm", 0, 100)
    other.work("all_gather", 50, 120, launch=10, stream=20)
    other.wait(20, by=7, recorded=15, waits=45, with_id=with_id)  # the same event, by its number
    assert edges(run, 0) == ([(200, 50)], True)


@pytest.mark.parametrize(("by_id", "producer"), [(0, 100), (1, 150), (2, 200), (None, 150)])
def test_a_wait_is_for_the_record_of_its_id_and_without_one_for_the_last_before_it(
    by_id: int | None, producer: float
) -> None:
    """An event is recorded behind gathers of 100, 150 and 200, at 13, 23 and 33, and waited for at 25."""
    run = Run()
    run.work("gemm", 0, 100)
    records = []
    about: dict[str, Any] = {"event_id": 5, "pid": 1_000, "device": 0}
    for turn in range(3):
        run.work("all_gather", 100 + 50 * turn, 140 + 50 * turn, launch=10 + 10 * turn, stream=20)
        records.append(run.call("event_record", 13 + 10 * turn, 14 + 10 * turn))
        named: dict[str, Any] = {"sync_id": None if by_id is None else records[-1]}
        run.recording.event_record(stream=20, correlation_id=records[-1], **about, **named)
    about |= {"stream": 7, "sync_id": None if by_id is None else records[by_id]}
    about["correlation_id"] = run.call("stream_wait", 25, 26)
    run.recording.synchronisation("stream wait", run.ns(25), run.ns(26), **about)
    run.work("norm", 300, 400, launch=50)
    assert edges(run) == ([(300, producer)], True)


@pytest.mark.parametrize(
    ("between", "found"),
    [
        (None, [(200, 50)]),
        (14, [(200, 50), (200, 185)]),  # launched before the stream was told to wait
        (17, [(185, 50), (200, 185)]),
    ],
)
def test_an_event_behind_a_wait_is_behind_what_that_was_for_unless_work_lies_between(
    between: float | None, found: list[tuple[float, float]]
) -> None:
    """Stream 30 waits for a gather, and the norm's stream for stream 30."""
    run = Run()
    run.work("gemm", 0, 100)
    run.work("all_gather", 50, 180, launch=10, stream=20)
    run.wait(20, by=30, recorded=13, waits=15)
    if between:
        run.work("d2d", 185, 190, launch=between, stream=30)
    run.wait(30, by=7, recorded=19, waits=21)
    run.work("norm", 200, 260, launch=30)
    assert edges(run) == (found, True)


@pytest.mark.parametrize(("unseen", "every"), [(2, True), (3, False)])
def test_all_waits_are_recorded_where_eighteen_of_twenty_calls_are(unseen: int, every: bool) -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.work("all_gather", 50, 180, launch=10, stream=20)
    for turn in range(20 - unseen):
        run.wait(20, by=7, recorded=13 + 10 * turn, waits=15 + 10 * turn)
    for turn in range(unseen):
        run.call("stream_wait", 500 + turn, 500.5 + turn)
    run.work("norm", 700, 800, launch=690)
    assert edges(run)[1] is every


def test_no_more_producers_than_are_kept_and_of_these_the_latest() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    for stream in range(MOST + 2):
        run.work("all_gather", 50, 150 + stream, launch=10 + 3 * stream, stream=20 + stream)
        run.wait(20 + stream, by=7, recorded=11 + 3 * stream, waits=12 + 3 * stream)
    run.work("norm", 300, 400, launch=250)
    rank = run.rank()
    assert producers_of(rank, "norm") == [(29 - one, 50) for one in range(MOST)]
    assert not find_producers(rank).inferred.any()


def repeated(
    count: int, gap: float, between: int = 0, early: float = 0, told: bool = False, graph: bool = False,
    other: str = "send_recv",
) -> Run:  # fmt: skip
    """So often a SendRecv on stream 20 and a norm that begins after it; a GEMM before each on stream 7.

    `between`: small sends launched on stream 20 behind it, which go on while the norm runs. `early`: by how
    much later the exchange ends in one round of them, where the norm begins as ever. `told`: before the first
    a stream was told to wait. `graph`: each round is one.
    """
    run = Run()
    if told:
        run.call("stream_wait", -20, -19)
    for turn in range(count):
        at = run.at(1_000 * turn)
        launch = at.call("graph_launch", 0, 2) if graph else None
        at.work("gemm", 10, 100, launch=0, of=launch)
        end = 150 + 7 * (turn % 3)
        at.work(other, 20, end + (early if turn == 7 else 0), launch=2, stream=20, of=launch)
        for number in range(between):
            at.work("all_reduce", 400 + 20 * number, 410 + 20 * number, launch=3 + 0.2 * number, stream=20)
        at.work("norm", end + gap, 300, launch=4, of=launch)
    return run


@pytest.mark.parametrize(
    ("run", "inferred"),
    [
        (repeated(16, gap=30), True),
        (repeated(16, gap=30, other="h2d"), True),
        (repeated(16, gap=30, other="d2h"), False),  # whose reader is the host
        (repeated(15, gap=30), False),  # fewer agree by chance
        (repeated(16, gap=30, early=30), True),  # once it began as the exchange ended
        (repeated(16, gap=30, early=30.001), False),  # once it began earlier: it does not wait
        (repeated(16, gap=30, told=True), False),
        (repeated(16, gap=30, told=True, graph=True), True),  # nobody is told within one
        (repeated(20, gap=30, between=2), True),
        (repeated(20, gap=30, between=3), False),  # of a stream the last three launched are tried
    ],
)
def test_what_never_began_before_other_work_ended_waits_for_it(run: Run, inferred: bool) -> None:
    assert (20 in [stream for stream, _ in producers_of(run.rank(), "norm")]) is inferred


def test_the_same_kernel_waits_in_one_place_of_a_step_and_not_in_another() -> None:
    """Behind the GEMM it waits for the exchange launched before it, behind the addition it does not."""
    run = Run()
    for turn in range(20):
        at = run.at(1_000 * turn)
        at.work("gemm", 10, 100, launch=0)
        at.work("send_recv", 20, 150 + turn, launch=2, stream=20)
        at.work("norm", 180 + turn, 300, launch=4)
        at.work("add", 300, 310, launch=6)
        at.work("send_recv", 320, 500, launch=8, stream=20)
        at.work("norm", 330, 400, launch=10)
    rank = run.rank()
    assert (20, 19_020) in producers_of(rank, "norm", -2)
    assert (20, 19_320) not in producers_of(rank, "norm", -1)


def tight(start: float = 303, launch: float = 8) -> Run:
    """A norm that begins 3 us after a SendRecv of another stream has ended."""
    run = Run()
    run.work("gemm", 20, 100, launch=0)
    run.work("send_recv", 30, 300, launch=4, stream=20)
    run.work("norm", start, start + 100, launch=launch)
    return run


@pytest.mark.parametrize(
    ("run", "waits"),
    [
        (tight(start=305), True),
        (tight(start=305.001), False),  # no longer tight
        (tight(start=301, launch=296.999), True),  # its call returned 2 us before: a longer wait had a reason
        (tight(start=301, launch=297), False),
    ],
)
def test_work_that_begins_as_other_work_ends_waited_for_it(run: Run, waits: bool) -> None:
    assert (20 in [stream for stream, _ in producers_of(run.rank(), "norm")]) is waits


def test_work_that_was_told_of_no_event_did_not_wait_though_it_begins_as_other_work_ends() -> None:
    run = tight()
    run.call("stream_wait", 2, 3)  # before the exchange was launched
    rank = run.rank()
    told = stream_waits(rank)
    assert told is not None
    assert told.tolist() == [0, 1, 0]
    assert [stream for stream, _ in producers_of(rank, "norm")] == [7]


def test_a_synchronisation_is_of_the_stream_that_its_row_names_and_of_its_process() -> None:
    run = Run()
    run.work("gemm", 0, 100)
    run.call("sync", 10, 20, stream=7)
    run.call("sync", 30, 40)
    run.call("sync", 50, 60, stream=9)
    other = run.process(1, device=0)
    other.work("gemm", 0, 100)
    other.call("sync", 5, 8, stream=11)
    for place, streams in ((0, [(10, 7), (50, 9)]), (1, [(5, 11)])):
        rank = run.rank(place)
        named = synchronised_streams(rank)
        starts = rank.columns.calls.start_ns
        assert sorted((int(starts[row]) // US, stream) for row, stream in named.items()) == streams


def test_what_is_alike_has_one_number_and_kinds_without_a_name_have_theirs() -> None:
    run = Run()
    for turn in range(2):
        at = run.at(1_000 * turn)
        at.work("gemm", 0, 10)
        at.work("norm", 20, 30)
        at.work("h2d", 40, 50)
        at.work("d2h", 60, 70)
        at.work("memset", 80, 90)
    found = signature(run.rank().activities).tolist()
    assert found[:5] == found[5:]
    assert len(set(found)) == 5
    assert [code >= 0 for code in found[:5]] == [True, True, False, False, False]


def called(threads: tuple[int, int] = (0, 0), told: str = "only", stream: int = 24, second: int = 300) -> Run:
    """A GEMM and then a reduction on a stream of its own, which was told to wait; three times."""
    run = Run()
    for turn in range(3):
        at = run.at(1_000 * turn)
        at.work("gemm", 20, 100, launch=0, thread=threads[0])
        at.work("send_recv", 20, 40, launch=2, thread=threads[0], stream=30)
        if told == "only":
            at.call("stream_wait", 4, 5, thread=threads[1])
        if told == "recorded":
            at.wait(24, by=24, recorded=3, waits=5)
        else:
            at.call("stream_wait", 7, 8)
        begin = second if turn == 1 else 300
        at.work("reduce_scatter", begin, 350, launch=6, stream=stream, thread=threads[1])
        at.work("norm", 600, 610, launch=9, stream=25)
    return run


@pytest.mark.parametrize(
    ("run", "streams"),
    [
        (called(), [24, 7]),
        (called(told=""), [24]),  # told nothing
        (called(told="recorded"), [24, 24]),  # it is known what for
        (called(stream=7), [7]),  # on the stream of its producer, it follows that anyway
        (called(second=100), [24, 7]),
        (called(second=99), [24]),  # one of these began before the kernel had ended
        (called(threads=(0, 1)), [24]),  # that thread launched no compute: no stream of its own is known
    ],
)
def test_a_collective_waits_for_its_callers_current_stream_where_it_was_told_to_wait(
    run: Run, streams: list[int]
) -> None:
    rank = run.rank()
    found = [stream for stream, _ in producers_of(rank, "reduce_scatter")]
    assert sorted(found, reverse=True) == streams
    assert streams_before(rank, "norm") == {25}  # compute waits for what is known


def test_a_collective_with_a_producer_of_another_stream_is_not_given_its_callers() -> None:
    """An exchange on stream 31 ends 2 us before the last reduction begins, at 2,300."""
    run = called()
    run.work("send_recv", 2_200, 2_298, launch=2_001, stream=31)
    found = [stream for stream, _ in producers_of(run.rank(), "reduce_scatter")]
    assert found == [31, 24]


def test_of_many_streams_the_thirty_two_busiest_are_considered() -> None:
    assert _busiest(np.array([*range(33), 32])) == [32, *range(31)]


STEPS = 30


def steps(*waits: int, other: bool = False) -> Run:
    """In each step a GEMM, a SendRecv on stream 20, and a norm that begins 2 us after the SendRecv ended.

    `waits`: when in the step a stream is told to wait; the launches are at 0, 4 and 8. `other`: a
    reduction on stream 24 as well, launched at 2, long done when the norm begins.
    """
    run = Run()
    for number in range(STEPS):
        step = run.at(1_000 * number)
        step.work("gemm", 20, 100, launch=0)
        if other:
            step.work("reduce_scatter", 20, 40, launch=2, stream=24)
        step.work("send_recv", 30, 150 + number, launch=4, stream=20)
        step.work("norm", 152 + number, 192 + number, launch=8)
        for wait in waits:
            step.call("stream_wait", wait, wait + 0.1)
    return run


def streams_before(rank: RankTimeline, word: str) -> set[int]:
    """Streams of the producers of the last kernel of a name on stream 7, but for that."""
    return {stream for stream, _ in producers_of(rank, word)} - {7}


@pytest.mark.parametrize(("gap", "stream"), [(0, 20), (5, 20), (5.001, 24)])
def test_what_binds_ended_no_more_than_five_microseconds_before(gap: float, stream: int) -> None:
    """Else of two that fit one wait the one that was launched later is taken, long done as it is."""
    run = Run()
    for number in range(STEPS):
        step = run.at(1_000 * number)
        step.work("gemm", 20, 100, launch=0)
        step.work("send_recv", 30, 150 + number, launch=4, stream=20)
        step.work("reduce_scatter", 20, 40, launch=6, stream=24)
        step.work("norm", 150 + number + gap, 300, launch=8)
        for wait in (3, 5, 7):
            step.call("stream_wait", wait, wait + 0.1)
    assert streams_before(run.rank(), "norm") == {stream}


def test_two_waits_leave_room_for_both() -> None:
    rank = steps(1, 3, 6, 7, other=True).rank()
    assert streams_before(rank, "norm") == {20, 24}


def beside_weight_gradients(
    second: tuple[float, float] = (104, 200),
    blocks: int = 132,
    launched: int = 40,
    sm_count: int | None = 132,
    first: str = "gemm",
) -> Run:
    """A GEMM of 132 blocks on stream 20, 10-100 us, launched at 0, and a norm on stream 7."""
    run = Run(sm_count=sm_count)
    run.call("stream_wait", -2, -1)  # the GEMM was told to wait, the norm was not
    run.work(first, 10, 100, launch=0, stream=20, blocks=132)
    run.work("norm", *second, launch=launched, blocks=blocks)
    return run


@pytest.mark.parametrize(
    ("run", "streams"),
    [
        (beside_weight_gradients(), {20}),
        (beside_weight_gradients(second=(105, 200)), {20}),
        (beside_weight_gradients(second=(105.001, 200)), set()),  # not within 5 us of the end
        (beside_weight_gradients(launched=-4), {20}),  # launched first, and yet it waits
        (beside_weight_gradients(second=(102, 200), launched=100), set()),  # it did not wait over 2 us
        (beside_weight_gradients(blocks=1), {20}),
        (beside_weight_gradients(blocks=1, sm_count=133), set()),  # together they just fit
        (beside_weight_gradients(first="graph"), set()),  # nobody knows what room it takes
        (beside_weight_gradients(sm_count=None), {20}),  # no SM count: 264 blocks fill any GPU
    ],
)
def test_a_kernel_waits_for_room_on_the_sms(run: Run, streams: set[int]) -> None:
    assert streams_before(run.rank(), "norm") == streams


def test_room_that_a_kernel_launched_later_holds_is_marked() -> None:
    """Of two kernels one goes first in any case where it was launched first."""
    first = find_producers(beside_weight_gradients().rank())
    second = find_producers(beside_weight_gradients(launched=-4).rank())
    assert (first.room.tolist(), second.room.tolist(), first.place.shape) == ([-1, -1], [-1, 0], (2, 1))
    assert find_producers(beside_weight_gradients(launched=0).rank()).room.tolist() == [-1, 0]  # at once


@pytest.mark.parametrize(
    ("prefix", "later", "streams"),
    [("hip", 30, {20}), ("hip", 31, set()), ("cuda", 5, {20}), ("cuda", 6, set())],
)
def test_on_amd_a_signal_to_another_stream_takes_longer(prefix: str, later: int, streams: set[int]) -> None:
    run = Run()
    run.work("gemm", 20, 100, launch=0)
    run.work("send_recv", 30, 300, launch=4, stream=20)
    run.call(f"{prefix}StreamWaitEvent", 6, 7)
    run.work("norm", 300 + later, 340, launch=8)
    assert streams_before(run.rank(), "norm") == streams


Waited = tuple[int, int, int, int, int]


"""Stream that waits and when, stream whose event it was and when, and that stream's last work before."""


def reached_by_definition(waits: list[Waited]) -> dict[int, dict[int, int]]:
    """By stream the latest record that each wait has behind it, from wait to wait."""
    found = {}
    for row in range(len(waits)):
        open_, seen = [row], {row}
        while open_:
            _, _, stream, record_ns, work_ns = waits[open_.pop()]
            nearest = {
                other
                for other, (waiting, wait_ns, *_) in enumerate(waits)
                if waiting == stream and work_ns < wait_ns <= record_ns
            }
            open_ += nearest - seen
            seen |= nearest
        latest: dict[int, int] = {}
        for other in seen - {row}:
            stream, record_ns = waits[other][2:4]
            latest[stream] = max(record_ns, latest.get(stream, 0))
        found[row] = latest
    return found


@st.composite
def waits_of_streams(draw: st.DrawFn) -> list[Waited]:
    """Waits for events of some streams, in any order, some with work between them; all times differ."""
    count = draw(st.integers(1, 14))
    times = draw(st.lists(st.integers(1, 400), min_size=2 * count, max_size=2 * count, unique=True))
    works = {stream: sorted(draw(st.lists(st.integers(1, 400), max_size=3))) for stream in range(4)}
    made = []
    for first, second in zip(times[::2], times[1::2], strict=True):
        record_ns, wait_ns = sorted((first, second))
        stream = draw(st.integers(0, 3))
        before = [ns for ns in works[stream] if ns < record_ns]
        made.append((draw(st.integers(0, 3)), wait_ns, stream, record_ns, before[-1] if before else -1))
    return made


@trials(max_examples=300)
@given(waits_of_streams())
def test_what_lies_behind_a_wait_is_what_it_reaches_from_wait_to_wait(waits: list[Waited]) -> None:
    own, earlier = pending(*np.array(waits, dtype=np.int64).T)
    found: dict[int, dict[int, int]] = {row: {} for row in range(len(waits))}
    for row, other in zip(own.tolist(), earlier.tolist(), strict=True):
        stream, record_ns = waits[other][2:4]
        found[row][stream] = record_ns
    assert found == reached_by_definition(waits)


def test_ten_thousand_waits_without_work_are_followed_at_once() -> None:
    at_ns = np.arange(10_000, dtype=np.int64)
    begun = process_time()
    pending(at_ns % 3, 2 * at_ns + 1, (at_ns + 1) % 3, 2 * at_ns, np.full(10_000, -1, dtype=np.int64))
    assert process_time() - begun < 2.0


@pytest.mark.parametrize("later", [{"launched": False}, {"launch": 460}])
def test_nobody_waits_for_work_without_a_launch_row_that_began_later(later: dict[str, Any]) -> None:
    run = Run()
    run.work("gemm", 10, 20, launch=0)
    other = run.on(stream=20)
    other.work("reduce_scatter", 20, 40, launched=False)
    run.wait(20, by=7, recorded=3, waits=4)
    run.work("norm", 42, 60, launch=6)
    other.work("reduce_scatter", 500, 520, **later)
    other.work("reduce_scatter", 600, 620, launched=False)
    rank = run.rank()
    (norm,) = np.flatnonzero(rank.activities.start_ns == 42_000).tolist()
    producers = find_producers(rank).place[norm]
    assert sorted(rank.activities.start_ns[producers[producers >= 0]].tolist()) == [10_000, 20_000]


@pytest.mark.parametrize("seed", [50, 64, 7])
def test_no_work_waits_for_itself_or_for_later_work(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "lost_launches.sqlite"
    write_export(path, both_sides(seed)[1])
    for rank in build(read_trace(path)).ranks:
        place = find_producers(rank).place
        assert (place < np.arange(len(place))[:, None]).all()
