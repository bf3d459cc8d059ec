"""COM-8: the shared expert's GEMMs beside dispatch and combine.

Changes when the shared expert runs: on a stream of its own, while tokens travel. Helps where a model has
shared experts and the overlap of whole microbatches (COM-1) is not to be had, which hides more and excludes
it. Refused beside COM-1, beside recompute of shared experts, and with flex dispatchers before Megatron-Core
0.18.
"""

from typing import Final

from heuristics.config.logic import negated
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import already, dispatched_by, expert_parallel, holds, is_not
from heuristics.guides.facts import EP_KINDS
from heuristics.guides.modules import has_shared_experts, recomputed_now
from heuristics.run.run import Run

_KNOB: Final = "moe_shared_expert_overlap"


def change(run: Run) -> Change:
    """Switch it on."""
    del run
    return Change({_KNOB: True})


def advice(run: Run) -> tuple[Precondition, ...]:
    """A shared expert, nothing that hides more, and a dispatcher that leaves room for it."""
    shown, flex = run.active, not run.config.core_before("0.18.0")
    fitting = ("alltoall", "deepep", "hybridep", "ncclep") if flex else ("alltoall",)
    modules = shown.recompute_modules
    return (
        *already(run, _KNOB),
        expert_parallel(run),
        holds(
            "the model has shared experts",
            has_shared_experts(run),
            told_by="--family, or moe_shared_expert_intermediate_size of the configuration",
            blocks=True,
        ),
        holds(
            "EP overlap, which cannot be combined with it, is off",
            negated(shown.ep_overlap),
            told_by="overlap_moe_expert_parallel_comm of the configuration",
            blocks=True,
        ),
        dispatched_by(run, "the dispatcher is alltoall, or flex from Megatron-Core 0.18", *fitting),
        is_not(
            "shared experts are not recomputed",
            None if modules is None else "shared_experts" in recomputed_now(run),
            "MEM-2",
        ),
        is_not("linear layers have no bias", run.config.on("add_bias_linear"), "--disable-bias-linear"),
    )


FIX: Final = Fix(
    id="COM-8",
    wall="communication",
    title="Overlap shared experts with the dispatch of tokens",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here, with alltoall only before 0.18. Megatron-Bridge's "
        "apply_flex_dispatcher_backend switches it off"
    ),
    side_effects=(
        "shared experts leave the CUDA graph of moe_router",
        "gradients are added in another order: small differences in numbers",
    ),
    excludes=("COM-1", "COM-2", "MEM-5"),
    verify="GEMMs of the shared expert run on a stream of their own, beside dispatch and combine",
    sources=(
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64 and its tags",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-Bridge, src/megatron/bridge/training/flex_dispatcher_backend.py at 067f987d",
    ),
)
