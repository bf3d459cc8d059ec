"""Kernel class -> the keys results are given by: compute classes and communication kinds."""

from functools import cache
from typing import Final

from traces.names.kernels import KernelClass, known_classes

COMM_KINDS: Final = (
    "ep_dispatch",
    "ep_combine",
    "ep_a2a",  # expert all-to-all, direction unknown
    "ep_control",  # notify, sync, layout: mostly waiting
    "dp_reduce_scatter",
    "dp_all_gather",
    "all_reduce",
    "tp",
    "pp_p2p",
    "cp",
    "sendrecv_unresolved",
    "other_comm",
)
"""Kinds of communication. Where two are exposed at once, the earlier here gets the instant."""

_KIND_BY_SUBCLASS: Final = {
    "ep_dispatch": "ep_dispatch",
    "ep_combine": "ep_combine",
    "ep_a2a": "ep_a2a",
    "ep_notify": "ep_control",
    "ep_sync": "ep_control",
    "ep_layout": "ep_control",
    "sendrecv": "sendrecv_unresolved",
    "all_reduce": "all_reduce",
    "tp_userbuffers": "tp",
    "cp_a2a": "cp",
    "pp_p2p": "pp_p2p",
}

GRAPH_REPLAY: Final = "graph_replay"
"""Class of a graph replay recorded as one row: busy, its kernels unseen."""


def is_communication(kernel: KernelClass) -> bool:
    """Whether a kernel moves or waits for data of other GPUs."""
    return kernel.class_ == "comm"


def comm_kind(kernel: KernelClass) -> str:
    """Kind of a communication kernel by its name alone.

    `dp_*` never comes from a name, nor `tp` or `cp` for an NCCL kernel: those need evidence from the trace.
    """
    return kind_of(kernel.subclass)


def kind_of(subclass: str) -> str:
    """Kind of a subclass of communication."""
    return _KIND_BY_SUBCLASS.get(subclass, "other_comm")


def compute_class(kernel: KernelClass) -> str:
    """Key of a compute kernel in `compute_by_class_ns`: its class, with `grouped_gemm` apart from `gemm`."""
    if kernel.class_ == "gemm" and kernel.subclass == "grouped":
        return "grouped_gemm"
    return kernel.class_


@cache
def compute_classes() -> tuple[str, ...]:
    """Every key `compute_by_class_ns` can have, sorted."""
    return tuple(sorted((known_classes() - {"comm"}) | {"grouped_gemm", GRAPH_REPLAY}))
