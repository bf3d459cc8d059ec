"""Versions of packages: their numbers, and the Core of each Bridge."""

from functools import cache
from typing import Final, Literal

from traces.patterns import compiled, numbers_in

Package = Literal[
    "core",
    "bridge",
    "te",
    "torch",
    "nccl",
    "nvshmem",
    "deepep",
    "peft",
    "deepspeed",
    "cuda",
    "driver",
]
Version = tuple[int, int, int]

PACKAGES: Final = ("core", "bridge", "te", "torch")

PACKAGE_NAMES: Final = {
    "core": "Megatron-Core",
    "bridge": "Megatron-Bridge",
    "te": "Transformer Engine",
    "torch": "PyTorch",
}

CORE_OF_BRIDGE: Final = {(0, 3): "0.16.1", (0, 4): "0.17.0", (0, 5): "0.18.0", (0, 6): "0.19.0"}
"""Megatron-Core in a Megatron-Bridge release, by its major and minor number: its submodule
3rdparty/Megatron-LM at v0.3.1, v0.4.0, v0.5.0 and v0.6.0."""


@cache
def numbers(version: str) -> Version:
    """(2, 8, 0) of "2.8" and of "core_v2.8.0rc1"; zeros where no number is."""
    match = compiled(r"\d+(?:\.\d+){0,2}").search(version)
    parts = numbers_in(match[0]) if match else ()
    major, minor, micro = (*parts, 0, 0, 0)[:3]
    return major, minor, micro


def bridge_of_core(core: str) -> str | None:
    """The first Megatron-Bridge release whose Megatron-Core is this or later; None where that is
    none yet.
    """
    for (major, minor), its in CORE_OF_BRIDGE.items():
        if numbers(its) >= numbers(core):
            return f"{major}.{minor}"
    return None


def core_of_bridge(bridge: str | None) -> str | None:
    """Megatron-Core of a Megatron-Bridge release; None where that is none we know."""
    return CORE_OF_BRIDGE.get(numbers(bridge or "")[:2])
