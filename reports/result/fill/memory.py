"""`ranks[].memory`, and of `ranks[].detected` what it rests on: precision and recompute."""

from collections.abc import Mapping
from typing import Final

from reports.result.fill.parts import because, copied
from traces.measure.memory import Memory
from traces.measure.recompute import Recompute
from traces.missing import OrMissing
from traces.sections import rank as typed

_OFFLOAD: Final = ("offload_exposed_ns", "offload_copies", "offload_union_ns", "offload_bytes")
_RESIDENT: Final = tuple(name.replace("offload", "host_resident") for name in _OFFLOAD)
_TOGETHER: Final = (
    ("recompute_ns", "recompute_modules"),
    _OFFLOAD,
    _RESIDENT,
    ("allocator_ns", "allocator_calls"),
)
"""Figures that are missing for the reason of the first of them."""
_GROUPS: Final = {name: group[0] for group in _TOGETHER for name in group}


def memory(found: Memory) -> typed.Memory:
    """What saving memory costs, and how much there is."""
    gaps = {one.path.removeprefix("memory."): one for one in found.missing}
    section = copied(found, typed.Memory)
    names = typed.Memory.__struct_fields__
    return because(section, {name: gaps.get(_GROUPS.get(name, name)) for name in names})


def recompute(found: Recompute) -> OrMissing[Mapping[str, typed.Passes]]:
    """Passes by module, empty without backward."""
    if found.missing and not found.modules:
        return found.missing
    return {
        module: because(copied(passes, typed.Passes), {"recomputed_count": found.missing})
        for module, passes in found.modules.items()
    }
