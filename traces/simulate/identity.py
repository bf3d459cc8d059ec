"""Which simulator this is: a hash over its sources, for tables of scores."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final

_SOURCES: Final = (
    "dispatchers",
    "draws",
    "engine",
    "export",
    "handicaps",
    "happened",
    "host_program",
    "host_thread",
    "kernels",
    "knobs",
    "layer",
    "optimizer",
    "ranges",
    "recorded",
    "recording",
    "run",
    "scenarios",
    "script",
    "step",
    "truth",
)


def simulator_hash() -> str:
    """Twelve hexadecimal digits that change with any source the simulator is made of."""
    digest = hashlib.sha256()
    for name in (*(f"{source}.py" for source in _SOURCES), "export_schemas.json"):
        digest.update(name.encode() + b"\0" + files("traces.simulate").joinpath(name).read_bytes())
    return digest.hexdigest()[:12]
