"""What is concluded from each real recording of the PyTorch profiler, and why that is right.

`tests/recordings_by_hand.py` reads the recordings a second time, by JSON and numpy, and each test
argues for itself. Of every recording it gives the budget to the nanosecond, and how long no compute ran
although the next one's launch had not yet returned: that much must be `launch_starved`, or `blocking` where
the host itself waited for the GPU.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import diagnoser
from tests.recordings_by_hand import (
    COMPUTE,
    largest_reason,
    not_launched_ns,
    one_window,
    share,
    stepped,
    union_ns,
    verdict,
)

MOE = {
    "tl_moe_01_many_experts_few_tokens.json.gz": (None, "idle", 0.150, "launch_starved.python"),
    "tl_moe_03_top1_sparse.json.gz": ("compute", "compute", 0.711, "launch_starved.python"),
    "tl_moe_04_top2_dense.json.gz": ("compute", "compute", 0.769, "launch_starved.python"),
    "tl_moe_05_large_capacity.json.gz": ("compute", "compute", 0.972, "launch_starved.python"),
}


@pytest.mark.parametrize("name", MOE)
def test_one_layer_of_experts_is_starved_when_small_and_compute_bound_when_large(
    recordings: Path, name: str
) -> None:
    """tl_moe_01, 03, 04, 05: one MoE layer three times on a B300, from 16 tokens to large ones.

    All launch nearly the same 30 to 42 kernels, so the host needs about as long; with few tokens the kernels
    take 0.23 ms of 1.5 and the GPU is idle for 85 %, all of it before launches but for latencies. With large
    capacity the same host hides under 10 ms of kernels: compute-bound, 2.8 % idle. No call waits for the GPU,
    so the time before launches by hand is `launch_starved` to the nanosecond. A single layer without ranges
    of steps has none, and exchanges nothing; whether it trains nothing tells, and none is said.
    """
    bound, largest, compute, reason = MOE[name]
    document = diagnoser.analyze(recordings / name).to_dict()
    rank, work = one_window(recordings / name, document)
    assert verdict(document) == (bound, largest)
    assert share(rank, "compute") == compute
    assert 30 <= int((work.what == COMPUTE).sum()) <= 42
    assert sum(rank["absent_ns"]["launch_starved"].values()) == not_launched_ns(work, work.whole)
    assert rank["absent_ns"]["blocking"] == {}
    assert rank["budget_ns"]["exposed_comm"] == 0
    assert largest_reason(rank) == reason
    assert rank["detected"]["training_step"] is None


def test_a_compiled_model_on_two_v100_waits_for_python(recordings: Path) -> None:
    """hta_df_index_resolver: five profiler steps of 0.34 s; 42 % idle, and no bound.

    2020 all-reduces, one per parameter, run on the stream the rest runs on: all exposed, and their sum is the
    bucket. Most of the time without compute the next launch had not returned: 0.99 of 1.11 s.
    """
    path = recordings / "hta_df_index_resolver_df_index_resolver.json.gz"
    document = diagnoser.analyze(path).to_dict()
    rank, events = stepped(path, document)
    assert verdict(document) == (None, "idle")
    assert len(rank["steps"]["used"]) == 5
    nccl = [event for event in events if event["cat"] == "kernel" and "nccl" in event["name"]]
    assert len(nccl) == 2020
    total = sum(event["end"] - event["start"] for event in nccl)
    assert rank["exposed_comm_by_kind_ns"] == {"all_reduce": total}
    assert rank["hidden_comm_ns"] == 0
    assert largest_reason(rank) == "launch_starved.python"


def test_a_small_convolutional_network_waits_for_python(recordings: Path) -> None:
    """hta_nccl_parser: three profiler steps of 0.22 s; 76 % idle, and no bound.

    900 kernels a step keep an A100 busy for a fifth of it. The gradients' all-reduces are 15, their names say
    so; the 6 broadcasts of buffers are `other_comm`, as a name tells no purpose. Nine tenths of the time
    without compute lie before launches.
    """
    path = recordings / "hta_nccl_parser_config_nccl_data.json.gz"
    document = diagnoser.analyze(path).to_dict()
    rank, events = stepped(path, document)
    assert verdict(document) == (None, "idle")
    assert len(rank["steps"]["used"]) == 3
    names = Counter(e["name"].split("_")[1] for e in events if e["cat"] == "kernel" and "nccl" in e["name"])
    assert names == {"AllReduce": 15, "Broadcast": 6}
    assert set(rank["exposed_comm_by_kind_ns"]) == {"all_reduce", "other_comm"}
    starved = sum(rank["absent_ns"]["launch_starved"].values())
    assert starved > 0.9 * (rank["budget_ns"]["window"] - rank["budget_ns"]["compute"])
    assert largest_reason(rank) == "launch_starved.python"


def test_a_recommender_is_compute_bound_and_its_exchange_is_no_expert_traffic(
    recordings: Path,
) -> None:
    """hta_trace_diff: six profiler steps of 0.12 s, bound by compute (74 %), of embeddings and GEMMs.

    It trains: embedding backward and Adam kernels run. Its 43 SendRecv are launched in `nccl:all_to_all`,
    beside embeddings and no router or permute, so the exchange stays unresolved and never becomes `ep_*`.
    Chains of copies on the compute stream end where compute begins, so `blocking.memcpy_d2d` is the largest
    reason, and no more of it than such copies ran without compute. The profiler recorded no events, so what
    waited for the exchange's own stream is told by nothing, and said to be: `dependency_stalled`.
    """
    path = recordings / "hta_trace_diff_test_test.json.gz"
    document = diagnoser.analyze(path).to_dict()
    rank, events = stepped(path, document)
    assert verdict(document) == ("compute", "compute")
    assert len(rank["steps"]["used"]) == 6
    kernels = [event["name"] for event in events if event["cat"] == "kernel"]
    assert sum("SendRecv" in name for name in kernels) == 43
    assert any("embedding_backward" in name for name in kernels)
    assert any("AdamFunctor" in name for name in kernels)
    assert not any("permute_kernel" in name or "topk" in name.lower() for name in kernels)
    assert rank["detected"]["training_step"] is True
    assert set(rank["exposed_comm_by_kind_ns"]) == {"sendrecv_unresolved", "all_reduce"}
    assert share(rank, "compute") == 0.736
    copies = [event for event in events if event["name"].startswith("Memcpy DtoD")]
    compute = [event for event in events if event["cat"] == "kernel" and "nccl" not in event["name"]]
    alone_ns = union_ns([*copies, *compute]) - union_ns(compute)
    assert 0.9 * alone_ns < rank["absent_ns"]["blocking"]["memcpy_d2d"] <= alone_ns
    assert rank["absent_decided_by_frac"]["none"] > 0.1
    assert rank["absent_ns"]["dependency_stalled"] > 0
    assert largest_reason(rank) == "blocking.memcpy_d2d"
