"""Contradictions of the math: precision, grouped GEMMs, fused permutation."""

from typing import Final

from heuristics.findings.finding import Case, Detector
from heuristics.result.configured import ConfigFinding
from traces.limits import Limit
from traces.measure.unknown import UnknownKernel

_WIDE: Final = ("bf16", "fp16", "fp32", "tf32")


def precision_not_active(case: Case) -> ConfigFinding | None:
    """FP8 or FP4 asked for, and the GEMMs are wider; or the other way round."""
    run, asked, shown = case.run, case.run.asked.precision, case.run.observed.precision
    low = run.asked.low_precision()
    if low is None or shown is None or shown == "mixed" or low == (shown not in _WIDE):
        return None
    knob = next(one for one in ("mixed_precision", "fp8", "fp4") if run.asked.known(one))
    return ConfigFinding(
        "CFG-precision",
        "requested_not_active" if low else "active_not_requested",
        f"{asked} is asked for, and the GEMMs run in {shown}",
        f"{knob} in {run.asked.where(knob)}; the names of the trace's GEMMs",
        "a recipe that the installed Transformer Engine supports, and no layers kept in BF16 by mistake"
        if low
        else "take the trace and the configuration of the same run",
    )


def grouped_gemm_not_active(case: Case) -> ConfigFinding | None:
    """Grouped GEMMs asked for, and each expert runs its own."""
    run, shown = case.run, case.run.observed
    per_layer = shown.expert_gemms_per_layer
    ep, experts = run.asked.positive("expert_model_parallel_size"), run.asked.positive("num_moe_experts")
    local = experts // ep if experts and ep else None
    alone = shown.grouped_gemm is False or (
        shown.grouped_gemm is None and per_layer is not None and local is not None and per_layer >= local > 1
    )
    if not run.asked.on("moe_grouped_gemm") or not alone:
        return None
    count = "" if per_layer is None else f", {per_layer:.0f} GEMMs a layer"
    return ConfigFinding(
        "CFG-grouped-gemm",
        "requested_not_active",
        "grouped GEMMs are asked for, and every expert runs its own",
        f"moe_grouped_gemm in {run.asked.where('moe_grouped_gemm')}; the trace shows no grouped GEMM{count}",
        "a layer specification that has grouped experts, and a Transformer Engine with grouped GEMMs (CMP-1)",
    )


def grouped_gemm_unasked(case: Case) -> ConfigFinding | None:
    """Grouped GEMMs run though they are said to be off."""
    run = case.run
    if run.asked.on("moe_grouped_gemm") is not False or not run.observed.grouped_gemm:
        return None
    return ConfigFinding(
        "CFG-grouped-gemm-unasked",
        "active_not_requested",
        "grouped GEMMs are off in the configuration, and the trace runs some",
        f"moe_grouped_gemm in {run.asked.where('moe_grouped_gemm')}; grouped GEMM kernels in the trace",
        "take the trace and the configuration of the same run",
    )


def permute_not_fused(case: Case) -> ConfigFinding | None:
    """Fused permutation asked for, and its parts run one by one."""
    run = case.run
    if not run.asked.on("moe_permute_fusion") or run.observed.permute_fused is not False:
        return None
    return ConfigFinding(
        "CFG-permute-fusion",
        "requested_not_active",
        "fused permutation is asked for, and unfused permutation kernels run",
        f"moe_permute_fusion in {run.asked.where('moe_permute_fusion')}; kernels of the trace",
        "Transformer Engine 2.1 or later (HST-4)",
    )


DETECTORS: Final[tuple[Detector, ...]] = (
    precision_not_active,
    grouped_gemm_not_active,
    grouped_gemm_unasked,
    permute_not_fused,
)


UNKNOWN: Final = Limit(
    0.05, "fraction of the window", "ours: half a wall; what the tool cannot name must not be lost in `other`"
)


def is_finding(kernel: UnknownKernel) -> bool:
    """Whether a kernel is to be named among the findings."""
    return kernel.frac > UNKNOWN.value
