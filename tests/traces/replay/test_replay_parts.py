"""Parts of the replay by plain values, and what each handicap costs, a recording per rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.simulate.recording import Row
from tests.by_hand.run import Run
from tests.recordings.replay import US, Again, again, begun, costs_of, subject_of, us
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.intervals import spans
from traces.missing import Missing
from traces.replay.changes.costs import measure_costs, part_of
from traces.replay.edits import Edits, Subject, Wide
from traces.replay.graph import build_graph
from traces.replay.proofs import Cost, Proofs, doubt, may_wait_ns, refusal
from traces.replay.run import ReplayBorders, ReplayedTimes, replay
from traces.steps.found import one_window

WHOLE = one_window("none", "", 0, us(10_000))


def subject(run: Run, **about: Any) -> Subject:
    return subject_of(run.rank(), WHOLE, **about)


@pytest.mark.parametrize(("off", "is_refused"), [(0.0, False), (0.10, False), (0.101, True)])
def test_costs_are_refused_where_a_replay_misses_the_window_by_over_a_tenth(
    off: float, is_refused: bool
) -> None:
    found = refusal(Proofs(off, 0.5, 0.0), "nsys-sqlite")
    assert (found is not None) is is_refused


@pytest.mark.parametrize(
    ("busy", "elastic", "unexplained", "unseen", "doubted"),
    [
        (0.9, 0.39, 0.0, 0.1, True),
        (0.89, 0.39, 0.0, 0.1, False),  # the GPU is not as busy
        (0.9, 0.4, 0.0, 0.1, False),  # it shrinks with its work
        (0.9, 0.39, 0.0, 0.09, False),  # the host itself is seen to hold it
        (0.9, 0.39, 0.1, 0.0, True),
        (0.9, 0.39, 0.09, 0.09, False),
    ],
)
def test_costs_are_doubted_where_a_busy_window_hardly_shrinks_and_the_host_may_wait_unseen(
    busy: float, elastic: float, unexplained: float, unseen: float, doubted: bool
) -> None:
    found = doubt(Proofs(0.0, elastic, unexplained, unseen), busy, "nsys-sqlite")
    assert isinstance(found, Missing) is doubted
    if found:
        assert "busy 90 %" in found.reason
        assert "saves only 39 %" in found.reason


def test_kinds_cost_together_what_they_add_up_to_and_never_more_than_the_whole() -> None:
    cost = Cost(100, {"a": 30, "b": 50, "c": 60}, ())
    assert [cost.of_kinds_ns(kinds) for kinds in (("a",), ("a", "b"), ("b", "c"), ("d",))] == [30, 80, 100, 0]
    assert Cost(100, {}, ()).of_kinds_ns(("a",)) == 100  # it was not split


def may_wait(run: Run) -> float:
    found = again(run)
    return may_wait_ns(found.rank, found.graph, spans((us(-20), us(10_000)))) / US


def waiting_unseen(end: float, launch: float = 10) -> float:
    """Work that ends at so, launched before a pause of the host from 12 or so to 200."""
    run = begun()
    run.work("send_recv", 100, end, launch=launch, stream=20)
    run.work("gemm", 300, 400, launch=200)
    return may_wait(run)


@pytest.mark.parametrize(
    ("end", "pause"),
    [
        (190, 188),  # from the launch's return at 12 to 200
        (180.001, 188),
        (180, 0),  # 20 us before its end and no less
        (200, 188),
        (200.001, 2),  # ends after it, within the launch call of 2
    ],
)
def test_a_pause_may_be_a_wait_where_work_launched_before_it_ends_just_before_its_end(
    end: float, pause: float
) -> None:
    assert waiting_unseen(end) == pause


def test_a_call_that_is_known_to_wait_is_no_unseen_wait_and_another_may_be() -> None:
    for call, unseen in (("device_sync", 0), ("malloc", 60)):
        run = begun()
        run.work("send_recv", 100, 195, launch=10, stream=20)
        run.call(call, 140, 200)
        run.work("gemm", 300, 400, launch=202)
        assert may_wait(run) == unseen


def test_a_host_that_asks_again_and_again_may_wait_all_that_time() -> None:
    run = begun()
    for at in (20, 30, 40):
        run.call("cudaEventQuery_v3020", at, at + 2)
    run.call("cudaStreamQuery_v3020", 50, 52)
    run.work("gemm", 300, 400, launch=290)
    # the first is no question asked again: of the other three the pause of 8 and the call of 2
    assert may_wait(run) == 3 * 10


def shares(run: Run, **about: Any) -> tuple[list[float], list[bool]]:
    found = subject(run, **about)
    return found.filled_share().tolist(), found.crowded().tolist()


def test_only_compute_of_fewer_blocks_than_sms_is_filled() -> None:
    run = begun()
    for place, (name, blocks) in enumerate((("gemm", 33), ("gemm", 131), ("gemm", 264), ("send_recv", 8))):
        run.work(name, 100 + 10 * place, 110 + 10 * place, blocks=blocks)
    run.work("h2d", 200, 210)
    found, _ = shares(run, sm_count=132)
    assert found == [1, 0.25, 131 / 132, 1, 1, 1]
    assert shares(run, sm_count=132, apart=np.array([1]))[0] == [1, 1, 131 / 132, 1, 1, 1]
    assert shares(run)[0] == [1] * 6
    assert subject(run, sm_count=132).filled_share(66).tolist() == [1, 0.5, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("about", "crowded"),
    [
        ({"stretch_frac": 0.25, "sm_count": 132}, [True, True, True]),  # measured: all of it
        ({"stretch_frac": 0.25, "sm_count": 132, "stretch_measured": False}, [True, False, True]),
        ({"sm_count": 132, "stretch_measured": False}, [True, True, True]),
        ({"stretch_frac": 0.25, "stretch_measured": False}, [True, True, True]),
    ],
)
def test_a_kernel_that_finds_room_beside_communication_is_not_crowded(
    about: dict[str, Any], crowded: list[bool]
) -> None:
    """A quarter more time is 132 / 1.25 = 105.6 SMs that are left."""
    run = begun()
    run.work("gemm", 100, 110, blocks=105)
    run.work("gemm", 110, 120, blocks=106)
    run.work("send_recv", 120, 130, blocks=200)
    assert shares(run, **about)[1] == [*crowded, False]


def test_matrix_work_takes_its_share_in_a_faster_format_and_at_least_none_where_rates_are_unknown() -> None:
    run = begun()
    for at in (100, 200, 300):
        run.work("gemm", at, at + 50)
    wide = (Wide(np.array([1]), 0.5, exact=True), Wide(np.array([2]), 0.25, exact=False))
    found = subject(run, simt=[3], tensor_frac=0.125, wide=wide)
    assert found.tensor_share().tolist() == [1, 1, 1, 0.125]
    assert found.narrow_share().tolist() == [1, 0.5, 0.25, 1]
    assert found.narrow_share(least=True).tolist() == [1, 0.5, 0, 1]
    assert subject(run, simt=[3], tensor_frac=2.0).tensor_share().tolist() == [1] * 4  # never slower
    assert subject(run, simt=[3]).tensor_share().tolist() == [1] * 4


@pytest.mark.parametrize(
    ("about", "priced"),
    [
        *(({}, False), ({"sm_count": 132}, True), ({"simt": [0]}, True)),
        ({"wide": (Wide(np.array([0]), 0.5, exact=True),)}, True),
        ({"wide": (Wide(np.array([], dtype=np.int64), 0.5, exact=True),)}, False),
    ],
)
def test_compute_has_a_price_where_grids_or_formats_are_known(about: dict[str, Any], priced: bool) -> None:
    found = subject(begun(), **about)
    assert found.prices_compute is priced
    graph = again(begun()).graph
    assert ("compute" in Edits(found, graph, graph.timing).walls()) is priced


def test_classes_of_compute_have_a_price_where_one_of_their_grids_is_not_filled() -> None:
    run = begun()
    run.work("attention", 100, 200, launch=10, blocks=33)
    run.work("norm", 200, 300, launch=13, blocks=132)
    costs = costs_of(run, (0, 300), sm_count=132)
    assert costs.compute is not None
    assert costs.compute.by_kind_ns == {"attention": 75 * US}


# borders


def bordered(run: Run, *pairs: tuple[float, float], **how: Any) -> tuple[Again, ReplayBorders]:
    found = again(run)
    return found, ReplayBorders(found.graph.rows, [(us(a), us(b)) for a, b in pairs], **how)


def lasting(found: Again, borders: ReplayBorders, *lengths: float) -> list[float]:
    """What steps last where all works take other times and follow each other from 0 on."""
    ends = np.cumsum([us(length) for length in lengths])
    starts = ends - np.array([us(length) for length in lengths])
    return [ns / US for ns in borders.lengths_ns(ReplayedTimes(starts, ends)).tolist()]


def chain(*lengths: float) -> Run:
    run = Run()
    at = 0.0
    for length in lengths:
        run.work("gemm", at, at + length, launch=at - 10)
        at += length
    return run


def test_a_step_lasts_until_its_work_is_done_and_of_what_runs_across_a_border_as_much_as_had_been() -> None:
    found, borders = bordered(chain(100, 100, 100), (0, 100), (100, 225), (225, 300))
    assert lasting(found, borders, 100, 100, 100) == [100, 125, 75]
    # a quarter of the third had been done at the second border
    assert lasting(found, borders, 40, 60, 200) == [40, 60 + 50, 150]


def test_a_border_before_all_work_is_where_that_begins() -> None:
    found, borders = bordered(chain(100, 100), (-50, 100), (100, 200))
    assert lasting(found, borders, 50, 30) == [50, 30]


def test_each_step_counts_for_as_long_as_it_stands_for() -> None:
    found, borders = bordered(chain(100, 100), (0, 100), (100, 200), stand_for_ns=[us(300), us(50)])
    assert lasting(found, borders, 40, 60) == [120, 30]


def test_stretches_apart_hold_nothing_up_and_what_came_before_a_later_one_stays() -> None:
    run = chain(100, 100, 100, 100)
    found, borders = bordered(run, (0, 100), (300, 400), apart_ns=[us(250)])
    done = replay(found.graph, found.graph.timing)
    later = ReplayedTimes(done.start_ns, done.end_ns + us(1_000) * (np.arange(4) == 1))
    assert (borders.lengths_ns(later) / US).tolist() == [100, 100]


def test_a_helpers_work_makes_no_border_of_a_replay() -> None:
    dali = "void dali::kernels::transforms::SliceFlipNormalizePermutePadKernel<float, unsigned char, 3>()"
    run = chain(100, 100)
    run.work(dali, 90, 140, launch=50, thread=9, stream=30)
    found, borders = bordered(run, (0, 100), (100, 200))
    done = replay(found.graph, found.graph.timing)
    ends = done.end_ns.copy()
    ends[found.rank.activities.stream_id == 30] += us(500)
    assert (borders.lengths_ns(ReplayedTimes(done.start_ns, ends)) / US).tolist() == [100, 100]


# what goes with what


def test_work_that_only_began_in_a_window_is_replayed_and_what_had_ended_is_not() -> None:
    run = chain(100, 100, 100)
    rank = run.rank()
    graph = build_graph(rank, spans((us(100), us(250))), find_queueing(rank))
    halved = replay(graph, replace(graph.timing, duration_ns=graph.timing.duration_ns // 2))
    assert (halved.end_ns / US).tolist() == [100, 150, 250]  # the last was launched at 190
    assert graph.anchor == -1
    assert build_graph(rank, spans((0, us(250))), find_queueing(rank)).anchor == 0


def test_of_a_part_of_a_recording_every_place_is_told_anew() -> None:
    """Of four kernels the last two run in the part, the one before them is kept for its end."""
    rank = chain(100, 100, 100, 100).rank()
    places = {"recomputed": [0, 2], "offloaded": [3], "resident": [1, 2], "simt": [0, 1, 3]}
    about: dict[str, Any] = {"apart": np.array([2]), "wide": (Wide(np.array([0, 1, 3]), 0.5, exact=True),)}
    part, queueing = part_of(
        subject_of(rank, WHOLE, **places, **about), find_queueing(rank), spans((us(200), us(400)))
    )
    told = {name: getattr(part, name).tolist() for name in (*places, "apart")}
    assert told == {"recomputed": [1], "offloaded": [2], "resident": [0, 1], "simt": [0, 2], "apart": [1]}
    assert [wide.places.tolist() for wide in part.wide] == [[0, 2]]
    assert (part.rank.activities.start_ns // US).tolist() == [100, 200, 300]
    assert part.rank.activities.launch_ns.tolist()[1:] == [us(190), us(290)]
    assert (part.rank.activities.call.tolist()[0], part.rank.activities.name.tolist()[0]) == (-1, -1)
    assert queueing.producers.place[:, 0].tolist() == [-1, 0, 1]


# the host


def starved() -> Run:
    """Nothing is called from -8 to 180; the second kernel starts at 190."""
    run = begun()
    run.work("gemm", 190, 290, launch=(180, 190))
    return run


@pytest.mark.parametrize("cause", ["os_wait", "python", "gc", "checkpoint"])
def test_after_its_cold_start_a_sync_is_no_cause_in_account_and_wall_alike(cause: str) -> None:
    run = begun()
    run.call("sync", 10, 110)  # returns 10 after its work
    run.work("gemm", 5_180, 5_280, launch=(5_170, 5_175))
    run.work("gemm", 10_180, 10_280, launch=(10_170, 10_175))  # a pause that comes again is no first one
    if cause == "os_wait":
        gid = run.recording.global_id(1000, 1000)
        row: Row = {"start": us(115), "end": us(5_170), "globalTid": gid, "nameId": "pthread_cond_wait"}
        run.recording.rows["OSRT_API"] = [row]
    elif cause != "python":
        run.range(cause, 160, 5_170)
    wall = Counter(costs_of(run, (0, 5_280)).host_overhead.by_kind_ns)
    told = run.account(window=(0, 5_280))
    assert (told["launch_starved.sync"], told[f"launch_starved.{cause}"]) == (60, 5_010)  # 10 called, 50 cold
    wall["python"] += wall.pop("long_python_pauses", 0)
    assert (wall["sync"], wall[cause]) == (60 * US, 5_010 * US)


def test_compilation_and_an_optimizer_on_the_cpu_have_their_own_prices() -> None:
    run = begun()
    run.work("norm_backward", 80, 90, launch=70)
    for at in (92, 102):
        run.work("d2h", at, at + 9, launch=(at - 2, at + 8))
    for at in (160, 165):
        run.work("h2d", at + 1, at + 4, launch=(at, at + 5))
    run.range("CompiledKernel::compile", 180, 220)
    run.work("gemm", 240, 300, launch=230)
    kinds = costs_of(run, (0, 300)).host_overhead.by_kind_ns
    assert (kinds["cpu_optimizer"], kinds["lazy_init"]) == (50 * US, 40 * US)


def test_a_host_below_a_wall_of_which_the_account_lays_less_on_it_is_no_first_thing_to_mend() -> None:
    run = begun()
    run.work("send_recv", 160, 260, launch=(150, 155), stream=20)
    run.wait(20, by=7, recorded=156, waits=158)
    run.work("gemm", 260, 1_550, launch=(160, 165))
    # 150 of 1,550 is below a tenth, and the account lays 80 less on the host, which is above a twentieth
    costs = costs_of(run, (0, 1_550))
    assert costs.host_overhead.ns == 70 * US
    assert "host_overhead" not in costs.without


# memory


def allocating(freed_at: tuple[int, ...], steps: tuple[int, ...] = (100, 200)) -> Run:
    """Steps of 100 us: memory is taken for 30 us, in some given back for 10 before, once or more often."""
    run = begun()
    for at in steps:
        for place in range(count := freed_at.count(at)):
            run.call("free", at + 10 // count * place, at + 10 // count * (place + 1))
        run.call("malloc", at + 10, at + 40)
        run.work("gemm", at + 60, at + 100, launch=(at + 50, at + 55))
    return run


@pytest.mark.parametrize(("frees", "first_us"), [(1, 40), (2, 40), (5, 0)])
def test_a_first_step_that_gives_memory_back_half_as_often_as_the_next_fills_no_cache(
    frees: int, first_us: int
) -> None:
    """One free in the first step; the cache is full from the first free on."""
    found = costs_of(allocating(freed_at=(100, *[200] * frees)), (100, 200), (200, 300))
    assert found.memory.step_ns == (first_us * US, 40 * US)


# steps and proofs


def test_a_window_without_steps_has_no_cost_per_step() -> None:
    run = starved()
    rank = run.rank()
    window = one_window("none", "", 0, us(290))
    queueing = find_queueing(rank)
    account = measure_account(rank, window.windows, queueing)
    found = measure_costs(subject_of(rank, window), account, queueing)
    assert not isinstance(found, Missing)
    assert (found.host_overhead.ns, found.host_overhead.step_ns) == (90 * US, ())


def test_a_window_that_all_constraints_explain_misses_nothing_and_shrinks_with_its_work() -> None:
    run = begun()
    run.work("gemm", 100, 200, launch=10)
    run.work("gemm", 200, 300, launch=13)
    found = costs_of(run, (100, 300))
    assert (found.proofs.residual_free_error_frac, found.proofs.unexplained_frac) == (0, 0)
    assert found.proofs.elastic_frac == 0.5
    assert (found.refused, found.at_least) == (None, None)


def test_without_an_account_there_is_no_replay() -> None:
    rank = starved().rank()
    window = one_window("none", "", 0, us(290))
    missing = Missing("absent_ns", "clocks are apart", "record again")
    assert measure_costs(subject_of(rank, window), missing, find_queueing(rank)) == Missing(
        "replay", "clocks are apart", "record again"
    )
