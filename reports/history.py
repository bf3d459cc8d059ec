"""Results of the history as a table in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.layout import titled
from reports.words import printable, wall_words


@dataclass(frozen=True, slots=True)
class Line:
    """One result as it is listed. `origin`: machine and path, where they were kept."""

    id: int
    added_at: str
    name: str
    tag: str
    gpu: str | None
    step_ns: int | None
    wall: str | None
    origin: str | None


def render_list(lines: Sequence[Line], baselines: Mapping[str, int]) -> str:
    """The table, oldest first, and which results are baselines."""
    if not lines:
        return "The history is empty. Add a result: moe-diag history add RESULT.json --tag TEXT\n"
    said = [_row("id", "added", "name", "tag", "GPU", "step ms", "wall")]
    for line in lines:
        step = "not told" if line.step_ns is None else f"{line.step_ns / 1e6:,.3f}"
        gpu = (line.gpu or "not told").removeprefix("NVIDIA ")[:10]
        wall = "none" if line.wall is None else wall_words(line.wall)
        said.append(_row(str(line.id), line.added_at[:10], line.name, line.tag, gpu, step, wall))
        said += [f"     {printable(line.origin, 75)}"] if line.origin else []
    for name, number in sorted(baselines.items()):
        said += titled("Baseline", f"{name} is {number}")
    return "\n".join(said) + "\n"


def _row(number: str, added: str, name: str, tag: str, gpu: str, step: str, wall: str) -> str:
    told = f"{printable(name, 15):<15} {printable(tag, 10):<10} {printable(gpu, 10):<10}"
    return f"{number:>4} {added:<10} {told} {step:>11} {wall}".rstrip()
