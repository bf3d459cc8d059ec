"""CMP-1: one grouped GEMM in place of a GEMM per expert.

Changes the experts' matrix work from a launch per local expert to one kernel for all of them. Helps where
launches per MoE layer are about twice the local experts and each GEMM is too small to fill the GPU.
Forbidden below compute capability 8; in FP8 it needs Transformer Engine 1.11.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not, moe_layers, te_at_least
from heuristics.guides.facts import is_low_precision
from heuristics.run.run import Run
from traces.limits import Limit

CAPABILITY: Final = Limit(
    8, "compute capability, major", "Megatron-LM, megatron/training/arguments.py: asserted for grouped GEMM"
)


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({"moe_grouped_gemm": True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Experts that run one by one, on a GPU and a library that can group them."""
    capability, told = run.config.capability, "record kernel names (not whole graphs)"
    enough = None if capability is None else capability[0] >= CAPABILITY.value
    needs = [
        moe_layers(run),
        is_not("no grouped GEMM runs yet", run.active.grouped_gemm, told_by=told),
        holds(f"compute capability >= {CAPABILITY.value:.0f}", enough, told_by="--gpu-model"),
    ]
    return (*needs, te_at_least(run, "1.11.0", " in FP8")) if is_low_precision(run) else tuple(needs)


FIX: Final = Fix(
    id="CMP-1",
    wall="compute",
    title="Run the experts as grouped GEMMs",
    kinds=("gemm",),
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; --moe-use-legacy-grouped-gemm went with 0.17 and forbids delayed"
        " wgrad"
    ),
    verify="GEMM launches per MoE layer fall from twice the local experts to a few grouped ones",
    sources=(
        "Megatron-LM, megatron/core/transformer/moe/README.md and megatron/training/arguments.py at d98e8a64",
        "Megatron-Bridge skill perf-moe-optimization-workflow",
    ),
    direct=("gemm", "grouped_gemm"),
    changes=lambda run: ("grouped_experts",),
)
