"""Which wall a row of the ledger belongs to: taking that wall's overhead away would shrink the row."""

from collections.abc import Mapping
from typing import Final

from traces.names.kinds import COMM_KINDS
from traces.sections.tables import WallId

_BY_ROW: Final[Mapping[str, WallId | None]] = {
    "launch_starved.allocator": "memory",
    "launch_starved.profiler": None,
    "launch_latency.arrival": "host_overhead",
    **{f"blocking.{kind}": "communication" for kind in COMM_KINDS},
}
"""Reasons why no compute ran that differ from their group's wall."""
_BY_GROUP: Final[Mapping[str, WallId]] = {
    "compute": "compute",
    "exposed_comm": "communication",
    "launch_starved": "host_overhead",
}
"""The first word of a row; a row of any other is nobody's."""
_BY_MODULE: Final[Mapping[str, WallId]] = {
    "dispatch": "communication",
    "combine": "communication",
    "expert_gemm": "compute",
    "expert_activation": "compute",
    "shared_expert": "compute",
    "router": "compute",
    "permute": "compute",
    "unpermute": "compute",
}
"""Modules of MoE layers; what is recomputed is the memory wall's, whatever it is."""


def wall_of(row: str) -> WallId | None:
    """The wall of a row such as `compute.gemm`, `idle.launch_starved.python`, `moe.dispatch.backward`."""
    row = row.removeprefix("idle.")
    head, _, rest = row.partition(".")
    if head == "moe":
        module, _, direction = rest.partition(".")
        return "memory" if direction == "recompute" else _BY_MODULE.get(module)
    return _BY_ROW.get(row, _BY_GROUP.get(head))
