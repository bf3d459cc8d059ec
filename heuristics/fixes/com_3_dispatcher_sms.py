"""COM-3: how many SMs the flex dispatcher takes, and which ranks HybridEP believes to share NVLink.

More SMs move tokens faster and leave fewer to the GEMMs beside; the defaults are a start, rarely the best. A
wrong NVLink domain sends traffic over the network that need not go there, and can hang. Helps where DeepEP or
HybridEP kernels are long and move data. Pointless with alltoall, and where most of their time is waiting for
a late rank.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.com_2_dispatcher import backend_to_set, topology
from heuristics.fixes.fix import Fix, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import expert_parallel, holds, mostly_moving
from heuristics.guides.dispatcher import (
    DEEPEP_SMS,
    DEEPEP_SMS_B200_DSV3,
    HYBRIDEP_SMS,
    HYBRIDEP_SMS_HARNESS,
    sm_knob,
)
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run

_SWEEP: Final = {
    "deepep": (DEEPEP_SMS_B200_DSV3, DEEPEP_SMS),
    "hybridep": (HYBRIDEP_SMS_HARNESS, HYBRIDEP_SMS),
}


def change(run: Run) -> Change:
    """One value beside the default; sweep around it. Without a backend, that of COM-2, else HybridEP's.

    Where HybridEP is told another NVLink domain than there is, that comes first, and alone.
    """
    default = "deepep" if run.config.core_before("0.16.0") else "hybridep"
    backends = (run.active.dispatcher, backend_to_set(run), default)
    backend = next(name for name in backends if name in _SWEEP)
    if run.config.right_topology is False:
        return Change(topology(run, backend))
    now = run.config.positive("moe_flex_dispatcher_num_sms", f"moe_{backend}_num_sms")
    sms = next(int(sms.value) for sms in _SWEEP[backend] if now != int(sms.value))
    return Change({sm_knob(run, backend): sms, **topology(run, backend)}, by_release=True)


def advice(run: Run) -> tuple[Precondition, ...]:
    """A flex backend that moves data, and a topology that is known."""
    dispatcher = run.active.dispatcher
    told = None if dispatcher == "unknown" else dispatcher in _SWEEP
    needs = [
        expert_parallel(run),
        holds("DeepEP or HybridEP dispatches tokens", told, _met_by(run, told)),
    ]
    if run.config.right_topology is not False:  # else its waiting is what the wrong topology makes
        needs.append(mostly_moving(run))
    if dispatcher == "hybridep":
        known = {"--ep": run.config.ep, "--nvlink-domain": run.config.nvlink_domain}
        missing = ", ".join(option for option, value in known.items() if value is None)
        needs.append(holds("EP and NVLink domain are known", None if missing else True, told_by=missing))
    return tuple(needs)


def _met_by(run: Run, told: bool | None) -> str:
    """COM-2, unless it would set a dispatcher that has no SMs to give either."""
    chosen = backend_to_set(run)
    other = told is False and chosen != run.active.dispatcher and chosen not in _SWEEP
    return "moe_token_dispatcher_type flex" if other else "COM-2"


FIX: Final = Fix(
    id="COM-3",
    wall="communication",
    title="Tune the dispatcher's SM count; set HybridEP's NVLink domain",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "moe_deepep_num_sms since Megatron-Core 0.13 (default 20), moe_hybridep_num_sms since 0.16 (default "
        "16); moe_flex_dispatcher_num_sms since 0.19 replaces both, which raise when set to different "
        "values. Megatron-Bridge's harness sets 32 for HybridEP itself"
    ),
    gains=(
        Gain(
            "HybridEP, BF16, 8 ranks of GB200, micro-benchmark, at 16, 24 and 32 SMs: dispatch 362, 513, 616 "
            "GB/s and combine 310, 426, 520 GB/s",
            "deepseek-ai/DeepEP, pull request 420",
        ),
    ),
    side_effects=(
        "more SMs slow the GEMMs that run beside the dispatcher",
        "a domain size that does not fit the topology costs speed and sometimes correctness",
    ),
    excludes=("CMP-5",),
    verify=(
        "dispatch and combine kernels get shorter, GEMMs beside them do not get longer, device_sync_kernel "
        "stays short"
    ),
    sources=(
        "Megatron-Bridge skill perf-moe-dispatcher-selection",
        "Megatron-Bridge, scripts/performance/utils/utils.py at 067f987d",
        "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64",
        "deepseek-ai/DeepEP, issues 596 and 597 (hangs after a wrong domain size)",
    ),
)
