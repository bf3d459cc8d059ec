"""The results of a history as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.content.blocks import Block, Command, Page, Sentence, table, words
from reports.content.names import name_of
from traces.spelling import gpu_model, milliseconds


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


def list_page(lines: Sequence[Line], baselines: Mapping[str, int]) -> Page:
    if not lines:
        return _empty()
    heads = ["id", "added", "name", "tag", "GPU", "step ms", "bottleneck"]
    heads += ["origin"] if any(line.origin for line in lines) else []
    rows = (_listed(line)[: len(heads)] for line in lines)
    blocks: list[Block] = [table("", heads, rows, (0, 5))]
    if baselines:
        named = ", ".join(f"{name} is {number}" for name, number in sorted(baselines.items()))
        blocks.append(Sentence((named,), "Baselines"))
    return Page(words("Results of the history"), (), tuple(blocks))


def _listed(line: Line) -> tuple[str, ...]:
    step = "unknown" if line.step_ns is None else milliseconds(line.step_ns)
    gpu = gpu_model(line.gpu or "unknown")
    wall = "none" if line.wall is None else name_of(line.wall)
    return str(line.id), line.added_at[:10], line.name, line.tag, gpu, step, wall, line.origin or ""


def _empty() -> Page:
    add = Command(("Add a result:",), "moe-diag history add RESULT.json")
    return Page(words("The history is empty"), (), (add,))
