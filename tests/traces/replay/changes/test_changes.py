"""What each kind of change would give, exchanges and experts too: a hand-built recording per rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.by_hand.run import Run
from tests.recordings.measured_changes import changes, surely
from tests.recordings.replay import US, begun, recomputed_with_its_collective, subject_of, us
from traces.account.device import find_queueing
from traces.names.kernels import COMM_KINDS
from traces.replay.changes.change import Recorded
from traces.replay.changes.overlap import _drains, _pairs
from traces.replay.graph import build_graph
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline


def attention(run: Run, at: float, pause: float = 10) -> float:
    """Norm, GEMM, attention, GEMM and addition of 2 us each, launched one after the other; when they end."""
    for name in ("norm", "gemm", "attention", "gemm", "add"):
        run.work(name, at + pause, at + pause + 2, launch=(at + pause - 4, at + pause))
        at += pause
    return at + 2


# graphs


def test_a_graph_saves_its_launches_and_what_lies_between_them() -> None:
    run = begun()
    end = attention(run, 100)
    found = changes(run.rank(), (100, end))["graph_attn"]
    # five launches end 10 apart; one of twice the 4 us of a launch and 0.2 us for each of 5 kernels stays,
    # then the kernels run back to back: 40 us of waiting less 5 of the longer call, less 4 x 2 of kernels
    assert found.low_ns == surely(40 - 5 - 8)
    assert found.high_ns == 40 * US + 4 * US - 8 * US


# garbage collection


def test_long_pauses_without_a_name_have_only_a_ceiling() -> None:
    run = begun()
    run.work("gemm", 1_000, 1_100, launch=(990, 1_000))
    found = changes(run.rank(), (0, 1_100))["collection_at_edges"]
    assert found.low_ns is None
    assert found.because == "no range names a collection; long pauses without a call could be something else"


# memory


def test_recompute_takes_its_collectives_and_syncs_along() -> None:
    run = recomputed_with_its_collective()
    found = changes(run.rank(), (100, 300), recomputed=[1, 2, 3])["recompute_dropped"]
    assert found.low_ns is not None
    assert found.high_ns == 130 * US
    assert surely(110) <= found.low_ns <= surely(130)  # the pause before it, of 18, stays


def test_waits_that_nothing_explains_stay_where_that_gives_less() -> None:
    run = begun()
    run.work("gemm", 100, 160, launch=13)
    run.work("gemm", 120, 200, launch=10, stream=20)
    run.wait(20, by=7, recorded=16, waits=18)
    run.work("gemm", 200, 300, launch=20)
    found = changes(run.rank(), (0, 300), recomputed=[1])["recompute_dropped"]
    # the other stream's kernel was launched by 12 and began at 120: with that wait the last one begins at 200
    # whatever is recomputed
    assert found.low_ns == 0
    assert found.high_ns > 50 * US


def as_kinds(rank: RankTimeline, kinds: Mapping[int, str]) -> RankTimeline:
    """Communication told to be of some kinds, by place."""
    key = rank.activities.key.copy()
    for place, kind in kinds.items():
        key[place] = COMM_KINDS.index(kind)
    return replace(rank, activities=replace(rank.activities, key=key))


# overlap


def two_passes(run: Run, handover: float = 0) -> float:
    """Backward of a layer and forward of one, 1 stream, all launched early: exchanges take 100 each.

    Backward: experts 200, attention 100. Forward: attention 50, experts 200.
    """
    backward = (("dispatch", 100), ("gemm", 200), ("combine", 100), ("attention_backward", 100))
    forward = (("attention", 50), ("dispatch", 100), ("gemm", 200), ("combine", 100))
    at, called = 100.0, 2.0
    for one, thread in ((backward, 1), (forward, 0)):
        for name, length in one:
            at = max(at, called + 2)
            run.work(name, at, at + length, launch=called, thread=thread)
            at, called = at + length, called + 4
        called += handover
    return at


def test_an_exchange_hides_what_compute_of_the_other_pass_lies_beside_it() -> None:
    run = begun()
    end = two_passes(run)
    found = changes(run.rank(), (0, end), stretch_frac=0.25)["expert_overlap"]
    # of 100 under enough compute 80 is won, for that takes a quarter longer; under attention's 50 these 50:
    # backward's dispatch lies beside forward's attention
    assert (found.low_ns, found.high_ns) == (surely(50 + 80 + 80 + 80), 400 * US)


def test_without_a_measured_stretch_overlap_has_no_lower_end() -> None:
    run = begun()
    end = two_passes(run)
    found = changes(run.rank(), (0, end))["expert_overlap"]
    assert found.low_ns is None
    assert found.because is not None
    assert "was not measured" in found.because


def test_passes_of_two_steps_do_not_overlap() -> None:
    run = begun()
    end = two_passes(run)
    assert "expert_overlap" not in changes(run.rank(), (0, 600), (600, end), stretch_frac=0.25)


def test_forward_that_reads_counts_makes_the_host_wait_for_backward_in_each_layer_once() -> None:
    """Backward is three layers of four kernels of 100, from 100 on, one launched every 4 from 2 on.

    The second layer's dispatch is launched at 18 behind attention, which ends at 500; the third's at 34
    behind that which ends at 900, and the host has waited 482 already. Before the first there is nothing.
    """
    for counts, calls, waits in ((True, [18, 34], [482, 384]), (False, [], [])):
        run, at, called = begun(), 100, 2
        layers = (
            ("dispatch", "gemm", "combine", "attention_backward"),
            ("attention", "dispatch", "gemm", "combine"),
        )
        for layer, thread in zip(layers, (1, 0), strict=True):
            for name in layer * 3:
                run.work(name, at, at + 100, launch=called, thread=thread)
                at, called = at + 100, called + 4
        if counts:
            run.work("d2h", at, at + 10, launch=called, size_bytes=256)
            run.call("sync", called + 4, at + 18)
        rank = run.rank()
        window = from_steps("user", "", (Step(0, 0, us(10_000)),))
        about = Recorded(subject_of(rank, window), build_graph(rank, window.windows, find_queueing(rank)))
        places, waited = _drains(about, _pairs(about))
        assert (about.graph.calls.start_ns[places] / US).tolist() == calls
        assert (waited / US).tolist() == waits


# a faster dispatcher


def test_only_what_moves_gets_faster() -> None:
    run = begun()
    run.work("send_recv", 100, 200, launch=2)
    run.work("gemm", 200, 300, launch=6)
    run.work("send_recv", 300, 360, launch=10)
    rank = as_kinds(run.rank(), {1: "ep_dispatch", 3: "ep_dispatch"})
    found = changes(rank, (0, 360))["faster_dispatcher"]
    # the fastest takes 60, so of both that is what moves at most: 2 x 60 x (1 - 744 / 827)
    assert found.low_ns is not None
    assert abs(found.low_ns - surely(2 * 60 * (1 - 744 / 827))) < 5
    assert abs(found.high_ns - 160 * US * (1 - 4.4 / 9.2)) < 2


def test_no_factor_is_published_from_a_dispatcher_that_is_fast_already() -> None:
    run = begun()
    run.work("dispatch", 100, 200, launch=2)
    assert "faster_dispatcher" not in changes(run.rank(), (0, 200))


# token counts


def with_counts(run: Run) -> None:
    """Counts arrive at 110, the host reads them until 118 and launches what follows until 122."""
    run.work("d2h", 100, 110, launch=10, size_bytes=256)
    run.call("sync", 14, 118)
    run.work("dispatch", 130, 200, launch=120)


def test_nothing_waits_for_token_counts_that_stay() -> None:
    run = begun()
    with_counts(run)
    found = changes(run.rank(), (0, 200))["token_counts_stay"]
    # pessimistic: the copy stays, so that the dispatch begins with its end at 110
    assert (found.low_ns, found.high_ns) == (surely(20), 30 * US)


# experts


def experts(run: Run, *blocks: int) -> float:
    """Between a dispatch and a combine one GEMM of 100 us for each number of blocks."""
    run.work("dispatch", 100, 110, launch=2)
    at = 110.0
    for place, count in enumerate(blocks):
        run.work("gemm", at, at + 100, launch=(6 + 4 * place, 8 + 4 * place), blocks=count)
        at += 100
    run.work("combine", at, at + 10, launch=90)
    return at + 10


def test_a_last_wave_is_whole_in_the_pessimistic_end() -> None:
    run = begun()
    end = experts(run, 65, 65, 65, 65)
    run.work("gemm", end, end + 20, launch=94)
    found = changes(run.rank(), (0, end), sm_count=100)["grouped_experts"]
    # 260 blocks are three waves of 100 us; or 2.6 of 80, and once the 20 of the shortest kernel
    assert (found.low_ns, found.high_ns) == (surely(100), 172 * US)


def test_without_the_number_of_sms_only_launches_go() -> None:
    run = begun()
    end = experts(run, 33, 33)
    assert changes(run.rank(), (0, end))["grouped_experts"].low_ns == 0
