"""What a dispatcher must not be recommended for, whatever the guide's table says: rows with their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.config.versions import numbers
from heuristics.config.view import Config
from heuristics.guides.table import Refusal
from heuristics.run.run import Run

_HELPER: Final = "Megatron-Bridge, training/flex_dispatcher_backend.py"
_CORE: Final = "Megatron-Core, transformer/moe/token_dispatcher.py"


@dataclass(frozen=True, slots=True)
class DispatcherLimit:
    """`broken`: whether a run is past the limit; None where that is unknown."""

    backend: str
    broken: Callable[[Config], bool | None]
    reason: str
    source: str


def _older(version: str | None, than: tuple[int, int, int]) -> bool | None:
    return None if version is None else numbers(version) < than


def _deepep_gpu(config: Config) -> bool | None:
    family, capability = config.gpu_family, config.capability
    if family:
        return family.hardware == "nvl72"
    if capability is None or capability[0] == 10:
        return None
    return capability[0] not in (8, 9)


def _deepep_b300(config: Config) -> bool | None:
    family = config.gpu_family
    return family is not None and family.name == "B300" and _older(config.version_text("bridge"), (0, 4, 0))


def _hybridep_gpu(config: Config) -> bool | None:
    capability = config.capability
    return None if capability is None else capability[0] not in (8, 9, 10)


def _one_rank(config: Config) -> bool | None:
    ep, etp = config.ep, config.expert_tensor_size
    return None if ep is None or etp is None else ep * etp == 1


def _past_rack(config: Config) -> bool | None:
    ep, topology = config.ep, config.hybrid_topology
    if ep is None or topology is None:
        return None
    return topology.multi_node and ep > topology.domain


LIMITS: Final = (
    DispatcherLimit(
        "deepep",
        _deepep_gpu,
        "Bridge takes DeepEP on compute capability 8 and 9 and on devices named B200 or B300; GB200 and "
        "GB300 fall back to alltoall, or raise where flex is set by hand",
        _HELPER,
    ),
    DispatcherLimit(
        "deepep",
        _deepep_b300,
        'Bridge before 0.4 knows B300 only by the exact name "NVIDIA B300", not "NVIDIA B300 SXM6 AC", '
        "and skips DeepEP silently",
        f"{_HELPER} of v0.3.1 and v0.4.0",
    ),
    DispatcherLimit(
        "deepep",
        lambda config: None if config.routing is None else config.routing == "drop_pad",
        "DeepEP does not pad expert inputs to capacity (moe_pad_expert_input_to_capacity raises)",
        "Megatron-Core, transformer/transformer_config.py",
    ),
    DispatcherLimit("deepep", _one_rank, "DeepEP needs TP x EP > 1", _CORE),
    DispatcherLimit(
        "deepep",
        lambda config: None if config.container is None else "26.02" in config.container,
        "DeepEP is not in the NeMo 26.02 container",
        "Megatron-Bridge, docs/releases/known-issues.md",
    ),
    DispatcherLimit(
        "hybridep",
        _hybridep_gpu,
        "Bridge takes HybridEP on compute capability 8, 9 and 10 only",
        _HELPER,
    ),
    DispatcherLimit(
        "hybridep",
        lambda config: _older(config.version_text("core"), (0, 16, 0)),
        "moe_flex_dispatcher_backend, and HybridEP with it, came with Megatron-Core 0.16",
        "Megatron-LM, tags core_v0.15.0 and core_v0.16.0",
    ),
    DispatcherLimit(
        "hybridep",
        _past_rack,
        "on NVL72 HybridEP takes an expert-parallel group of one NVLink domain only, at most 72 ranks",
        "Megatron-Bridge, scripts/performance/utils/utils.py",
    ),
)


def refusals(run: Run, backends: Sequence[str]) -> tuple[Refusal, ...]:
    """The backends of these that must not be chosen, each with every reason."""
    return tuple(
        Refusal(limit.backend, limit.reason, limit.source)
        for limit in LIMITS
        if limit.backend in backends and limit.broken(run.config)
    )


def backend_not_active(run: Run, configured: str) -> str | None:
    """What to check where a configured flex backend does not run; no verdict on its speed.

    None where it runs, or where the trace does not tell which dispatcher does.
    """
    shown = run.active.dispatcher
    if configured not in ("deepep", "hybridep", "ncclep") or shown in (configured, "unknown"):
        return None
    seen = "no expert all-to-all" if shown == "none" else f"the kernels of {shown}"
    return (
        f"{configured} is configured but not active: the trace shows {seen}. Check that "
        "moe_token_dispatcher_type is flex (the backend alone does nothing), and the log for a warning"
    )
