"""GPU products by name: what is published of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypedDict, cast

if TYPE_CHECKING:  # loads numpy, which a page of help needs not
    from traces.columns import Columns

_WORD: Final = re.compile(r"[A-Z]+\d+[A-Z]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Product:
    """One product. `capability` (major, minor) and the rest are None where we have no source."""

    name: str
    capability: tuple[int, int] | None
    sm_count: int | None
    memory_bytes: int | None


class _Row(TypedDict, total=False):
    capability: str
    sms: int
    memory: int


@cache
def products() -> Mapping[str, Product]:
    """Every product of the table by its name."""
    text = files("traces.names").joinpath("gpus.toml").read_text(encoding="utf-8")
    rows = cast("dict[str, _Row]", tomllib.loads(text))
    return {
        name: Product(
            name, _capability(row.get("capability")), row.get("sms"), row.get("memory", 0) << 30 or None
        )
        for name, row in rows.items()
    }


def product_named(name: str) -> Product | None:
    """The product of a name such as "NVIDIA H100 80GB HBM3" or "gb200"; None where the table has it not."""
    words = (word.upper() for word in _WORD.findall(name))
    return next((products()[word] for word in words if word in products()), None)


def with_sm_count(columns: Columns, name: str | None) -> Columns:
    """A trace with the SMs of the product the user names, on GPUs of which it does not tell them."""
    product = product_named(name) if name else None
    if product is None or product.sm_count is None:
        return columns
    gpus = tuple(
        replace(gpu, sm_count=product.sm_count) if gpu.sm_count is None else gpu for gpu in columns.info.gpus
    )
    return replace(columns, info=replace(columns.info, gpus=gpus))


def _capability(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor)
