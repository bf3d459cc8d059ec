"""The GPU of one rank: kernels by name and grid, those no rule names, SMs, tensor cores, memory."""

from collections.abc import Iterator

from reports.content.analysis.times import Scale, figures_of, figures_table, scale_of, times_of, times_table
from reports.content.blocks import Block, Code, Column, Hue, Part, Quantity, Row, Sentence, Table, Term, words
from reports.content.names import grid_words, kernel_name
from traces.missing import OrMissing, known
from traces.sections.rank import LaunchUse, Rank, UnknownKernel
from traces.sections.tables import Kernel
from traces.spelling import counted, duration, percent


def kernels(rank: Rank) -> Part:
    return Part("Kernels", tuple(_kernel_blocks(rank)), "kernels")


def _kernel_blocks(rank: Rank) -> Iterator[Block]:
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


def sms(rank: Rank) -> Part:
    return Part("Use of the SMs", tuple(_sm_blocks(rank)), "sms")


def _sm_blocks(rank: Rank) -> Iterator[Block]:
    sm, scale = rank.sm, scale_of(rank)
    figures = [
        *figures_of(sm, "limiter_ns", "capability_at_least", "by_class", "stretch", "measured"),
        *figures_of(rank.tensor_cores, "tf32", "fp32_to_tf32_frac", "half", "peaks_known"),
    ]
    if (seen := known(sm.measured)) is not None:
        figures += figures_of(seen)
    yield figures_table("Figures; occupancy is theoretical", figures, scale)
    if limits := known(sm.limiter_ns):
        yield times_table("What limits occupancy, kernel work", scale, times_of(limits, Hue.COMPUTE))
    if sm.by_class:
        yield _by_class(rank, scale)


def _by_class(rank: Rank, scale: Scale) -> Table:
    heads = ("", "occupancy", "filled", "under-filled", "persistent")
    columns = tuple(Column(head, number=place > 0) for place, head in enumerate(heads))
    rows = tuple(_class_row(key, use, scale) for key, use in rank.sm.by_class.items())
    return Table(f"By class; the last two in {scale.unit} of kernel work", columns, rows)


def _class_row(key: str, use: LaunchUse, scale: Scale) -> Row:
    shares = [known(use.occupancy_frac), known(use.fill_frac)]
    times = [known(use.under_filled_ns), known(use.persistent_ns)]
    cells = [
        *("unknown" if one is None else percent(one) for one in shares),
        *("unknown" if one is None else scale.ms(one) for one in times),
    ]
    return Row((words(Term(key)), *(Quantity(cell) for cell in cells)))


def memory(rank: Rank) -> Part:
    return Part("Memory", tuple(_memory_blocks(rank)), "memory")


def _memory_blocks(rank: Rank) -> Iterator[Block]:
    found, scale = rank.memory, scale_of(rank)
    figures = figures_of(found, "recompute_modules", "allocator_scope")
    yield figures_table(f"Figures; the allocator over {found.allocator_scope}", figures, scale)
    if modules := known(found.recompute_modules):
        yield times_table("Recompute by what runs again", scale, times_of(modules, Hue.MEMORY))
