"""What NCCL's SendRecv is for, and on what evidence that is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.recordings.launches import (
    ATTENTION,
    FILL,
    GEMM,
    GROUPED,
    NORM,
    NORM_BACKWARD,
    PERMUTE,
    ROUTER,
    SENDRECV,
    UNPERMUTE,
    Line,
    kinds,
    moe_layer,
    rank_of,
    told,
)
from traces.formats.open import read_trace
from traces.intervals import spans
from traces.measure.budget import measure_budget
from traces.resolve.kinds import resolve_kinds
from traces.resolve.resolution import with_kinds
from traces.timeline import build

Export = Callable[..., Path]


def test_groups_of_as_many_peers_are_expert_traffic_where_experts_run(export: Export) -> None:
    line = Line()
    moe_layer(line, lambda: line.group(4, 4))
    line.all(NORM)
    assert told(rank_of(export(line.recording))) == [
        ("ep_dispatch", "dispatch", "fwd", "nccl_groups", "high"),
        ("ep_dispatch", "dispatch", "fwd", "nccl_groups", "high"),
        ("ep_combine", "combine", "fwd", "nccl_groups", "high"),
    ]


def test_one_send_per_group_is_the_pipeline(export: Export) -> None:
    line = Line()
    moe_layer(line, lambda: line.group(4, 4))
    line.group(1, 0, stream=24)
    line.group(0, 1, stream=24)
    line.group(1, 1, stream=24)
    line.all(NORM)
    assert told(rank_of(export(line.recording)))[3:] == [("pp_p2p", "p2p", None, "nccl_groups", "high")] * 3


def test_the_same_trace_without_nvtx_and_permutes_stays_unresolved_and_says_what_would_settle_it(
    export: Export,
) -> None:
    line = Line()
    for _ in range(4):
        line.all(NORM, ATTENTION, NORM, GEMM)
        line.run(SENDRECV, stream=20)
        line.all(GEMM)
    rank = rank_of(export(line.recording))
    found = resolve_kinds(rank)
    assert told(rank, found) == [("sendrecv_unresolved", None, None, "name", "low")] * 4
    (open_stream,) = found.unresolved
    assert (open_stream.stream_id, open_stream.kernel_count, open_stream.work_ns) == (20, 4, 40_000)
    assert "--trace=cuda,nvtx" in open_stream.cure


def test_an_all_to_all_beside_attention_without_experts_is_context_parallel(export: Export) -> None:
    line = Line()
    line.all(NORM, GEMM)
    line.group(4, 4)
    line.all(ATTENTION)
    line.group(4, 4)
    line.all(GEMM, NORM)
    assert told(rank_of(export(line.recording))) == [("cp", "a2a", "fwd", "nccl_groups", "medium")] * 2


def test_an_all_to_all_of_a_recommender_is_no_expert_traffic(export: Export) -> None:
    line = Line()
    for _ in range(3):
        line.all("void fbgemm_gpu::permute_2D_data_kernel<1>", GEMM)
        line.within("nccl:all_to_all")
        line.all(GEMM)
    rows = told(rank_of(export(line.recording)))
    assert rows == [("sendrecv_unresolved", "a2a", None, "name", "low")] * 3


def test_an_annotated_all_to_all_is_expert_traffic_where_experts_run(export: Export) -> None:
    line = Line()
    moe_layer(line, lambda: line.within("nccl:all_to_all, seq = 7"))
    assert {row[3:] for row in told(rank_of(export(line.recording)))} == {("nvtx_range", "medium")}
    assert kinds(rank_of(export(line.recording, "b.sqlite"))) == ["ep_dispatch", "ep_dispatch", "ep_combine"]


def test_two_sends_and_two_receives_alone_settle_nothing(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    line.group(2, 2)
    line.all(GEMM)
    found = resolve_kinds(rank_of(export(line.recording)))
    assert found.of_kind("sendrecv_unresolved").all()
    assert "more than one use" in found.unresolved[0].reason


def test_two_sends_and_two_receives_between_permute_and_experts_are_expert_traffic(export: Export) -> None:
    line = Line()
    moe_layer(line, lambda: line.group(2, 2))
    assert {row[3:] for row in told(rank_of(export(line.recording)))} == {("neighbours", "medium")}


def test_a_pipeline_that_sends_both_ways_in_its_steady_state_stays_a_pipeline(export: Export) -> None:
    line = Line()
    for sends, receives in ((1, 0), (2, 2), (2, 2), (0, 1)):
        line.all(GEMM)
        line.group(sends, receives)
    rows = told(rank_of(export(line.recording)))
    assert [(row[0], row[3]) for row in rows] == [("pp_p2p", "nccl_groups")] * 4


def test_peers_without_tokens_do_not_make_an_all_to_all_a_pipeline(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    for peers in (4, 1, 2):
        line.group(peers, peers)
    line.all(GROUPED)
    rows = told(rank_of(export(line.recording)))
    assert [(row[0], row[3]) for row in rows] == [("ep_dispatch", "nccl_groups")] * 3


def test_a_peer_without_tokens_does_not_make_an_exchange_of_two_a_pipeline(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    for peers in (2, 1, 2):
        line.group(peers, peers)
    line.all(GROUPED)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch"] * 3


def test_expert_traffic_between_attention_and_experts_is_not_context_parallel(export: Export) -> None:
    line = Line()
    line.all(ATTENTION, FILL)
    line.group(4, 4)
    line.all(GROUPED)
    line.group(4, 4)
    line.all(FILL, ATTENTION)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "ep_combine"]


def test_the_backward_of_an_unpermute_permutes(export: Export) -> None:
    line = Line()
    line.all(NORM_BACKWARD, "_unpermute_bwd_with_merging_probs_kernel")
    line.run(SENDRECV, stream=20)
    line.all(GEMM)
    line.run(SENDRECV, stream=20)
    line.all(UNPERMUTE, NORM_BACKWARD)
    assert [row[:4] for row in told(rank_of(export(line.recording)))] == [
        ("ep_dispatch", "dispatch", "bwd", "neighbours"),
        ("ep_combine", "combine", "bwd", "neighbours"),
    ]


def test_a_ring_beside_attention_is_context_parallel_and_elsewhere_a_pipeline(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    line.group(1, 1, stream=24)
    line.all(ATTENTION, GEMM)
    line.group(1, 1, stream=28)
    line.all(GEMM)
    assert kinds(rank_of(export(line.recording))) == ["cp", "pp_p2p"]


def test_a_group_whose_start_was_not_recorded_counts_for_nothing(export: Export) -> None:
    line = Line()
    line.all(GEMM)
    line.recording.range("ncclSend", 20_000, 20_100, domain=1)
    line.recording.range("ncclGroupEnd", 20_500, 24_000, domain=1)
    line.run(SENDRECV, stream=20)
    assert kinds(rank_of(export(line.recording))) == ["sendrecv_unresolved"]


def test_a_group_in_a_group_counts_with_the_outer_one(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    starts = ("ncclGroupStart", "ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd", "ncclSend")
    for place, text in enumerate((*starts, "ncclSend", "ncclRecv")):
        line.recording.range(text, 20_000 + 10 * place, 20_005 + 10 * place, domain=1)
    line.recording.range("ncclGroupEnd", 20_500, 24_000, domain=1)
    line.run(SENDRECV, stream=20)
    line.all(GROUPED)
    assert told(rank_of(export(line.recording)))[0][3] == "nccl_groups"  # three sends: an all-to-all


def test_a_range_names_the_purpose_and_a_module_s_backward_moves_the_other_way(export: Export) -> None:
    line = Line()
    line.within("moe_dispatch forward")
    line.within("moe_combine forward")
    line.within("moe_combine backward")
    line.within("moe_dispatch backward")
    line.within("megatron.core.pipeline_parallel.p2p_communication.P2PCommunicator.recv_forward", stream=24)
    line.within("transformer_engine.AttnFuncWithCPAndKVP2P.forward", stream=28)
    line.run(GEMM)
    assert [row[:3] for row in told(rank_of(export(line.recording)))] == [
        ("ep_dispatch", "dispatch", "fwd"),
        ("ep_combine", "combine", "fwd"),
        ("ep_dispatch", "dispatch", "bwd"),
        ("ep_combine", "combine", "bwd"),
        ("pp_p2p", "p2p", None),
        ("cp", None, None),
    ]


def test_the_range_around_a_kernel_of_every_collective_says_which_it_is(export: Export) -> None:
    line = Line()
    for text in ("nccl:all_reduce", "nccl:_all_gather_base", "nccl:broadcast", "layer"):
        line.within(text, "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096>)")
    assert told(rank_of(export(line.recording))) == [
        ("all_reduce", "all_reduce", None, "nvtx_range", "high"),
        ("other_comm", "all_gather", None, "nvtx_range", "low"),
        ("other_comm", "broadcast", None, "nvtx_range", "low"),
        ("other_comm", None, None, "name", "low"),
    ]


def test_the_innermost_range_that_tells_wins(export: Export) -> None:
    line = Line()
    line.recording.range("moe_dispatch forward", 0, 100_000)
    line.recording.range("attn forward", 1, 99_999)
    line.recording.range("moe_combine backward", 30_000, 40_000)
    line.all(GEMM)
    line.run(SENDRECV, stream=20)  # launched at 21 us
    line.run(FILL, length=0)
    line.run(SENDRECV, stream=20)  # launched at 51 us
    assert [row[:3] for row in told(rank_of(export(line.recording)))] == [
        ("ep_dispatch", "dispatch", "fwd")
    ] * 2


def test_a_stream_whose_named_kernels_agree_names_the_others(export: Export) -> None:
    line = Line()
    line.within("moe_dispatch forward")
    line.all(GEMM)
    line.run(SENDRECV, stream=20)
    line.run(SENDRECV, stream=21)
    line.all(GEMM)
    assert [row[0] for row in told(rank_of(export(line.recording)))] == [
        "ep_dispatch",
        "ep_a2a",
        "sendrecv_unresolved",
    ]


def test_a_stream_shared_with_compute_names_nothing(export: Export) -> None:
    line = Line()
    line.within("moe_dispatch forward", stream=7)
    line.all(GEMM)
    line.run(SENDRECV, stream=7)
    line.all(GEMM)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "sendrecv_unresolved"]


def test_pipeline_exchange_between_layers_is_not_taken_for_expert_traffic(export: Export) -> None:
    line = Line()
    for _ in range(3):
        moe_layer(line, lambda: line.run(SENDRECV, stream=20))
    line.run(SENDRECV, stream=24)  # after the last unpermute
    line.all(NORM)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "ep_dispatch", "ep_combine"] * 3 + [
        "sendrecv_unresolved"
    ]


def two_microbatches(line: Line) -> None:
    """Attention of one hides the dispatch of the other: only the last exchange has both its neighbours."""
    line.all(NORM, ATTENTION, NORM, ROUTER, PERMUTE)
    line.run(SENDRECV, stream=20)
    line.all(NORM, ATTENTION, NORM, ROUTER, PERMUTE, GROUPED)
    line.run(SENDRECV, stream=20)
    line.run(SENDRECV, stream=20)
    line.all(GROUPED)
    line.run(SENDRECV, stream=20)
    line.all(UNPERMUTE, UNPERMUTE)


def test_exchanges_of_two_microbatches_that_take_turns_are_expert_traffic(export: Export) -> None:
    line = Line()
    for _ in range(3):
        two_microbatches(line)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "ep_a2a", "ep_a2a", "ep_combine"] * 3


def test_a_stream_that_also_exchanges_between_layers_says_only_what_has_both_neighbours(
    export: Export,
) -> None:
    line = Line()
    for _ in range(3):
        two_microbatches(line)
        line.run(SENDRECV, stream=20)  # after the last unpermute: a pipeline's
        line.all(NORM)
    found = kinds(rank_of(export(line.recording)))
    assert found == [*["sendrecv_unresolved"] * 3, "ep_combine", "sendrecv_unresolved"] * 3


def test_a_pipeline_amid_expert_work_on_a_stream_of_its_own_stays_open(export: Export) -> None:
    line = Line()
    for _ in range(3):
        two_microbatches(line)
        line.all(PERMUTE)
        line.run(SENDRECV, stream=24)
        line.all(NORM)
    assert kinds(rank_of(export(line.recording)))[4::5] == ["sendrecv_unresolved"] * 3


def test_copies_of_nccl_s_copy_engines_are_an_all_to_all_too(export: Export) -> None:
    line = Line()
    line.all(PERMUTE)
    line.recording.range("ncclAlltoAll", 20_000, 24_000, domain=1, registered=True)
    line.recording.copy("p2p", 25_000, 35_000, size_bytes=8, launch_ns=21_000, stream=20, to_device=1)
    line.recording.copy("p2p", 36_000, 38_000, size_bytes=8, launch_ns=30_000, stream=22, to_device=1)
    line.now = 40
    line.all(GROUPED)
    assert kinds(rank_of(export(line.recording))) == ["ep_dispatch", "other_comm"]


def test_only_keys_of_communication_change(export: Export) -> None:
    line = Line()
    moe_layer(line, lambda: line.group(4, 4))
    rank = rank_of(export(line.recording))
    resolution = resolve_kinds(rank)
    changed = with_kinds(rank, resolution)
    moved = np.flatnonzero(changed.activities.key != rank.activities.key)
    assert moved.tolist() == resolution.index.tolist()
    assert changed.activities.start_ns is rank.activities.start_ns


@pytest.mark.parametrize(("place", "exposed_ns"), [(0, 17_172_652), (1, 8_229_100)])
def test_sequence_parallel_all_to_all_of_a_real_run_is_context_parallel_and_wholly_exposed(
    recordings: Path, place: int, exposed_ns: int
) -> None:
    rank = build(read_trace(recordings / "nsysai_mfu_2gpu_before.sqlite")).ranks[place]
    resolution = resolve_kinds(rank)
    assert Counter(row[0] for row in told(rank, resolution)) == {"cp": 33}
    # 32 by their groups of two sends and two receives; one was launched before the recording began
    assert Counter(row[3] for row in told(rank, resolution)) == {"nccl_groups": 32, "stream": 1}
    rows = rank.activities
    windows = spans((int(rows.start_ns.min()), int(rows.end_ns.max())))
    budget = measure_budget(with_kinds(rank, resolution).activities, windows)
    assert budget.exposed_comm_by_kind_ns == {"cp": exposed_ns}
    assert budget.hidden_comm_ns == 0


def test_annotated_all_to_all_of_a_real_recommender_is_never_expert_traffic(recordings: Path) -> None:
    rank = build(read_trace(recordings / "hta_trace_diff_test_test.json.gz")).ranks[0]
    resolution = resolve_kinds(rank)
    assert not resolution.moe_kernels
    assert Counter(kinds(rank)) == {"sendrecv_unresolved": 43, "all_reduce": 21}
    assert [row.kernel_count for row in resolution.unresolved] == [43]
