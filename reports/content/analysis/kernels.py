"""Kernels of one rank by name and grid, and those that no rule names."""

from collections.abc import Iterator

from reports.content.analysis.figures import figures_table
from reports.content.analysis.scale import Scale, scale_of
from reports.content.blocks import Block, Code, Column, Hue, Part, Quantity, Row, Sentence, Table, Term, words
from reports.content.names import grid_words, kernel_name
from traces.missing import OrMissing
from traces.sections.rank import Rank, UnknownKernel
from traces.sections.tables import Kernel
from traces.spelling import counted, duration, percent


def kernels(rank: Rank) -> Part:
    """The table, the unknown ones, how they are launched, and what lacks its launch."""
    return Part("Kernels", tuple(_blocks(rank)), "kernels")


def _blocks(rank: Rank) -> Iterator[Block]:
    table, scale = rank.kernel_table, scale_of(rank)
    columns = _columns("kernel", "count", scale.unit, "share", "grid", "class")
    rows = tuple(_row(one, scale) for one in table.rows)
    yield Table("Kernels with the most work", columns, rows, left_out=table.left_out.rows)
    if rank.unknown_kernels:
        columns = _columns("kernel", "count", scale.unit, "share", "mean", "grid")
        unknown = tuple(_unknown(one, scale) for one in rank.unknown_kernels)
        yield Table("Kernels of unknown purpose: no rule names them", columns, unknown)
    yield figures_table("Launches", _launches(rank))
    if rank.kernels_without_launch:
        said = f"{counted(rank.kernels_without_launch, 'kernel')} without a recorded launch."
        yield Sentence(words(said))


def _launches(rank: Rank) -> Iterator[tuple[str, OrMissing[float]]]:
    """How much the host has to launch."""
    yield "short_kernel_frac", rank.detected.short_kernel_frac
    yield "graph_share_frac", rank.detected.graph_share_frac
    yield "kernels_per_launch", rank.detected.kernels_per_launch


def _columns(*heads: str) -> tuple[Column, ...]:
    return tuple(Column(head, number=0 < place < 4 or head == "mean") for place, head in enumerate(heads))


def _row(one: Kernel, scale: Scale) -> Row:
    share = one.work_ns / scale.rank.budget_ns.window
    figures = (
        Quantity(f"{one.count:,}"),
        Quantity(scale.ms(one.work_ns)),
        Quantity(percent(share), share, _hue(one)),
    )
    return Row(
        (words(Code(kernel_name(one.name))), *figures, words(grid_words(one.grid)), words(Term(one.key)))
    )


def _hue(one: Kernel) -> Hue:
    return Hue.COMMUNICATION if one.key.startswith("comm.") else Hue.COMPUTE


def _unknown(one: UnknownKernel, scale: Scale) -> Row:
    figures = (
        Quantity(f"{one.count:,}"),
        Quantity(scale.ms(one.busy_ns)),
        Quantity(percent(one.frac), one.frac),
        Quantity(duration(one.mean_ns)),
    )
    return Row((words(Code(kernel_name(one.name))), *figures, words(grid_words(one.grid))))
