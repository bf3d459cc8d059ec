"""COM-1: expert all-to-all under the compute of another microbatch.

Changes the schedule: forward of one microbatch runs beside backward of the one before, so that dispatch and
combine have something to hide under. Helps where expert all-to-all is exposed and the dispatcher is settled;
pipelines of few microbatches have little to pair. Forbidden by full recompute and by recomputing `moe`, by
shared-expert overlap, by pipeline stages without virtual ones, by more than one MTP layer, and by PyTorch
before 2.6.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import dispatched_by, head_room, holds, is_not, right_topology
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.parallel import connections
from heuristics.run.run import Run
from traces.limits import Limit

SMALL_EP: Final = Limit(
    4,
    "ranks",
    "Megatron-Bridge, docs/training/communication-overlap.md: not with alltoall and EP <= 4 on <= 2 nodes",
)


def change(run: Run) -> Change:
    """Switch it on, alone. More than one hardware queue is needed, or nothing runs beside anything."""
    has_shared = run.config.may_overlap_shared
    return Change(
        set={
            **({"moe_shared_expert_overlap": False} if has_shared else {}),
            "env.CUDA_DEVICE_MAX_CONNECTIONS": str(connections(run, ep_overlap=True)),
        },
        megatron_lm={"overlap_moe_expert_parallel_comm": True},
        megatron_bridge={"overlap_moe_expert_parallel_comm": True, "delay_wgrad_compute": False},
        harness=(
            "--moe_a2a_overlap false",
            "comm_overlap.overlap_moe_expert_parallel_comm=true",
            *(("model.moe_shared_expert_overlap=false",) if has_shared else ()),
        ),
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """Where its authors found that it does not pay."""
    shown = run.active
    needs = [
        is_not(
            "no expert all-to-all overlap is active yet",
            shown.ep_overlap,
            told_by="overlap_moe_expert_parallel_comm of the configuration",
        ),
    ]
    if run.config.hardware_class == "nvl72":
        text = "HybridEP is in use (on NVL72 the overlap alone cost more time than it saved)"
        needs.append(dispatched_by(run, text, "hybridep"))
    if shown.dispatcher == "alltoall" and run.config.ep is not None and run.config.ep <= SMALL_EP.value:
        text = "the run has more than two nodes (on fewer, with small EP, it saved nothing)"
        needs.append(holds(text, None, told_by="the node count"))
    room = (head_room(run, None),) if run.does_not_fit else ()  # it keeps activations of two microbatches
    return (*needs, *room, *right_topology(run))


FIX: Final = Fix(
    id="COM-1",
    wall="communication",
    title="Overlap expert all-to-all with another microbatch's compute",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "Megatron-Core 0.14 and later; 0.17 and later refuse it beside recompute of moe; 0.16 allows CUDA "
        "graphs only as transformer_engine; 0.16 and 0.17 an MTP layer only with pipeline stages. With "
        "alltoall it runs most widely, DeepEP and HybridEP hide more of the exchange. In Megatron-Bridge "
        "comm_overlap overwrites the same field of model; the harness's --moe_a2a_overlap true adds delayed "
        "weight gradients, so the gain of the overlap alone is unknown there"
    ),
    gains=(
        Gain(
            (
                "41.25 s to 31.31 s a step: Qwen3-30B-A3B, 16 H100, EP16, alltoall, BF16, GBS 1024, no CUDA "
                "graphs, no permute fusion, short run; with delayed weight gradients as well 31.20 s, "
                "which is noise"
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
