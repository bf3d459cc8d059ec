"""Kernels no rule names: they count as compute, and a report must say so."""

from __future__ import annotations

from dataclasses import dataclass

from traces.intervals import Spans, intersect, union
from traces.names.kernels import classify_kernel
from traces.timeline import RankTimeline, Source

NO_NAME = "(no name recorded)"


@dataclass(frozen=True, slots=True)
class UnknownKernel:
    """A kernel name no rule matches, and the part of the window in which such a kernel ran."""

    name: str
    frac: float


def unknown_kernels(rank: RankTimeline, windows: Spans) -> tuple[UnknownKernel, ...]:
    """Kernels in the windows that no rule names, longest first."""
    names, rows = rank.columns.kernel_names, rank.activities
    unnamed = {-1: NO_NAME} | {
        code: name for code, name in enumerate(names) if classify_kernel(name).rule is None
    }
    found = []
    for code, name in unnamed.items():
        mine = (rows.source == Source.KERNEL) & (rows.name == code)
        busy_ns = intersect(union(rows.start_ns[mine], rows.end_ns[mine]), windows).total_ns
        if busy_ns:
            found.append(UnknownKernel(name, busy_ns / windows.total_ns))
    return tuple(sorted(found, key=lambda kernel: (-kernel.frac, kernel.name)))
