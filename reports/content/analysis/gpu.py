"""The GPU of one rank: kernels by name and grid, those no rule names, SMs, tensor cores, memory."""

from reports.content.analysis.addresses import gpu_blocks
from reports.content.analysis.memory_snapshot import memory_drawing
from reports.content.analysis.times import (
    figures_of,
    figures_table,
    scale_of,
    times_of,
    times_table,
)
from reports.content.blocks import (
    Block,
    Blocks,
    Cells,
    Hue,
    Part,
    Term,
)
from reports.content.names import grid_words, kernel_code, share_of, statement, titled, told
from reports.content.tables import shaped
from traces.sections.rank import Rank
from traces.spelling import counted, duration, percent


def kernel_blocks(rank: Rank) -> Blocks:
    scale, kernel_table = scale_of(rank), rank.kernel_table
    rows = list[Cells]()
    for kernel in kernel_table.rows:
        hue = Hue.COMMUNICATION if kernel.key.startswith("comm.") else Hue.COMPUTE
        code = kernel_code(kernel.name)
        rows.append((code, *scale.work(kernel, hue), grid_words(kernel.grid), Term(kernel.key)))
    yield shaped("kernels", rows, kernel_table.left_out.rows, unit=scale.unit)
    rows = []
    for unknown in rank.unknown_kernels:
        figures = f"{unknown.count:,}", scale.ms(unknown.busy_ns), share_of(unknown.frac)
        mean_and_grid = duration(unknown.mean_ns), grid_words(unknown.grid)
        rows.append((kernel_code(unknown.name), *figures, *mean_and_grid))
    if rows:
        yield shaped("unknown_kernels", rows, unit=scale.unit)
    yield from gpu_blocks(rank)
    launches = ("short_kernel_frac", "graph_share_frac", "kernels_per_launch")
    yield figures_table("Launches", ((name, getattr(rank.detected, name)) for name in launches))
    if rank.kernels_without_launch:
        yield statement(
            f"{counted(rank.kernels_without_launch, 'kernel')} without a recorded launch."
        )


def sm_blocks(rank: Rank) -> Blocks:
    sm, scale = rank.sm, scale_of(rank)
    figures = [
        *figures_of(sm, "limiter_ns", "capability_at_least", "by_class", "stretch", "measured"),
        *figures_of(rank.tensor_cores, "tf32", "fp32_to_tf32_frac", "half", "peaks_known"),
    ]
    if measured := sm.measured:
        figures += figures_of(measured)
    yield figures_table("Figures; occupancy is theoretical", figures, scale)
    if limits := sm.limiter_ns:
        yield times_table(
            "What limits occupancy, kernel work", scale, times_of(limits, Hue.COMPUTE)
        )
    if sm.by_class:
        rows = []
        for key, use in sm.by_class.items():
            shares = told(use.occupancy_frac, percent), told(use.fill_frac, percent)
            times = told(use.under_filled_ns, scale.ms), told(use.persistent_ns, scale.ms)
            rows.append((Term(key), *shares, *times))
        yield shaped("sm_by_class", rows, unit=scale.unit)


def memory(rank: Rank) -> Part:
    used, scale = rank.memory, scale_of(rank)
    figures = figures_of(used, "recompute_modules", "allocator_scope", "use")
    blocks: list[Block] = [
        figures_table(f"Figures; the allocator over {used.allocator_scope}", figures, scale)
    ]
    if modules := used.recompute_modules:
        blocks.append(
            times_table("Recompute by what runs again", scale, times_of(modules, Hue.MEMORY))
        )
    if use := used.use:
        blocks.append(memory_drawing(use.used_bytes, "the recording, from its start to its end"))
    return titled("memory", blocks)
