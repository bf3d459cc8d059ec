"""GPU products by name: what is published of each, and what one SM of each compute capability can
hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from traces.limits import NEARLY_ALL
from traces.patterns import Pattern, compiled, literal
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

if TYPE_CHECKING:  # loads numpy, which a page of help needs not
    from traces.columns import Columns, Gpu

_LAPTOP: Final = "Laptop"


class Product(TableRow):
    """One product. `capability` (major, minor) and the rest are None where we have no source."""

    name: str
    capability: tuple[int, int] | None = None
    sm_count: int | None = None
    memory_gib: int | None = None
    memory_gb_per_s: float | None = None
    nvlink_gb_per_s: float | None = None

    @property
    def memory_bytes(self) -> int | None:
        if self.memory_gib is None:
            return None
        return self.memory_gib << 30


@cache
def products() -> Mapping[str, Product]:
    """Every product of the table by its name."""
    read = read_table("traces.names", "gpus.toml", dict[str, tuple[Product, ...]])
    return {product.name: product for product in read["gpus"]}


def product_named(name: str) -> Product | None:
    """The product of a name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where the table has it
    not.
    """
    product = longest_within(name, tuple(products()))
    if product:
        return products()[product]
    return None


def memory_rate(name: str | None, memory_bytes: int | None) -> float | None:
    """Peak of a GPU's memory in GB/s; None of a form with less memory than the one in the table.

    Drivers show some percent less than is sold.
    """
    product = product_named(name) if name and _LAPTOP not in name else None
    if product is None or product.memory_bytes is None:
        return None
    if memory_bytes is not None and memory_bytes < NEARLY_ALL.value * product.memory_bytes:
        return None
    return product.memory_gb_per_s


def link_rate(name: str | None) -> float | None:
    """NVLink of a GPU in GB/s, in one direction; None of one that has none, or may have none."""
    product = product_named(name) if name and "pcie" not in name.lower() else None
    if product:
        return product.nvlink_gb_per_s
    return None


_FORMS: Final = r"SXM|PCIE|NVL|OAM|HBM|DGXS"
"""Forms of one product, which some write behind its name without a mark between."""


def _words_of(product: str) -> Pattern:
    words = r"[ _-]?".join(map(literal, product.split()))
    return compiled(rf"(?i)(?:^|[^A-Z0-9]){words}(?:[^A-Z0-9]|{_FORMS}|$)")


@cache
def longest_within(name: str, known: Texts) -> str | None:
    """The longest known product whose words stand in a name: `H100 PCIe` before `H100`."""
    matches = [product for product in known if _words_of(product).search(name)]
    return max(matches, key=len, default=None)


def largest_sm_count() -> int:
    """SMs of the largest GPU of the table that runs CUDA: what bounds one of which nothing is
    known.
    """
    return max(gpu.sm_count for gpu in products().values() if gpu.capability and gpu.sm_count)


def with_products(columns: Columns, given: str | None) -> Columns:
    """A trace with what is published of its GPUs, where it does not say it itself.

    `given`: the product that the user names, for GPUs without a name, and for a trace that lists
    none.
    """
    from traces.columns import Gpu

    listed = columns.info.gpus or ((Gpu(None, None, None, None, None, None),) if given else ())
    gpus = tuple(_completed(gpu, gpu.name or given) for gpu in listed)
    return replace(columns, info=replace(columns.info, gpus=gpus))


def _completed(gpu: Gpu, name: str | None) -> Gpu:
    product = product_named(name) if name else None
    if name is None or product is None:
        return gpu
    capability = ".".join(map(str, product.capability)) if product.capability else None
    exact = _LAPTOP not in name  # a laptop's has fewer SMs than the card of its name
    return replace(
        gpu,
        name=name,
        sm_count=gpu.sm_count or (product.sm_count if exact else None),
        capability=gpu.capability or capability,
    )


WARP_THREADS: Final = 32
REGISTER_UNIT: Final = 256
"""Registers are given to a warp in multiples of this (all capabilities listed here)."""
SUB_PARTITIONS: Final = 4
"""An SM's registers lie in this many parts; a warp takes all of its own from one."""


class SmCapacity(TableRow):
    """What one SM holds; shared memory goes out in `shared_unit_bytes`, with a reserve per
    block.
    """

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65_536
    shared_unit_bytes: int = 128
    reserved_shared_bytes: int = 1024


@cache
def _capacities() -> dict[str, SmCapacity]:
    """By compute capability, the oldest first."""
    return read_table("traces.names", "sm_capacities.toml", dict[str, SmCapacity])


def sm_capacity(gpu: Gpu) -> SmCapacity | None:
    """Capacity of a GPU's SMs: the trace's own limits first, the table for the rest.

    None where the capability is unknown, to the trace or to us: the units of allocation depend on
    it.
    """
    table = _capacities().get(gpu.capability or "")
    if table is None:
        return None
    from traces.columns import SmLimits

    own = gpu.limits or SmLimits(None, None, None, None)
    return SmCapacity(
        own.warps or table.warps,
        own.blocks or table.blocks,
        own.shared_bytes or table.shared_bytes,
        own.registers or table.registers,
        table.shared_unit_bytes,
        table.reserved_shared_bytes,
    )


_ARCHITECTURE: Final = compiled(r"(?:^|[^A-Za-z0-9]|fmha|Fwd|Bwd)[sS]m_?(\d{1,4})")

_GENERATIONS: Final = {"volta": "70", "turing": "75", "ampere": "80"}
"""What cuBLAS and cuDNN begin kernel names with."""
_GENERATION: Final = compiled(rf"\b({'|'.join(_GENERATIONS)}) \w")


def capability_at_least(kernel_names: Iterable[str]) -> str | None:
    """The newest capability that kernel names speak of: a lower bound of the GPU's, never the GPU
    itself.

    A kernel built for sm_80 runs on an H100 as well. None where no name speaks of one.
    """
    spoken = set[str]()
    for name in kernel_names:
        spelled = name.replace("_", " ")
        spoken.update(_ARCHITECTURE.findall(spelled))
        for generation in _GENERATION.findall(spelled):
            spoken.add(_GENERATIONS[generation])
    for capability in reversed(_capacities()):  # the newest first
        if capability.replace(".", "") in spoken:
            return capability
    return None
