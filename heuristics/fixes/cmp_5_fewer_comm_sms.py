"""CMP-5: fewer SMs for the dispatcher, so that more are left to the GEMMs beside it.

Changes the SM count of the flex dispatcher, the other way round than COM-3. Helps where GEMMs take longer
while dispatch or combine run beside them than alone, and what is hidden stays hidden with fewer SMs. Useless
where nothing runs beside the dispatcher.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import dispatched_by, expert_parallel, holds
from heuristics.guides.dispatcher import sm_knob
from heuristics.run.run import Run
from traces.limits import Limit

FEW: Final = Limit(
    16,
    "SMs",
    "low end of the guide's sweep for HybridEP (Megatron-Bridge skill perf-moe-dispatcher-selection)",
)
_SHARED_KNOB: Final = "moe_flex_dispatcher_num_sms"


def change(run: Run) -> Change:
    """The low end of the sweep, by the knob of the release; HybridEP's where the backend is unknown."""
    backend = "deepep" if run.active.dispatcher == "deepep" else "hybridep"
    return Change({sm_knob(run, backend): int(FEW.value)}, by_release=True)


def advice(run: Run) -> tuple[Precondition, ...]:
    """A flex dispatcher with more SMs, which runs beside GEMMs."""
    now = run.config.positive(_SHARED_KNOB, f"moe_{run.active.dispatcher}_num_sms")
    return (
        expert_parallel(run),
        dispatched_by(run, "DeepEP or HybridEP dispatches tokens", "deepep", "hybridep", blocks=True),
        holds("dispatch and combine run beside GEMMs", run.active.ep_overlap, "COM-1", blocks=True),
        holds(
            f"the dispatcher takes more than {FEW.value:.0f} SMs",
            None if now is None else now > FEW.value,
            told_by=f"{_SHARED_KNOB} of the configuration",
        ),
    )


FIX: Final = Fix(
    id="CMP-5",
    wall="compute",
    title="Leave more SMs to the GEMMs beside the dispatcher",
    kinds=("grouped_gemm", "gemm"),
    change=change,
    advice=advice,
    versions=(
        "moe_deepep_num_sms since Megatron-Core 0.13, moe_hybridep_num_sms since 0.16; "
        "moe_flex_dispatcher_num_sms since 0.19 replaces both, which raise when set to different values"
    ),
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
