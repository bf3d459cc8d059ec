"""GPU families: which product is which, its compute capability, and how many GPUs share one NVLink
domain.
"""

from typing import Final, Literal

from traces.frozen import frozen
from traces.names.gpus import product_named
from traces.patterns import compiled
from traces.toml_tables import TableRow, read_table

HardwareClass = Literal["ampere", "hopper", "blackwell_nvl8", "nvl72", "other"]
"""How the guides tell hardware apart; `other` is known, but in no guide."""


class GpuFamily(TableRow):
    """One family: a row of `hardware.toml`."""

    name: str
    hardware: HardwareClass
    nvlink_domain: int


FAMILIES: Final = read_table("heuristics.config", "hardware.toml", dict[str, GpuFamily])

RACK_NODE: Final = 4
"""GPUs of a node of an NVL72 rack: a larger node is a domain of its own, whatever its GPU is."""

_WORD: Final = compiled(r"(?i)[A-Z]+\d+X?")


def gpu_family(name: str) -> str | None:
    """Family of a product name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where it is none of
    ours.
    """
    return next((word for word in map(str.upper, _WORD.findall(name)) if word in FAMILIES), None)


def gpu_named(name: str) -> str | None:
    """Family of a recorded GPU, else its product in our table, however its vendor spells it."""
    family = gpu_family(name)
    if family is None and (product := product_named(name)):
        return product.name
    return family


def family_named(name: str) -> GpuFamily | None:
    return FAMILIES.get(gpu_family(name) or "")


@frozen
class HybridTopology:
    """What HybridEP is told: ranks of one EP group in a domain, NVLink across nodes."""

    ranks_per_domain: int
    multi_node: bool
