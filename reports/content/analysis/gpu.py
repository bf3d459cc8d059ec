"""The GPU of one rank: kernels by name and grid, those no rule names, SMs, tensor cores, memory."""

from collections.abc import Iterator

from msgspec import UnsetType

from reports.content.analysis.addresses import gpu_blocks
from reports.content.analysis.memory_snapshot import memory_drawing
from reports.content.analysis.times import Scale, figures_of, figures_table, scale_of, times_of, times_table
from reports.content.blocks import (
    Block,
    Entry,
    Hue,
    Part,
    Quantity,
    Sentence,
    Term,
    table,
    words,
)
from reports.content.names import grid_words, kernel_code, told
from traces.missing import known
from traces.sections.rank import LaunchUse, Rank
from traces.sections.tables import Kernel, UnknownKernel
from traces.spelling import counted, duration, percent


def kernels(rank: Rank) -> Part:
    return Part("Kernels", tuple(_kernel_blocks(rank)), "kernels")


def _kernel_blocks(rank: Rank) -> Iterator[Block]:
    scale, found = scale_of(rank), rank.kernel_table
    heads = ("kernel", "count", scale.unit, "share")
    rows = (_kernel(one, scale) for one in found.rows)
    title, left_out = "Kernels with the most work", found.left_out.rows
    yield table(title, (*heads, "grid", "class"), rows, range(1, 4), left_out=left_out)
    if rank.unknown_kernels:
        rows = (_unknown(one, scale) for one in rank.unknown_kernels)
        yield table(
            "Kernels of unknown purpose: no rule names them", (*heads, "mean", "grid"), rows, range(1, 5)
        )
    yield from gpu_blocks(rank)
    launches = ("short_kernel_frac", "graph_share_frac", "kernels_per_launch")
    yield figures_table("Launches", ((name, getattr(rank.detected, name)) for name in launches))
    if rank.kernels_without_launch:
        yield Sentence(words(f"{counted(rank.kernels_without_launch, 'kernel')} without a recorded launch."))


def _kernel(one: Kernel, scale: Scale) -> tuple[Entry, ...]:
    share = one.work_ns / scale.rank.budget_ns.window
    hue = Hue.COMMUNICATION if one.key.startswith("comm.") else Hue.COMPUTE
    figures = (f"{one.count:,}", scale.ms(one.work_ns), Quantity(percent(share), share, hue))
    return kernel_code(one.name), *figures, grid_words(one.grid), Term(one.key)


def _unknown(one: UnknownKernel, scale: Scale) -> tuple[Entry, ...]:
    figures = (f"{one.count:,}", scale.ms(one.busy_ns), Quantity(percent(one.frac), one.frac))
    return kernel_code(one.name), *figures, duration(one.mean_ns), grid_words(one.grid)


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
        heads = ("", "occupancy", "filled", "under-filled", "persistent")
        rows = (_class(key, use, scale) for key, use in sm.by_class.items())
        yield table(f"By class; the last two in {scale.unit} of kernel work", heads, rows)


def _class(key: str, use: LaunchUse, scale: Scale) -> tuple[Entry, ...]:
    shares = (told(one, percent) for one in (use.occupancy_frac, use.fill_frac))
    return Term(key), *shares, *(told(one, scale.ms) for one in (use.under_filled_ns, use.persistent_ns))


def memory(rank: Rank) -> Part:
    found, scale = rank.memory, scale_of(rank)
    figures = figures_of(found, "recompute_modules", "allocator_scope", "use")
    blocks: list[Block] = [
        figures_table(f"Figures; the allocator over {found.allocator_scope}", figures, scale)
    ]
    if modules := known(found.recompute_modules):
        blocks.append(times_table("Recompute by what runs again", scale, times_of(modules, Hue.MEMORY)))
    if not isinstance(found.use, UnsetType) and (use := known(found.use)):
        blocks.append(memory_drawing(use.used_bytes, "the recording, from its start to its end"))
    return Part("Memory", tuple(blocks), "memory")
