"""The results of a history as a table."""

from collections.abc import Mapping, Sequence

from reports.content.blocks import Block, Command, table, words
from reports.content.names import name_of, optional, statement, told, told_ms
from reports.content.page import Page
from reports.rows import each
from traces.frozen import frozen
from traces.spelling import gpu_model


@frozen
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
        add = Command("Add a result:", "moe-diag history add RESULT.json")
        return Page(words("The history is empty"), (), (add,))
    heads, rows = ["id", "added", "name", "tag", "GPU", "step ms", "bottleneck"], []
    if any(each(lines, "origin")):
        heads.append("origin")
    for line in lines:
        step, gpu = told_ms(line.step_ns), told(line.gpu, gpu_model)
        wall = optional("{}", line.wall, name_of) or "none"
        start = f"{line.id}", line.added_at[:10], line.name, line.tag
        rows.append((*start, gpu, step, wall, line.origin or "")[: len(heads)])
    blocks: list[Block] = [table("", heads, rows, (0, 5))]
    if baselines:
        text = ", ".join(f"{name} is {number}" for name, number in sorted(baselines.items()))
        blocks.append(statement(text, "Baselines"))
    return Page(words("Results of the history"), (), tuple(blocks))
