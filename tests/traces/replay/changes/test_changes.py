"""What each kind of change would give: one hand-built recording per rule, in round numbers."""

from __future__ import annotations

from tests.by_hand.run import Run
from tests.recordings.measured_changes import changes, surely
from tests.recordings.replay import US, begun, recomputed_with_its_collective, subject_of, us
from traces.account.device import find_queueing
from traces.replay.changes.change import Recorded
from traces.replay.graph import build_graph
from traces.steps.found import Step, from_steps
from traces.timeline import RankTimeline

LOSS = "void transformer_engine::fused_moe_aux_loss_forward_kernel<float>(int)"


def recorded(rank: RankTimeline) -> Recorded:
    window = from_steps("user", "", (Step(0, 0, us(100_000)),))
    return Recorded(subject_of(rank, window), build_graph(rank, window.windows, find_queueing(rank)))


def attention(run: Run, at: float, pause: float = 10) -> float:
    """Norm, GEMM, attention, GEMM and addition of 2 us each, launched one after the other; when they end."""
    for name in ("norm", "gemm", "attention", "gemm", "add"):
        run.work(name, at + pause, at + pause + 2, launch=(at + pause - 4, at + pause))
        at += pause
    return at + 2


# which launches belong together


# graphs


def test_a_graph_saves_its_launches_and_what_lies_between_them() -> None:
    run = begun()
    end = attention(run, 100)
    found = changes(run.rank(), (100, end))["graph_attn"]
    # five launches end 10 apart; one of twice the 4 us of a launch and 0.2 us for each of 5 kernels stays,
    # then the kernels run back to back: 40 us of waiting less 5 of the longer call, less 4 x 2 of kernels
    assert found.low_ns == surely(40 - 5 - 8)
    assert found.high_ns == 40 * US + 4 * US - 8 * US


# fewer kernels


# garbage collection


def test_collections_move_to_the_edge_of_their_step() -> None:
    run = begun()
    for place in range(3):
        at = 200 + 100 * place
        run.range("gc", at - 60, at - 10)
        run.work("gemm", at, at + 40, launch=(at - 5, at))
    found = changes(run.rank(), (0, 340), (340, 440))["collection_at_edges"]
    # two in the first step and one in the second, 50 us each; one each stays
    assert (found.low_ns, found.high_ns) == (surely(50), 150 * US)


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
