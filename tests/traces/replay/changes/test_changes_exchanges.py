"""What changes of expert all-to-alls and of experts would give, in round numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.recordings.measured_changes import ATTENTION, changes, surely
from tests.recordings.replay import GEMM, SENDRECV, SYNC, US, Said, rank_of
from traces.names.kernels import COMM_KINDS
from traces.timeline import RankTimeline

DISPATCH = "void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(int4 *, float *)"
COMBINE = "void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)768, (int)4096>(T1 *, float *)"
ATTENTION_BWD = ATTENTION.replace("fprop", "bprop")
AUTOGRAD = 1001


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def as_kinds(rank: RankTimeline, kinds: Mapping[int, str]) -> RankTimeline:
    """Communication told to be of some kinds, by place."""
    key = rank.activities.key.copy()
    for place, kind in kinds.items():
        key[place] = COMM_KINDS.index(kind)
    return replace(rank, activities=replace(rank.activities, key=key))


# overlap


def two_passes(said: Said, handover: float = 0) -> float:
    """Backward of a layer and forward of one, 1 stream, all launched early: exchanges take 100 each.

    Backward: experts 200, attention 100. Forward: attention 50, experts 200.
    """
    backward = ((DISPATCH, 100), (GEMM, 200), (COMBINE, 100), (ATTENTION_BWD, 100))
    forward = ((ATTENTION, 50), (DISPATCH, 100), (GEMM, 200), (COMBINE, 100))
    at, called = 100.0, 2.0
    for one, tid in ((backward, AUTOGRAD), (forward, 1000)):
        for name, length in one:
            at = max(at, called + 2)
            said.kernel(name, at, at + length, launch=(called, called + 2), tid=tid)
            at, called = at + length, called + 4
        called += handover
    return at


def test_an_exchange_hides_what_compute_of_the_other_pass_lies_beside_it(path: Path) -> None:
    said = Said()
    end = two_passes(said)
    found = changes(rank_of(path, said), (0, end), stretch_frac=0.25)["expert_overlap"]
    # of 100 under enough compute 80 is won, for that takes a quarter longer; under attention's 50 these 50:
    # backward's dispatch lies beside forward's attention
    assert (found.low_ns, found.high_ns) == (surely(50 + 80 + 80 + 80), 400 * US)


def test_without_a_measured_stretch_overlap_has_no_lower_end(path: Path) -> None:
    said = Said()
    end = two_passes(said)
    found = changes(rank_of(path, said), (0, end))["expert_overlap"]
    assert found.low_ns is None
    assert found.because is not None
    assert "was not measured" in found.because


def test_passes_of_two_steps_do_not_overlap(path: Path) -> None:
    said = Said()
    end = two_passes(said)
    assert "expert_overlap" not in changes(rank_of(path, said), (0, 600), (600, end), stretch_frac=0.25)


def test_a_host_slow_to_hand_over_may_lose_by_the_overlap(path: Path) -> None:
    said = Said()
    end = two_passes(said, handover=400)
    found = changes(rank_of(path, said), (0, end), stretch_frac=0.25)["expert_overlap"]
    assert found.low_ns is not None
    assert found.low_ns < 0 < found.high_ns


# a faster dispatcher


def test_only_what_moves_gets_faster(path: Path) -> None:
    said = Said()
    said.kernel(SENDRECV, 100, 200, launch=(2, 4))
    said.kernel(GEMM, 200, 300, launch=(6, 8))
    said.kernel(SENDRECV, 300, 360, launch=(10, 12))
    rank = as_kinds(rank_of(path, said), {1: "ep_dispatch", 3: "ep_dispatch"})
    found = changes(rank, (0, 360))["faster_dispatcher"]
    # the fastest takes 60, so of both that is what moves at most: 2 x 60 x (1 - 744 / 827)
    assert found.low_ns is not None
    assert abs(found.low_ns - surely(2 * 60 * (1 - 744 / 827))) < 5
    assert abs(found.high_ns - 160 * US * (1 - 4.4 / 9.2)) < 2


def test_no_factor_is_published_from_a_dispatcher_that_is_fast_already(path: Path) -> None:
    said = Said()
    said.kernel(DISPATCH, 100, 200, launch=(2, 4))
    assert "faster_dispatcher" not in changes(rank_of(path, said), (0, 200))


# token counts


def with_counts(said: Said) -> None:
    """Counts arrive at 110, the host reads them until 118 and launches what follows until 122."""
    said.copy("d2h", 100, 110, launch=(10, 12), size_bytes=256)
    said.call(SYNC, 14, 118)
    said.kernel(DISPATCH, 130, 200, launch=(120, 122))


def test_nothing_waits_for_token_counts_that_stay(path: Path) -> None:
    said = Said()
    with_counts(said)
    found = changes(rank_of(path, said), (0, 200))["token_counts_stay"]
    # pessimistic: the copy stays, so that the dispatch begins with its end at 110
    assert (found.low_ns, found.high_ns) == (surely(20), 30 * US)


def test_a_number_read_far_from_any_exchange_is_no_token_count(path: Path) -> None:
    said = Said()
    said.copy("d2h", 100, 110, launch=(10, 12), size_bytes=256)
    said.call(SYNC, 14, 118)
    said.kernel(GEMM, 130, 200, launch=(120, 122))
    assert "token_counts_stay" not in changes(rank_of(path, said), (0, 200))


# experts


def experts(said: Said, *blocks: int) -> float:
    """Between a dispatch and a combine one GEMM of 100 us for each number of blocks."""
    said.kernel(DISPATCH, 100, 110, launch=(2, 4))
    at = 110.0
    for place, count in enumerate(blocks):
        said.kernel(GEMM, at, at + 100, launch=(6 + 4 * place, 8 + 4 * place), grid=(count, 1, 1))
        at += 100
    said.kernel(COMBINE, at, at + 10, launch=(90, 92))
    return at + 10


def test_grids_of_a_quarter_fill_one_wave_together(path: Path) -> None:
    said = Said()
    end = experts(said, 33, 33, 33, 33)
    found = changes(rank_of(path, said), (0, end), sm_count=132)["grouped_experts"]
    assert (found.low_ns, found.high_ns) == (surely(300), 300 * US)


def test_a_last_wave_is_whole_in_the_pessimistic_end(path: Path) -> None:
    said = Said()
    end = experts(said, 65, 65, 65, 65)
    said.kernel(GEMM, end, end + 20, launch=(94, 96))
    found = changes(rank_of(path, said), (0, end), sm_count=100)["grouped_experts"]
    # 260 blocks are three waves of 100 us; or 2.6 of 80, and once the 20 of the shortest kernel
    assert (found.low_ns, found.high_ns) == (surely(100), 172 * US)


def test_without_the_number_of_sms_only_launches_go(path: Path) -> None:
    said = Said()
    end = experts(said, 33, 33)
    assert changes(rank_of(path, said), (0, end))["grouped_experts"].low_ns == 0


def test_dense_gemms_in_a_row_are_no_experts(path: Path) -> None:
    said = Said()
    said.kernel(GEMM, 100, 200, launch=(2, 4), grid=(33, 1, 1))
    said.kernel(GEMM, 200, 300, launch=(6, 8), grid=(33, 1, 1))
    assert "grouped_experts" not in changes(rank_of(path, said), (0, 300), sm_count=132)
