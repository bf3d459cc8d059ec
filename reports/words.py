"""How numbers and foreign names are written, alike in every format for people."""

from __future__ import annotations

import unicodedata
from typing import Final

from traces.steps.selection import seconds

__all__ = ["kind_words", "milliseconds", "percent", "printable", "seconds", "wall_words"]

_KINDS: Final = {
    "ep_a2a": "expert all-to-all",
    "ep_dispatch": "expert dispatch",
    "ep_combine": "expert combine",
    "ep_control": "control of the dispatcher",
    "dp": "data parallelism",
    "dp_reduce_scatter": "gradient reduce-scatter",
    "dp_all_gather": "parameter all-gather",
    "tp": "tensor parallelism",
    "pp_p2p": "pipeline send and receive",
    "cp": "context parallelism",
    "token_count_sync": "read of token counts",
    "gc": "garbage collection",
    "data": "data loading",
    "sync": "synchronising calls",
    "launch": "launch calls",
    "python": "host code between calls",
    "checkpoint": "checkpoints saved or loaded",
    "cpu_optimizer": "the optimizer on the CPU",
    "long_python_pauses": "long pauses of the host",
    "arrival": "arrival latency",
    "os_wait": "OS calls",
    "lazy_init": "initialisation and compilation",
    "recompute": "recompute",
    "offload": "offload copies",
    "host_resident": "copies of what lives in host memory",
    "allocator": "allocator calls",
    "no_tensor_cores": "GEMMs without tensor cores",
}
"""How kinds of cost are called where people read; a class of kernels keeps its key."""


def wall_words(wall: str) -> str:
    """A wall as people write it."""
    return wall.replace("_", " ")


def kind_words(kind: str) -> str:
    """A kind of cost as people write it."""
    return _KINDS.get(kind, kind.replace("_", " "))


def milliseconds(time_ns: int) -> str:
    """A duration in ms with all six decimals, so that printed parts add up: `3,408.380989`."""
    sign, rest = ("-", -time_ns) if time_ns < 0 else ("", time_ns)
    return f"{sign}{rest // 10**6:,}.{rest % 10**6:06d}"


def percent(frac: float) -> str:
    """A share with one decimal. A share that is not zero never reads 0.0 %, nor one below all 100.0 %."""
    if 0 < frac < 0.0005:
        return "<0.1 %"
    if 0.9995 <= frac < 1:
        return ">99.9 %"
    return f"{frac * 100:.1f} %"


def printable(name: str, width: int) -> str:
    """A foreign name made harmless: no cursor moves, line breaks or turned reading; cut in the middle."""
    clean = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name)
    if len(clean) <= width:
        return clean
    head = (width - 3) * 2 // 3
    return clean[:head] + "..." + clean[len(clean) - (width - 3 - head) :]
