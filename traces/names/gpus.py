"""GPU products by name: what is published of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from traces.toml_tables import read_table

if TYPE_CHECKING:  # loads numpy, which a page of help needs not
    from traces.columns import Columns, Gpu

_LAPTOP: Final = "Laptop"


class Product(Struct, frozen=True, forbid_unknown_fields=True):
    """One product. `capability` (major, minor) and the rest are None where we have no source."""

    name: str
    capability: tuple[int, int] | None = None
    sm_count: int | None = None
    memory_gib: int | None = None

    @property
    def memory_bytes(self) -> int | None:
        """Of all its memory."""
        return None if self.memory_gib is None else self.memory_gib << 30


@cache
def products() -> Mapping[str, Product]:
    """Every product of the table by its name."""
    read = read_table("traces.names", "gpus.toml", dict[str, tuple[Product, ...]])
    return {product.name: product for product in read["gpus"]}


def product_named(name: str) -> Product | None:
    """The product of a name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where the table has it not."""
    found = longest_within(name, tuple(products()))
    return products()[found] if found else None


@cache
def longest_within(name: str, known: tuple[str, ...]) -> str | None:
    """The longest known product whose words stand in a name: `H100 PCIe` before `H100`."""
    found = [one for one in known if re.search(rf"(?<![A-Z0-9]){one}(?![A-Z0-9])", name, re.IGNORECASE)]
    return max(found, key=len, default=None)


def largest_sm_count() -> int:
    """SMs of the largest GPU of the table that runs CUDA: what bounds one of which nothing is known."""
    return max(one.sm_count for one in products().values() if one.capability and one.sm_count)


def with_products(columns: Columns, given: str | None) -> Columns:
    """A trace with what is published of its GPUs, where it does not say it itself.

    `given`: the product that the user names, for GPUs without a name, and for a trace that lists none.
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
