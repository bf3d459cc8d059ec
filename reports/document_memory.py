"""What memory costs, in `ranks[]`, with the precision and the recompute that were detected."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from traces.measure.memory import Memory
from traces.measure.precision import Precision
from traces.measure.recompute import Recompute
from traces.missing import Missing

_GROUPS: Final = {
    "recompute_modules": "recompute_ns",
    **dict.fromkeys(("offload_copies", "offload_union_ns", "offload_bytes"), "offload_exposed_ns"),
    **dict.fromkeys(
        ("host_resident_copies", "host_resident_union_ns", "host_resident_bytes"), "host_resident_exposed_ns"
    ),
    "allocator_calls": "allocator_ns",
    "allocator_retry_frac": "allocator_retry_frac",
}
"""Figures that are missing for the reason of another."""


def memory_section(memory: Memory) -> dict[str, Any]:
    """The contract's `memory`."""
    values = asdict(memory)
    del values["missing"]
    return values


def detected_precision(precision: Precision) -> dict[str, Any]:
    """The contract's `detected.precision`, with the shares of GEMM work it rests on."""
    return {"precision": precision.precision, "precision_shares_frac": dict(precision.shares)}


def detected_recompute(recompute: Recompute) -> dict[str, Any] | None:
    """The contract's `detected.recompute`: passes by module, empty without backward; None if unknown."""
    modules = {module: asdict(passes) for module, passes in recompute.modules.items()}
    return modules or (None if recompute.missing else {})


def memory_gaps(path: str, memory: Memory, precision: Precision, recompute: Recompute) -> list[Missing]:
    """An entry for every None in these sections of the rank at `path`."""
    told = {gap.path.removeprefix("memory."): gap for gap in memory.missing}
    gaps = []
    for key, value in memory_section(memory).items():
        if value is None:
            gap = told[_GROUPS.get(key, key)]
            gaps.append(Missing(f"{path}.memory.{key}", gap.reason, gap.cure))
    if precision.missing:
        gaps.append(_at(f"{path}.detected.precision", precision.missing))
    if recompute.missing:
        untold = [module for module, one in recompute.modules.items() if one.recomputed_count is None]
        places = [f".{module}.recomputed_count" for module in untold] if recompute.modules else [""]
        gaps += [_at(f"{path}.detected.recompute{place}", recompute.missing) for place in places]
    return gaps


def _at(path: str, gap: Missing) -> Missing:
    return Missing(path, gap.reason, gap.cure)
