"""COM-1: expert all-to-all under the compute of another microbatch.

Changes the schedule: forward of one microbatch runs beside backward of the one before, so that dispatch and
combine have something to hide under. Helps where expert all-to-all is exposed and the dispatcher is settled;
pipelines of few microbatches have little to pair. Forbidden by full recompute and by recomputing `moe`, by
shared-expert overlap, by pipeline stages without virtual ones, by more than one MTP layer, and by PyTorch
before 2.6.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Gain, Knobs, Precondition
from heuristics.fixes.preconditions import (
    asked,
    at_least,
    expert_parallel,
    holds,
    is_not,
    pipeline_parallel,
    right_topology,
)
from heuristics.guides.connections import connections
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run
from traces.limits import Limit

SMALL_EP: Final = Limit(
    4,
    "ranks",
    "Megatron-Bridge, docs/training/communication-overlap.md: not with alltoall and EP <= 4 on <= 2 nodes",
)
_WIDER: Final = ("fp32", "tf32")
_SHARED: Final = "moe_shared_expert_overlap"
_MTP: Final = "mtp_num_layers"


def knobs(run: Run) -> Knobs:
    """Switch it on. More than one hardware queue is needed, or nothing runs beside anything."""
    shared = ("(leave out --moe-shared-expert-overlap)",) if run.config.on(_SHARED) else ()
    return Knobs(
        megatron_lm=("--overlap-moe-expert-parallel-comm", *shared),
        megatron_bridge=(
            "comm_overlap.overlap_moe_expert_parallel_comm=true",
            "comm_overlap.delay_wgrad_compute=false",
            "model.moe_shared_expert_overlap=false",
        ),
        bridge_harness=(
            "--moe_a2a_overlap false",
            "comm_overlap.overlap_moe_expert_parallel_comm=true",
            "model.moe_shared_expert_overlap=false",
        ),
        environment=(f"CUDA_DEVICE_MAX_CONNECTIONS={connections(run, ep_overlap=True)}",),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-Core asserts, and where its authors found that it does not pay."""
    shown = run.active
    needs = [
        is_not(
            "no expert all-to-all overlap is active yet",
            shown.ep_overlap,
            asked(shown.ep_overlap, "overlap_moe_expert_parallel_comm of the configuration"),
        ),
        expert_parallel(run),
        holds("the dispatcher is alltoall or flex", _dispatcher_fits(shown.dispatcher), "COM-2"),
        is_not(
            "the precision is built on BF16 or FP16",
            None if run.precision is None else run.precision in _WIDER,
            "--precision" if run.precision is None else "--bf16",
        ),
        is_not("no full recompute", shown.recompute_full, "MEM-2"),
        at_least("PyTorch", run.config.version_text("torch"), "2.6.0", "--torch-version"),
        at_least("Megatron-Core", run.config.core_text, "0.14.0", "--core-version"),
        _virtual_stages(run),
        *_mtp(run),
        is_not("no CUDA graph holds the moe or mlp module", _whole_experts_graphed(run), "--graph-modules"),
    ]
    fsdp = run.config.on("overlap_dispatch_backward_with_experts_wgrad")
    if fsdp:
        needs.append(is_not("no other overlap of dispatch's backward is on", fsdp, "COM-14 taken back"))
    if not run.config.core_before("0.17.0"):
        modules = shown.recompute_modules
        needs.append(is_not("moe is not recomputed", None if modules is None else "moe" in modules, "MEM-2"))
    if run.config.hardware_class == "nvl72":
        needs.append(
            holds(
                "HybridEP runs already: on NVL72 the overlap's synchronisation cost more than it hid",
                None if shown.dispatcher == "unknown" else shown.dispatcher == "hybridep",
                "COM-2",
            )
        )
    if shown.dispatcher == "alltoall" and run.config.ep is not None and run.config.ep <= SMALL_EP.value:
        needs.append(
            holds(
                "more than two nodes, as EP is small: on fewer it was flat or slower", None, "the node count"
            )
        )
    return (*needs, *right_topology(run))


def _mtp(run: Run) -> tuple[Precondition, ...]:
    """One MTP layer goes with the overlap; in Megatron-Core 0.16 and 0.17 only beside pipeline stages."""
    layers = run.config.positive(_MTP) or (0 if run.config.known(_MTP) else None)
    one = holds(
        "at most one MTP layer",
        None if layers is None else layers <= 1,
        "mtp_num_layers of the configuration" if layers is None else "",
    )
    if layers != 1 or run.config.core_before("0.16.0") or not run.config.core_before("0.18.0"):
        return (one,)
    return one, holds("pipeline stages beside the MTP layer", pipeline_parallel(run), "Megatron-Core 0.18")


def _dispatcher_fits(dispatcher: str) -> bool | None:
    return None if dispatcher == "unknown" else dispatcher in ("alltoall", "deepep", "hybridep", "ncclep")


def _whole_experts_graphed(run: Run) -> bool | None:
    """Only Transformer Engine's graphs of these modules are refused."""
    if run.active.graph_frac == 0 or run.config.graph_impl not in (None, "transformer_engine"):
        return False
    return None if run.config.graph_modules is None else bool({"moe", "mlp"} & set(run.config.graph_modules))


def _virtual_stages(run: Run) -> Precondition:
    text = "pipeline stages are cut into virtual ones, or there is one stage"
    pipeline, vpp = pipeline_parallel(run), run.config.vpp
    if pipeline is not True:
        return holds(text, None if pipeline is None else True, "--pp")
    if vpp is None:
        return holds(text, None, "--vpp")
    return holds(text, vpp > 1, "COM-6")


FIX: Final = Fix(
    id="COM-1",
    wall="communication",
    title="Hide expert all-to-all under another microbatch's compute",
    kinds=EP_KINDS,
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "Megatron-Core 0.14 and later; 0.17 and later refuse it beside recompute of moe; 0.16 allows CUDA "
        "graphs only as transformer_engine, and an MTP layer only with pipeline stages. In Megatron-Bridge "
        "comm_overlap overwrites the same field of model; the harness's --moe_a2a_overlap true adds delayed "
        "weight gradients, so it cannot tell what the overlap alone gave"
    ),
    gains=(
        Gain(
            (
                "41.25 s to 31.31 s a step: Qwen3-30B-A3B, 16 H100, EP16, alltoall, BF16, GBS 1024, no CUDA "
                "graphs, short run; with delayed weight gradients as well 31.20 s, which is noise"
            ),
            "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md",
        ),
        Gain(
            "24.71 s to 20.99 s a step, hidden communication 0.11 % to 36.55 %: Qwen3-30B-A3B, 16 H100, "
            "EP16, HybridEP, BF16, graphs of router and preprocess, forced balance",
            "Megatron-Bridge, skills/nemo-mbridge-perf-moe-comm-overlap/SKILL.md",
        ),
    ),
    side_effects=(
        "more synchronisation between stages: a host-bound run gets slower",
        "before Blackwell, TP and CP want CUDA_DEVICE_MAX_CONNECTIONS=1 and this wants more: with TP or CP "
        "above 1 measure both (Megatron-LM warns)",
        "shared-expert overlap goes off",
        "the peak of memory may rise: ep_overlap_early_attn_memory_release lowers it for some of the overlap",
    ),
    excludes=("MEM-9", "COM-8", "COM-13", "COM-14"),
    verify=(
        "NVTX ranges layer_<i>f-layer_<j>b appear, exposed expert all-to-all falls and hidden grows; summed "
        "kernel time may rise. Judge by unprofiled steps"
    ),
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and megatron/training/arguments.py "
            "at d98e8a64"
        ),
        "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py at 067f987d",
        "Megatron-Bridge skill perf-expert-parallel-overlap",
        (
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization/deepseek-v3-gb200-optimization.md "
            "at 1d9edcf8, 3.2"
        ),
    ),
    changes=lambda run: ("expert_overlap",),
)
