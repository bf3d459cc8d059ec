"""GPU families: which product is which, its compute capability, and how many GPUs share one NVLink domain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.run.run import Run

HardwareClass = Literal["ampere", "hopper", "blackwell_nvl8", "nvl72", "other"]
"""How the guides tell hardware apart; `other` is known, but in no guide."""


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """One family. `capability`: compute capability (major, minor), None where we have no source.

    `nvlink_domain`: GPUs of one NVLink domain in the systems the guides speak of.
    """

    name: str
    hardware: HardwareClass
    capability: tuple[int, int] | None
    nvlink_domain: int


FAMILIES: Final[dict[str, GpuFamily]] = {
    family.name: family
    for family in (
        GpuFamily("A100", "ampere", (8, 0), 8),
        GpuFamily("H100", "hopper", (9, 0), 8),
        GpuFamily("H200", "hopper", (9, 0), 8),
        GpuFamily("B200", "blackwell_nvl8", (10, 0), 8),
        GpuFamily("B300", "blackwell_nvl8", (10, 3), 8),
        GpuFamily("GB200", "nvl72", (10, 0), 72),
        GpuFamily("GB300", "nvl72", (10, 3), 72),
        GpuFamily("VR200", "nvl72", None, 72),
    )
}
"""Capabilities: NVIDIA's list of CUDA GPUs. Domains: apply_target_topology_environment of Megatron-Bridge,
scripts/performance/utils/utils.py, takes 8 for H100, B200 and B300, and 72 for GB200, GB300 and VR200; ours:
H200 and A100 as H100, since their boards hold eight as well. Cards and pairs (PCIe, NVL) hold less."""

RACK_NODE: Final = 4
"""GPUs of a node of an NVL72 rack: a larger node is a domain of its own, whatever its GPU is."""

_WORD: Final = re.compile(r"[A-Z]+\d+", re.IGNORECASE)


def gpu_family(name: str) -> str | None:
    """Family of a product name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where it is none of ours."""
    words = (word.upper() for word in _WORD.findall(name))
    return next((word for word in words if word in FAMILIES), None)


def family_of(run: Run) -> GpuFamily | None:
    """Family of a run's GPU; None where unknown or none of ours."""
    found = gpu_family(run.gpu) if run.gpu else None
    return FAMILIES[found] if found else None


def gpu_capability(run: Run) -> tuple[int, int] | None:
    """Compute capability: of the GPU that was given, else what the trace shows, else of the family."""
    family = family_of(run)
    if run.given.gpu and family:
        return family.capability
    return run.shown.capability or (family.capability if family else None)


def hardware_class(run: Run) -> HardwareClass | None:
    """How the guides would call the GPU; by its capability and NVLink domain where its name tells nothing."""
    family = family_of(run)
    if family:
        return family.hardware
    capability = gpu_capability(run)
    if capability is None:
        return "other" if run.gpu else None
    major = capability[0]
    if major == 10:  # B200 and GB200 are both 10.0
        domain = run.given.nvlink_domain
        return None if domain is None else "nvl72" if domain > 8 else "blackwell_nvl8"
    return "hopper" if capability == (9, 0) else "ampere" if capability == (8, 0) else "other"


def nvlink_domain(run: Run) -> int | None:
    """GPUs of one NVLink domain: as given; of an NVL72 family its rack; else the node, else by family."""
    if run.given.nvlink_domain is not None:
        return run.given.nvlink_domain
    family, node = family_of(run), run.given.gpus_per_node
    if family is not None:
        is_rack = family.hardware == "nvl72"
        return family.nvlink_domain if is_rack or node is None else node
    return node if node is not None and node > RACK_NODE else None


def expert_tensor_size(run: Run) -> int | None:
    """Ranks that share one expert: as given, else the tensor-parallel size, as Megatron-Core takes it."""
    if run.given.etp is not None:
        return run.given.etp
    if run.given.tp is not None:
        return run.given.tp
    return 1 if run.shown.tp_active is False else None


def spans_domain(run: Run) -> bool | None:
    """Whether the expert ranks (EP x ETP) are more than one NVLink domain holds."""
    ep, etp, domain = run.given.ep, expert_tensor_size(run), nvlink_domain(run)
    if domain is None:
        return None
    if ep is not None and ep * (etp or 1) > domain:
        return True
    if ep is None and domain == 8 and run.shown.internode:
        return True
    return False if ep is not None and etp is not None else None


@dataclass(frozen=True, slots=True)
class HybridTopology:
    """What HybridEP is told: ranks of one EP group in a domain, the domain's size, NVLink across nodes."""

    ranks_per_domain: int
    domain: int
    multi_node: bool


def hybrid_topology(run: Run) -> HybridTopology | None:
    """EP, or what of it one domain holds; None where EP or the domain is unknown.

    Source: apply_target_topology_environment, Megatron-Bridge, scripts/performance/utils/utils.py.
    """
    ep, domain = run.given.ep, nvlink_domain(run)
    if ep is None or domain is None:
        return None
    return HybridTopology(min(ep, domain), domain, domain > 8)


def told_topology(run: Run) -> bool | None:
    """Whether HybridEP is told the ranks of its group in a domain as they are; None where unknown."""
    told = run.settings.value("env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN")
    known = hybrid_topology(run)
    return None if told is None or known is None else str(told) == str(known.ranks_per_domain)
