"""The naive rule, beside which the score stands: the largest raw share wins.

It reads an export by SQL of its own. Shares are of the time from the first kernel's start to the last one's
end: communication and compute are sums over kernels told apart by a few words in their names, host is the
time in which nothing ran on the GPU, memory the sum of allocator calls and of copies of 1 MiB and more from
or to the host. `largest` takes the largest of the four. `without_compute` leaves compute out, which is nearly
always the largest sum, and asks for a tenth: the best that shares alone can do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

_KERNELS: Final = """
SELECT k.start, k.end, s.value LIKE '%nccl%' OR s.value LIKE '%deep_ep%' OR s.value LIKE '%hybrid_ep%'
  OR s.value LIKE 'ag_nvl%' FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
"""
_COPIES: Final = "SELECT start, end, bytes, copyKind IN (1, 2) FROM CUPTI_ACTIVITY_KIND_MEMCPY"
_ALLOCATOR: Final = """
SELECT coalesce(sum(r.end - r.start), 0) FROM CUPTI_ACTIVITY_KIND_RUNTIME r
JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE 'cudaMalloc%' OR s.value LIKE 'cudaFree%'
"""
_OFFLOAD_BYTES: Final = 1 << 20
_WALL_FRAC: Final = 0.10


def raw_shares(path: Path) -> dict[str, float]:
    """The raw share of each wall in an export; nothing where it has no kernels."""
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
            return dict.fromkeys(("communication", "host_overhead", "memory", "compute"), 0.0)
        kernels = connection.execute(_KERNELS).fetchall()
        copies = connection.execute(_COPIES).fetchall() if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables else []
        allocator_ns = (
            connection.execute(_ALLOCATOR).fetchone()[0] if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables else 0
        )
    first_ns, last_ns = min(row[0] for row in kernels), max(row[1] for row in kernels)
    moved_ns = sum(end - start for start, end, size, host in copies if host and size >= _OFFLOAD_BYTES)
    busy_ns = _union_ns([(row[0], row[1]) for row in (*kernels, *copies)])
    sums = {
        "communication": sum(end - start for start, end, communicates in kernels if communicates),
        "host_overhead": max(0, last_ns - first_ns - busy_ns),
        "memory": allocator_ns + moved_ns,
        "compute": sum(end - start for start, end, communicates in kernels if not communicates),
    }
    return {wall: ns / (last_ns - first_ns) for wall, ns in sums.items()}


def largest(shares: Mapping[str, float]) -> str:
    """The wall with the largest share."""
    return max(shares, key=lambda wall: shares[wall])


def without_compute(shares: Mapping[str, float]) -> str | None:
    """The same without compute, and None where nothing reaches a tenth."""
    first = largest({wall: share for wall, share in shares.items() if wall != "compute"})
    return first if shares[first] >= _WALL_FRAC else None


def _union_ns(times: list[tuple[int, int]]) -> int:
    """How long anything of it runs."""
    total_ns, until_ns = 0, 0
    for start_ns, end_ns in sorted(times):
        total_ns += max(0, end_ns - max(start_ns, until_ns))
        until_ns = max(until_ns, end_ns)
    return total_ns
