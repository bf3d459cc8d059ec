"""How the SMs were used, in `ranks[]`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from traces.measure.sm import SmUse
from traces.measure.sm_launches import LaunchUse
from traces.missing import Missing

_OF_LAUNCHES = (
    "occupancy_frac",
    "launch_occupancy_frac",
    "fill_frac",
    "tail_ns",
    "under_filled_ns",
    "persistent_ns",
    "limiter_ns",
)
"""Work, not wall time, where in ns: sums over compute kernels, which may overlap."""


def sm_section(sm: SmUse) -> dict[str, Any]:
    """The contract's `sm`; theoretical occupancy is never called achieved."""
    return {
        "sm_count": sm.sm_count,
        "capability_at_least": sm.capability_at_least,
        **_launches(sm.launches),
        "by_class": {name: _launches(use) for name, use in sm.by_class.items()},
        "comm_blocks": sm.comm_blocks.max_count if sm.comm_blocks else None,
        "comm_blocks_mean": sm.comm_blocks.mean_count if sm.comm_blocks else None,
        "stretch_frac": sm.stretch.frac if sm.stretch else None,
        "stretch": asdict(sm.stretch) if sm.stretch else None,
        "measured": _measured(sm),
    }


def sm_gaps(path: str, sm: SmUse) -> list[Missing]:
    """An entry for every None in the section of the rank at `path`."""
    return [Missing(f"{path}.sm.{key}", *_why(key, sm.missing)) for key in _nones(sm_section(sm)) if key]


def _nones(section: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in section.items():
        if value is None:
            yield before + key
        elif isinstance(value, dict):
            yield from _nones(value, f"{before}{key}.")


def _why(key: str, told: tuple[Missing, ...]) -> tuple[str, str]:
    """Reason and cure: what was told of this very figure, else of the group it belongs to."""
    name = key.split(".")[-1]
    for gap in told:
        if gap.path.split(".")[-1] == name:
            return gap.reason, gap.cure
    group = "stretch" if name.startswith("stretch") else "launches"
    for gap in told:
        if gap.path == f"sm.{group}" and name in (*_OF_LAUNCHES, "stretch_frac"):
            return gap.reason, gap.cure
    if name == "capability_at_least":
        return "the trace tells the GPU itself, or no kernel name speaks of one", "none is needed"
    return "no kernel in the window tells it", "choose a longer window"


def _launches(use: LaunchUse | None) -> dict[str, Any]:
    if use is None:
        return dict.fromkeys(_OF_LAUNCHES)
    values = {key: getattr(use, key) for key in _OF_LAUNCHES}
    return values | {"limiter_ns": dict(use.limiter_ns) if use.limiter_ns is not None else None}


def _measured(sm: SmUse) -> dict[str, Any] | None:
    if sm.measured is None:
        return None
    values = asdict(sm.measured)
    return {**values, "samples": values.pop("sample_count")}
