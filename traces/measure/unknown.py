"""Kernels no rule names: they count as compute, and a report must say so."""

from dataclasses import dataclass

import numpy as np

from traces.columns import NULL
from traces.intervals import Spans, covered_ns, intersect, union
from traces.launches import grid_numbers
from traces.names.kernels import classify_kernel
from traces.timeline import RankTimeline, Source

NO_NAME = "(no name recorded)"


@dataclass(frozen=True, slots=True)
class UnknownKernel:
    """A kernel name no rule matches, in the windows.

    `busy_ns` is when such a kernel ran, wall time, and `frac` its part of the windows. `count` kernels had
    time there; `mean_ns` is their mean whole duration. `grid` holds the most of them, None where it was not
    recorded.
    """

    name: str
    frac: float
    busy_ns: int
    count: int
    mean_ns: int
    grid: tuple[int, int, int] | None


def unknown_kernels(rank: RankTimeline, windows: Spans) -> tuple[UnknownKernel, ...]:
    """Kernels in the windows that no rule names, longest first."""
    names, rows = rank.columns.kernel_names, rank.activities
    unnamed = {-1: NO_NAME} | {
        code: name for code, name in enumerate(names) if classify_kernel(name).rule is None
    }
    inside = (rows.source == Source.KERNEL) & (covered_ns(rows.start_ns, rows.end_ns, windows) > 0)
    found = []
    for code, name in unnamed.items():
        mine = rows.take(inside & (rows.name == code))
        if not len(mine):
            continue
        busy_ns = intersect(union(mine.start_ns, mine.end_ns), windows).total_ns
        shapes, shape = rank.columns.kernels.shapes, rank.columns.kernels.shape[mine.row]
        grids = grid_numbers(shapes)
        often: list[int] = shapes.grid[grids == np.bincount(grids[shape]).argmax()][0].tolist()
        found.append(
            UnknownKernel(
                name=name,
                frac=busy_ns / windows.total_ns,
                busy_ns=busy_ns,
                count=len(mine),
                mean_ns=int((mine.end_ns - mine.start_ns).sum()) // len(mine),
                grid=None if NULL in often else (often[0], often[1], often[2]),
            )
        )
    return tuple(sorted(found, key=lambda kernel: (-kernel.frac, kernel.name)))
