"""Costs as tables of markdown, with the date and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from bench.speed.cost import Cost, Failed


def machine() -> str:
    """What it ran on, and when."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{date.today().isoformat()}, {_processor()}, {os.cpu_count()} cores, {size:.0f} GiB, "
        f"Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def table(title: str, costs: Mapping[str, Cost | Failed], against: str, per: int = 0) -> str:
    """One table. Ratios are of CPU time to that of the row whose name has `against` in it; `per` kernels."""
    base = next((one for name, one in costs.items() if against in name and isinstance(one, Cost)), None)
    heads = ["", "CPU s", "wall s", "peak MB", f"CPU, × {against}"] + (["µs a kernel"] if per else [])
    lines = [f"### {title}", "", _row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    for name, one in costs.items():
        if isinstance(one, Failed):
            lines.append(_row([name, one.reason, *[""] * (len(heads) - 2)]))
            continue
        ratio = f"{one.cpu_s / base.cpu_s:.2f}" if base else ""
        cells = [name, f"{one.cpu_s:.2f}", f"{one.wall_s:.2f}", f"{one.peak_bytes / 1e6:.0f}", ratio]
        lines.append(_row(cells + ([f"{one.cpu_s / per * 1e6:.2f}"] if per else [])))
    return "\n".join([*lines, ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
