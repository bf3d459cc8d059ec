"""What each class, kind and reason looks like: a colour and a pattern, alike in every picture of a page.

Colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), apart for colour-blind readers.
Families share a colour: matrix work blue, attention sky, other work of a layer green, expert exchange
vermillion, other communication orange, copies yellow, a late host purple.
Within a family the pattern differs.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Look(NamedTuple):
    """A colour (class `c-NAME` of the style sheet) and a pattern (`p-NAME` of the page), `solid` for none."""

    colour: str
    pattern: str


def length(share: float) -> str:
    """A part of the room there is, as a style sheet takes it."""
    return f"{share:.4%}"


_PATTERNS: Final = ("solid", "slash", "dots", "cross", "rows", "columns", "back", "grid")


def _family(colour: str, *names: str, first: int = 0) -> dict[str, Look]:
    return {name: Look(colour, pattern) for name, pattern in zip(names, _PATTERNS[first:], strict=False)}


_CLASSES: Final = {
    **_family("blue", "gemm", "grouped_gemm", "convolution", "graph_replay"),
    **_family("sky", "attention", "rope", "softmax", "ssm"),
    **_family("green", "permute", "router", "norm", "activation", "elementwise", "quantize", "rng", "pool"),
    **_family("grey", "optimizer", "loss", "embedding", "memory", "other", "layout", "decode"),
}
_KINDS: Final = {
    **_family("vermillion", "ep_dispatch", "ep_combine", "ep_a2a", "ep_control", "sendrecv_unresolved"),
    **_family(
        "orange", "dp_reduce_scatter", "dp_all_gather", "all_reduce", "tp", "pp_p2p", "cp", "other_comm"
    ),
}
_COPIES: Final = {
    **_family("yellow", "memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memcpy_p2p", "memset", "memcpy_h2h"),
    **_family("yellow", "memcpy_uvm_h2d", "memcpy_uvm_d2h", first=6),
}
_HOST: Final = {
    **_family("purple", "launch", "python", "sync", "token_count_sync", "allocator", "gc", "data", "os_wait"),
    **_family("grey", "lazy_init", "profiler", "checkpoint", "evaluation", "logging", first=1),
    **_family("vermillion", "cpu_optimizer", first=6),
}
_LOOKS: Final[Mapping[str, Look]] = {
    **_family("blue", "compute", "busy"),
    "exposed_comm": Look("vermillion", "solid"),
    "exposed_copy": Look("yellow", "solid"),
    "idle": Look("pale", "solid"),
    "host.ranges": Look("pale", "solid"),
    "host.calls": Look("purple", "solid"),
    **{f"compute.{name}": look for name, look in _CLASSES.items()},
    **{f"{bucket}.{name}": look for bucket in ("comm", "exposed_comm") for name, look in _KINDS.items()},
    **{f"{bucket}.{name}": look for bucket in ("copy", "exposed_copy") for name, look in _COPIES.items()},
    **{f"blocking.{name}": look for name, look in (_KINDS | _COPIES).items()},
    **{f"launch_starved.{name}": look for name, look in _HOST.items()},
    "launch_latency.arrival": Look("pale", "rows"),
    "launch_latency.kernel_gap": Look("pale", "slash"),
    "graph_opaque": Look("grey", "cross"),
    "dependency_stalled": Look("dark", "solid"),
    "trailing": Look("pale", "dots"),
}
_GROUPS: Final = {
    "compute": Look("grey", "rows"),
    "comm": Look("orange", "grid"),
    "exposed_comm": Look("orange", "grid"),
    "copy": Look("yellow", "grid"),
    "exposed_copy": Look("yellow", "grid"),
    "blocking": Look("orange", "grid"),
    "launch_starved": Look("grey", "cross"),
}
"""What a name looks like that a later version brings."""


def look(key: str) -> Look:
    """The look of a key: `compute.gemm`, `exposed_comm.ep_combine`, `launch_starved.sync`, `idle`.

    Of an unknown key: that of its group, or grey.
    """
    known = _LOOKS.get(key.removeprefix("idle."))
    return known or _GROUPS.get(key.split(".")[0], Look("grey", "grid"))
