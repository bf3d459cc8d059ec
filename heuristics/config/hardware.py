"""GPU families: which product is which, its compute capability, and how many GPUs share one NVLink domain."""

from dataclasses import dataclass
from typing import Final, Literal

from traces.names.gpus import product_named
from traces.patterns import compiled

HardwareClass = Literal["ampere", "hopper", "blackwell_nvl8", "nvl72", "other"]
"""How the guides tell hardware apart; `other` is known, but in no guide."""


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """One family. `nvlink_domain`: GPUs of one NVLink domain in the systems the guides speak of."""

    name: str
    hardware: HardwareClass
    nvlink_domain: int


FAMILIES: Final[dict[str, GpuFamily]] = {
    family.name: family
    for family in (
        GpuFamily("A100", "ampere", 8),
        GpuFamily("A800", "ampere", 8),
        GpuFamily("H20", "hopper", 8),
        GpuFamily("H800", "hopper", 8),
        GpuFamily("H100", "hopper", 8),
        GpuFamily("H200", "hopper", 8),
        GpuFamily("B200", "blackwell_nvl8", 8),
        GpuFamily("B300", "blackwell_nvl8", 8),
        GpuFamily("GB200", "nvl72", 72),
        GpuFamily("GB300", "nvl72", 72),
        GpuFamily("VR200", "nvl72", 72),
        GpuFamily("MI300X", "other", 8),
        GpuFamily("MI325X", "other", 8),
        GpuFamily("MI355X", "other", 8),
    )
}
"""Domains: apply_target_topology_environment of Megatron-Bridge,
scripts/performance/utils/utils.py, takes 8 for H100, B200 and B300, and 72 for GB200, GB300 and VR200; ours:
H200 and A100 as H100, since their boards hold eight as well; A800, H20 and H800 are NVIDIA's boards of the
same kind for export, and AMD's Infinity Fabric joins eight too (Instinct datasheets). Cards and pairs
(PCIe, NVL) hold less."""

RACK_NODE: Final = 4
"""GPUs of a node of an NVL72 rack: a larger node is a domain of its own, whatever its GPU is."""

_WORD: Final = compiled(r"(?i)[A-Z]+\d+X?")


def gpu_family(name: str) -> str | None:
    """Family of a product name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where it is none of ours."""
    words = (word.upper() for word in _WORD.findall(name))
    return next((word for word in words if word in FAMILIES), None)


def gpu_named(name: str) -> str | None:
    """Family of a recorded GPU, else its product in our table, however its vendor spells it."""
    family = gpu_family(name)
    return product.name if family is None and (product := product_named(name)) else family


def family_named(name: str) -> GpuFamily | None:
    return FAMILIES.get(gpu_family(name) or "")


def capability_of(name: str) -> tuple[int, int] | None:
    """Compute capability of a product by its name; None where we have no source."""
    return product.capability if (product := product_named(name)) else None


@dataclass(frozen=True, slots=True)
class HybridTopology:
    """What HybridEP is told: ranks of one EP group in a domain, the domain's size, NVLink across nodes."""

    ranks_per_domain: int
    domain: int
    multi_node: bool
