"""CMP-5: fewer SMs for the dispatcher, so that more are left to the GEMMs beside it.

Changes the SM count of the flex dispatcher, the other way round than COM-3. Helps where GEMMs take longer
while dispatch or combine run beside them than alone, and what is hidden stays hidden with fewer SMs. Useless
where nothing runs beside the dispatcher.
"""

from __future__ import annotations

from typing import Final

from heuristics.fixes.fix import Fix, Knobs, Precondition
from heuristics.fixes.preconditions import evident, expert_parallel, holds
from heuristics.guides.dispatcher_extras import SHARED_SM_KNOB, SM_KNOBS
from heuristics.run.run import Run
from traces.limits import Limit

FEW: Final = Limit(
    16,
    "SMs",
    "low end of the guide's sweep for HybridEP (Megatron-Bridge skill perf-moe-dispatcher-selection)",
)
_SHARED_KNOB: Final = "moe_flex_dispatcher_num_sms"


def knobs(run: Run) -> Knobs:
    """The low end of the sweep, in the spelling of the release; HybridEP's where the backend is unknown."""
    backend = "deepep" if run.active.dispatcher == "deepep" else "hybridep"
    flag, few = SM_KNOBS[backend] if run.config.core_before("0.19.0") else SHARED_SM_KNOB, int(FEW.value)
    return Knobs(
        megatron_lm=(f"{flag} {few}",),
        megatron_bridge=(f"model.{flag[2:].replace('-', '_')}={few}",),
    )


def preconditions(run: Run) -> tuple[Precondition, ...]:
    """A flex dispatcher with more SMs, which runs beside GEMMs."""
    dispatcher = run.active.dispatcher
    now = run.config.positive(_SHARED_KNOB, f"moe_{dispatcher}_num_sms")
    return (
        expert_parallel(run),
        evident("DeepEP or HybridEP dispatches tokens", dispatcher in SM_KNOBS, "COM-2"),
        evident("dispatch and combine run beside GEMMs", run.active.ep_overlap, "COM-1"),
        holds(
            f"the dispatcher takes more than {FEW.value:.0f} SMs",
            None if now is None else now > FEW.value,
            f"{_SHARED_KNOB} of the configuration" if now is None else "",
        ),
    )


FIX: Final = Fix(
    id="CMP-5",
    wall="compute",
    title="Leave more SMs to the GEMMs beside the dispatcher",
    kinds=("grouped_gemm", "gemm"),
    knobs=knobs,
    preconditions=preconditions,
    versions=(
        "moe_deepep_num_sms since Megatron-Core 0.13, moe_hybridep_num_sms since 0.16; "
        "moe_flex_dispatcher_num_sms since 0.19 replaces both, which raise when set to different values"
    ),
    gains=(),
    side_effects=("dispatch and combine take longer, and may come out from under the GEMMs",),
    excludes=("COM-3",),
    verify="GEMMs beside the dispatcher take as long as alone, and no more of expert all-to-all is exposed",
    sources=(
        "Megatron-Bridge skills perf-moe-optimization-workflow and perf-moe-dispatcher-selection",
        "Megatron-Bridge, docs/performance-guide.md at 067f987d (SMs of communication against GEMMs)",
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
    ),
    direct=(),  # GEMMs that share SMs are no unfilled ones
)
