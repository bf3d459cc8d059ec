"""Kernels no rule names: they count as compute, and a report must say so."""

import numpy as np

from traces.columns import NULL
from traces.cures import cure
from traces.intervals import covered_ns, intersect, union
from traces.launches import grid_numbers
from traces.missing import Missing, gap
from traces.names.kernels import classify_kernel
from traces.sections.rank import UnknownKernel
from traces.steps.found import Steps, no_steps
from traces.timeline import RankTimeline, Source

NO_NAME = "(no name recorded)"


def unknown_kernels(rank: RankTimeline, steps: Steps) -> tuple[UnknownKernel, ...]:
    """Kernels in the windows that no rule names, longest first; which of them are findings others say.

    `frac` is the part of the windows in which such a kernel ran. `count` kernels had time there, `mean_ns` is
    their mean whole duration, `grid` that of the most of them.
    """
    names, rows, windows = rank.columns.kernel_names, rank.activities, steps.windows
    untold = no_steps(rank.columns.info.kind)
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
                grid=no_grid(rank) if NULL in often else (often[0], often[1], often[2]),
                per_step_ns=busy_ns // len(steps.used) if steps.used else untold,
                finding=False,
            )
        )
    return tuple(sorted(found, key=lambda kernel: (-kernel.frac, kernel.name)))


def no_grid(rank: RankTimeline) -> Missing:
    """Why kernels have no grid."""
    return gap("the trace has no grid of these", cure("version", rank.columns.info.kind))
