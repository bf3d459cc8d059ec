"""An optimizer that is to run on the CPU, with no part of it sent there."""

from __future__ import annotations

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector

_OFFLOAD: Final = "optimizer.optimizer_cpu_offload"
_FRACTION: Final = "optimizer.optimizer_offload_fraction"


def nothing_offloaded(case: Case) -> ConfigFinding | None:
    """CPU offload of the optimizer with a fraction of 0, which is Megatron-Core's default.

    Megatron-LM's arguments have 1.0 (training/arguments.py); OptimizerConfig has 0.0, and so has
    Megatron-Bridge (core/optimizer/optimizer_config.py, core_v0.16.1 and d98e8a64).
    """
    run = case.run
    unsaid = not run.config.known(_FRACTION)
    if not run.config.on(_OFFLOAD) or (unsaid and run.settings.framework != "megatron_bridge"):
        return None
    if not unsaid and run.config.value(_FRACTION) != 0:
        return None
    why = "the fraction is not set, and its default is 0" if unsaid else f"0 in {run.config.where(_FRACTION)}"
    return ConfigFinding(
        "CFG-offload-fraction",
        "inert",
        f"the optimizer is to run on the CPU, and none of it is sent there: {_FRACTION} is 0",
        f"{_OFFLOAD} in {run.config.where(_OFFLOAD)}; {why}",
        f"{_FRACTION} above 0, as 0.25 to begin with (MEM-7)",
    )


DETECTORS: Final[tuple[Detector, ...]] = (nothing_offloaded,)
