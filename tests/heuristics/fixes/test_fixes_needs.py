"""What each card needs: of each need a run that has it, one that has not, and one of which nobody knows."""

from __future__ import annotations

from typing import Any, Final

import pytest

from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.fixes.precondition import State
from heuristics.run.run import Run
from tests.doubles.fixes import complete, configured, given, need, shows
from tests.doubles.opinions import paying
from traces.settings.settings import Value

GB: Final = 10**9
NONE: Final = Run()
FULL: Final = Observed(
    moe=True, grouped_gemm=True, precision="bf16", recompute_full=True, offload=False, graph_frac=0.0
)
OVERLAPPED: Final = Observed(ep_overlap=True, dispatcher="deepep", internode=True, a2a_waiting_frac=0.1)
SEED: Final[dict[str, Any]] = {"gpu": "H100", "ep": 64, "tp": 1, "guidance": "seed", "flex_package": True}
TUNED: Final[dict[str, Any]] = {
    **{"gpu": "GB200", "routing": "dropless", "precision": "mxfp8", "te_op_fuser": True}
}
RACK: Final[dict[str, Any]] = {
    **{"stage": "tuned", "gpu": "GB200", "ep": 64, "etp": 1, "tp": 1, "core_version": "0.18"}
}
OVERLAP: Final[dict[str, Value]] = {"overlap_moe_expert_parallel_comm": True}
MOE: Final = Observed(moe=True)
ALLTOALL: Final = Observed(moe=True, dispatcher="alltoall", a2a_waiting_frac=0.9, capability=(10, 0))


def free(gigabytes: int, peak: int | None = None) -> Run:
    """So much free on a GPU of 80 GB, or beside a peak."""
    used = 80 - gigabytes if peak is None else peak
    return shows(memory_bytes=(used + gigabytes) * GB, peak_bytes=used * GB)


def graphs(modules: tuple[str, ...] | None, **seen: object) -> Run:
    shown = Observed(**{"graph_frac": 0.5, **seen})  # type: ignore[arg-type]
    return given(shown, gpu="H100", graph_impl="transformer_engine", graph_modules=modules)


Row = tuple[Any, ...]
ROWS: Final[list[Row]] = [  # id, words of the need, met, unmet, unknown
    # host
    ("HST-1", "not bound", given(cpu_bound_to_numa=False), given(cpu_bound_to_numa=True), NONE),
    ("HST-1", "NUMA node follows", given(gpu="H100"), None, NONE),
    ("HST-1", "more than one GPU", shows(several_gpus=True), shows(several_gpus=False), NONE),
    ("HST-1", "more than one GPU", configured({"world_size": 8}), configured({"world_size": 1}), None),
    ("HST-2", "collector", paying("host_overhead", {"gc": 5, "python": 7}), None,
     paying("host_overhead", {"gc": 0})),
    ("HST-3", "so far", shows(graph_frac=0.2), shows(graph_frac=0.21), None),
    ("HST-3", "no full recompute", shows(recompute_full=False), shows(recompute_full=True), None),
    ("HST-3", "Megatron-Core", given(core_version="0.16.0"), given(core_version="0.15.3"), None),
    ("HST-3", "has room", given(memory_tight=False), given(memory_tight=True), None),
    ("HST-3", "has room", free(10), None, free(9)),
    ("HST-3", "moe is not recomputed", shows(moe=True, recompute_modules=("moe_act",)),
     shows(moe=True, recompute_modules=("moe", "moe_act")), None),
    ("HST-3", "offloaded", shows(offload=False), None, shows(offload=True)),
    ("HST-3", "no layer is offloaded", None, configured({"cpu_offloading": True}), None),
    ("HST-3", "never change", None, given(packed_sequences=True), given(packed_sequences=False)),
    ("HST-3", "does not pad", given(ALLTOALL, routing="dropless", router_padding=False), None,
     given(ALLTOALL, routing="dropless")),
    ("HST-4", "unfused", shows(moe=True, router_kernels_per_layer=72, permute_fused=True),
     shows(moe=True, router_kernels_per_layer=31, permute_fused=True), shows(moe=True, permute_fused=True)),
    ("HST-4", "unfused", shows(moe=True, router_kernels_per_layer=31, permute_fused=False), None, None),
    *(("HST-4", "Transformer Engine",
     *(given(Observed(router_kernels_per_layer=router, permute_fused=False), te_version=te)
       if te != "-" else None for te in (new, old, None)))
      for router, new, old in ((72, "2.7.0", "2.6.0"), (31, "2.1.0", "-"))),
    ("HST-5", "10 us", shows(short_kernel_frac=0.6), shows(short_kernel_frac=0.5), NONE),
    ("HST-5", "global batch", complete(), complete({"train.global_batch_size": 24}), None),
    ("HST-6", "token counts", shows(token_count_sync=True), shows(token_count_sync=False), None),
    ("HST-6", "HybridEP", shows(dispatcher="hybridep"), shows(dispatcher="alltoall"), None),
    ("HST-6", "Megatron-Core", given(core_version="0.18.0"), given(core_version="0.17.1"), None),
    ("HST-6", "grouped GEMM", shows(grouped_gemm=True), shows(grouped_gemm=False), None),
    ("HST-7", "back to the host", shows(moe=False), given(Observed(moe=True, dispatcher="alltoall"), **TUNED),
     NONE),
    ("HST-7", "runs yet", shows(graph_frac=0.8), shows(graph_frac=0.81), None),
    ("HST-7", "runs yet", shows(graph_frac=0.1), given(graph_impl="full_iteration"), None),
    ("HST-8", "on the CPU", configured({"optimizer.optimizer_cpu_offload": False}),
     configured({"optimizer.optimizer_cpu_offload": True}), None),
    # communication
    *(row for fix in ("COM-1", "COM-2", "COM-10", "COM-11") for row in (
        (fix, "EP above 1", given(ep=8), given(ep=1), shows(dispatcher="allgather")),
        (fix, "EP above 1", shows(dispatcher="alltoall"), shows(dispatcher="none"), None),
        (fix, "EP above 1", None, shows(moe=False), None),
        (fix, "EP above 1", None, given(Observed(dispatcher="alltoall"), ep=1), None),
    )),
    ("COM-1", "overlap is active", shows(ep_overlap=False), shows(ep_overlap=True), None),
    ("COM-1", "alltoall or flex", shows(dispatcher="deepep"), shows(dispatcher="allgather"), None),
    ("COM-1", "BF16 or FP16", given(precision="bf16"), given(precision="fp32"), None),
    ("COM-1", "with full recompute", shows(recompute_full=False), shows(recompute_full=True), None),
    ("COM-1", "PyTorch", given(torch_version="2.6.0"), given(torch_version="2.5.1"), None),
    ("COM-1", "virtual", given(pp=4, vpp=2), given(pp=4, vpp=1), given(pp=4)),
    ("COM-1", "virtual", given(pp=1), given(Observed(pp_active=True), vpp=1), None),
    ("COM-1", "recompute of moe", None, given(Observed(recompute_modules=("moe",)), core_version="0.17.0"),
     None),
    ("COM-1", "HybridEP is in use",
     *(given(Observed(dispatcher=name), gpu="GB200") for name in ("hybridep", "alltoall", "unknown"))),
    ("COM-1", "at most one MTP", configured({"mtp_num_layers": None}), configured({"mtp_num_layers": 2}),
     configured()),
    ("COM-2", "is not in use yet", given(ALLTOALL, **SEED), given(Observed(dispatcher="deepep"), **SEED),
     given(**SEED)),
    ("COM-2", "can be imported", given(ALLTOALL, **RACK, flex_package=True), None, given(ALLTOALL, **RACK)),
    ("COM-2", "pad expert inputs", given(ALLTOALL, **SEED, routing="dropless"), None,
     given(ALLTOALL, **SEED)),
    *((fix, "waiting is at most", shows(a2a_waiting_frac=0.5), shows(a2a_waiting_frac=0.51), NONE)
      for fix in ("COM-2", "COM-3")),
    ("COM-3", "dispatches tokens", shows(dispatcher="deepep"), shows(dispatcher="alltoall"), NONE),
    ("COM-3", "NVLink domain", given(Observed(dispatcher="hybridep"), gpu="GB200", ep=32), None,
     given(Observed(dispatcher="hybridep"), gpu="GB200")),
    ("COM-4", "collectives run", shows(dp_active=True), shows(dp_active=False), NONE),
    ("COM-5", "overlap is active", shows(tp_overlap=False), shows(tp_overlap=True), None),
    ("COM-5", "(TP above 1)", given(tp=2), given(tp=1), None),
    ("COM-5", "keep their size", configured({"variable_seq_lengths": False}),
     configured({"variable_seq_lengths": True}), configured()),
    ("COM-5", "Transformer Engine", given(te_version="2.8"), configured({"transformer_impl": "local"}), NONE),
    ("COM-6", "pipeline stages", given(pp=2), given(pp=1), NONE),
    ("COM-7", "CP above 1", given(cp=2), given(cp=1), NONE),
    ("COM-7", "not use p2p", configured({"cp_comm_type": "all_gather"}), None, NONE),
    ("COM-7", "divides the heads", None,
     configured({"cp_comm_type": "p2p", "num_attention_heads": 7}, cp=2, gpu="H100"), None),
    ("COM-8", "has shared experts", configured({"moe_shared_expert_intermediate_size": 512}),
     given(family="qwen3_30b"), NONE),
    ("COM-8", "combined with it, is off", configured({"overlap_moe_expert_parallel_comm": False}),
     Run(OVERLAPPED), NONE),
    ("COM-8", "alltoall, or flex", given(Observed(dispatcher="deepep"), core_version="0.18.0"),
     given(Observed(dispatcher="deepep"), core_version="0.17.1"), None),
    ("COM-8", "not recomputed", None, shows(recompute_modules=("shared_experts",)), None),
    ("COM-8", "no bias", None, configured({"add_bias_linear": True}), None),
    *((fix, "overlap is active", Run(OVERLAPPED), None, NONE) for fix in ("COM-9", "COM-15", "MEM-12")),
    ("COM-10", "NVLink domain", given(gpu="H100", ep=16, etp=1), given(gpu="H100", ep=8, etp=1),
     given(ep=16)),
    ("COM-10", "memory holds", given(memory_tight=False), given(memory_tight=True), NONE),
    ("COM-11", "waiting is more than", shows(a2a_waiting_frac=0.51), shows(a2a_waiting_frac=0.5), NONE),
    ("COM-11", "forced to balance", given(routing="dropless"), given(routing="force_balance"), NONE),
    ("COM-11", "forced to balance", None, given(routing="drop_pad"), None),
    ("COM-12", "DeepEP dispatches", Run(OVERLAPPED), shows(dispatcher="hybridep"), None),
    ("COM-12", "cross nodes", Run(OVERLAPPED), None, NONE),
    ("COM-13", "is not 8", configured({"env.CUDA_DEVICE_MAX_CONNECTIONS": "1"}),
     configured({"env.CUDA_DEVICE_MAX_CONNECTIONS": "8"}), NONE),
    ("COM-14", "FSDP shards", configured({"ddp.use_megatron_fsdp": True}), None, NONE),
    ("COM-14", "combined with EP overlap", None, configured(OVERLAP), None),
    # memory
    ("MEM-1", "user buffers", configured({"ddp.nccl_ub": False}), configured({"ddp.nccl_ub": True}), NONE),
    ("MEM-2", "although memory has room",
     given(Observed(recompute_modules=(), recompute_full=True), memory_tight=False),
     given(Observed(recompute_modules=(), recompute_full=False), memory_tight=False),
      given(memory_tight=False)),
    ("MEM-2", "already", shows(recompute_full=False, recompute_modules=(), moe=True, grouped_gemm=True),
     shows(recompute_full=False, recompute_modules=("moe_act",), moe=True, grouped_gemm=True), NONE),
    ("MEM-2", "grouped GEMM", Run(FULL), None, NONE),
    ("MEM-2", "delayed", given(FULL, precision="mxfp8", te_version="2.14"), None,
     given(FULL, precision="fp8_per_tensor", te_version="2.14")),
    *((fix, "no layer is offloaded", shows(offload=False), None, shows(offload=True)) for fix in ("MEM-2",
     "MEM-6", "MEM-9")),
    ("MEM-3", "optimizer is distributed", None, configured({"ddp.use_distributed_optimizer": False}), NONE),
    ("MEM-3", "the optimizer is Adam", None, configured({"optimizer.optimizer": "sgd"}), None),
    ("MEM-3", "FSDP 2", configured({"ddp.use_megatron_fsdp": False}),
     configured({"ddp.megatron_fsdp_version": 2}), None),
    ("MEM-4", "beside recompute",
     *(given(Observed(recompute_modules=("moe_act",)), gpu="H100", precision="bf16",
      te_version=te) for te in ("2.6.0", "2.5.0", None))),
    ("MEM-4", "the guides name", given(gpu="H100"), given(gpu="A100"), NONE),
    ("MEM-4", "wider format than",
     *(given(gpu="H100", precision=name) for name in ("bf16", "fp8_blockwise", "mixed"))),
    ("MEM-4", "is stable",
     *(given(gpu="H100", stage=stage, guidance="seed", precision="bf16") for stage in ("tuned", "bring_up",
      None))),
    *(("MEM-4", "Transformer Engine >=",
     *(given(gpu=gpu, precision="bf16", te_version=te) for te in (new, old, None)))
      for gpu, old, new in (("H100", "2.2.0", "2.3.0"), ("GB200", "2.0.0", "2.1.0"))),
    ("MEM-4", "allgather",
     *(given(Observed(moe=True, dispatcher=name), gpu="H100") for name in ("alltoall", "allgather",
      "unknown"))),
    ("MEM-4", "moe_preprocess", graphs(("moe_router",), dispatcher="alltoall"),
     graphs(("moe_router", "moe_preprocess"), dispatcher="alltoall"), graphs(None, dispatcher="alltoall")),
    ("MEM-5", "names a flex backend", given(ALLTOALL, **RACK, flex_package=True),
     given(ALLTOALL, **{**RACK, "stage": "bring_up"}, flex_package=True), None),
    ("MEM-5", "no flex dispatcher",
     *(given(Observed(moe=True, dispatcher=name), **RACK, flex_package=True) for name in ("alltoall",
      "deepep", "unknown"))),
    ("MEM-5", "can be imported", given(ALLTOALL, **RACK, flex_package=True), None, given(ALLTOALL, **RACK)),
    ("MEM-6", "full recompute", shows(recompute_full=False), Run(FULL), NONE),
    ("MEM-6", "no layer is offloaded", configured({"cpu_offloading": False}),
     configured({"cpu_offloading": True}), NONE),
    *(("MEM-6", part,
     given(Observed(graph_frac=0.5), torch_version="2.9.0", te_version="2.14.0",
      graph_modules=("attn", "moe_router")),
       given(Observed(graph_frac=0.5), torch_version="2.8.0", te_version="2.13.0", graph_modules=("moe",)),
        shows(graph_frac=0.5))
      for part in ("PyTorch", "Transformer Engine beside", "whole moe")),
    ("MEM-7", "training step", shows(training=True), shows(training=False), NONE),
    ("MEM-7", "the optimizer is distributed", configured({"ddp.use_megatron_fsdp": True}),
     configured({"ddp.use_distributed_optimizer": False}), NONE),
    ("MEM-7", "gathered in FP8", given(precision="fp8_delayed"), None, given(precision="mxfp8")),
    ("MEM-8", "no room left", given(memory_tight=True), given(memory_tight=False), NONE),
    ("MEM-8", "EP 32 divides", None, None, given(gpu="GB200", ep=16, etp=1)),
    ("MEM-8", "EP, ETP", given(gpu="GB200", ep=16, etp=1), None, NONE),
    ("MEM-8", "EP, ETP", given(Observed(moe=False), gpu="H100", ep=1, pp=2), None, None),
    ("MEM-9", "does not fit", None, given(memory_tight=False), given(memory_tight=True)),
    ("MEM-9", "not recomputed yet", shows(recompute_full=False), Run(FULL), NONE),
    ("MEM-9", "overlap", shows(ep_overlap=False), shows(ep_overlap=True), NONE),
    ("MEM-9", "CUDA graphs", shows(graph_frac=0.0), graphs(("attn",)), shows(graph_frac=0.5)),
    ("MEM-10", "data-parallel", shows(dp_active=True), None, NONE),
    ("MEM-10", "FSDP2 is off", None, configured({"use_torch_fsdp2": True}), None),
    ("MEM-11", "fixed budget", configured({"moe_expert_rank_capacity_factor": 1.5}), None, NONE),
    ("MEM-11", "HybridEP", shows(dispatcher="hybridep"), shows(dispatcher="alltoall"), NONE),
    ("MEM-11", "activations of experts", configured({"offload_modules": ("core_attn",)}),
     configured({"offload_modules": ("moe_act",)}), None),
    ("MEM-13", "user buffers", configured({"ddp.nccl_ub": False}), configured({"ddp.nccl_ub": True}), NONE),
    # compute
    ("CMP-1", "experts", shows(moe=True), shows(moe=False), NONE),
    ("CMP-1", "no grouped GEMM", shows(grouped_gemm=False), shows(grouped_gemm=True), NONE),
    ("CMP-1", "capability", shows(capability=(8, 0)), shows(capability=(7, 5)), NONE),
    ("CMP-2", "routes tokens", shows(moe=True), shows(moe=False), NONE),
    ("CMP-3", "wider format", None, given(gpu="H100", stage="tuned", precision="fp8_blockwise"), None),
    ("CMP-4", "EP 8 divides", None, None, given(MOE, gpu="H100", ep=4, etp=1)),
    ("CMP-5", "beside GEMMs", None, shows(ep_overlap=False), None),
    ("CMP-5", "more than 16", configured({"moe_flex_dispatcher_num_sms": 32}),
     configured({"moe_flex_dispatcher_num_sms": 16}), NONE),
    ("CMP-7", "Blackwell", given(gpu="GB200"), given(gpu="H100"), NONE),
    ("CMP-7", "MXFP8", given(precision="mxfp8"), given(precision="bf16"), None),
    ("CMP-7", "gated", None, configured({"gated_linear_unit": False}), NONE),
]  # fmt: skip
STATES: Final[tuple[State, ...]] = ("met", "unmet", "unknown")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_need_is_met_unmet_or_unknown(row: Row) -> None:
    number, part, *runs = row
    found = [run and need(CATALOGUE[number], run, part).state for run in runs]
    assert found == [run and state for run, state in zip(runs, STATES, strict=True)]


@pytest.mark.parametrize(
    ("number", "part", "run"),
    [
        ("COM-1", "recompute of moe", given(Observed(recompute_modules=("moe",)), core_version="0.16.1")),
        ("COM-1", "HybridEP is in use", given(Observed(dispatcher="alltoall"), gpu="H100")),
        ("COM-1", "more than two nodes", given(Observed(dispatcher="alltoall"), ep=8)),
        ("CMP-1", "Engine", given(precision="bf16")),
        ("MEM-6", "CUDA graph", shows(graph_frac=0.0)),
        ("HST-3", "moe", shows(moe=False)),
        ("HST-4", "", shows(moe=False)),
        ("MEM-4", "dispatcher", given(Observed(moe=False), gpu="H100", precision="bf16")),
        ("MEM-5", "waiting", given(ALLTOALL, **RACK, flex_package=True)),
    ],
)
def test_what_a_run_has_no_part_in_is_not_asked(number: str, part: str, run: Run) -> None:
    assert [one.text for one in CATALOGUE[number].preconditions(run) if part in one.text] == []
