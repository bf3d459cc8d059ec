"""What saving memory costs one rank, and how much memory there is."""

from collections.abc import Iterator

from reports.content.analysis.figures import figures_of, figures_table, times_of, times_table
from reports.content.analysis.scale import scale_of
from reports.content.blocks import Block, Hue, Part
from traces.missing import known
from traces.sections.rank import Rank


def memory(rank: Rank) -> Part:
    """Recompute, offload, copies from host memory, the allocator, peak and capacity."""
    return Part("Memory", tuple(_blocks(rank)), "memory")


def _blocks(rank: Rank) -> Iterator[Block]:
    found, scale = rank.memory, scale_of(rank)
    figures = figures_of(found, "recompute_modules", "allocator_scope")
    yield figures_table(f"Figures; the allocator over {found.allocator_scope}", figures, scale)
    if modules := known(found.recompute_modules):
        yield times_table("Recompute by what runs again", scale, times_of(modules, Hue.MEMORY))
