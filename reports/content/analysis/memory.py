"""What saving memory costs one rank, and how much memory there is."""

from __future__ import annotations

from collections.abc import Iterator

from heuristics.result.rank import Rank
from heuristics.result.told import Told, known
from reports.content.analysis.figures import figures_table, times_of, times_table
from reports.content.analysis.scale import scale_of
from reports.content.blocks import Block, Hue, Part


def memory(rank: Rank) -> Part:
    """Recompute, offload, copies from host memory, the allocator, peak and capacity."""
    return Part("Memory", tuple(_blocks(rank)), "memory")


def _blocks(rank: Rank) -> Iterator[Block]:
    found, scale = rank.memory, scale_of(rank)
    figures: list[tuple[str, Told[float]]] = [
        ("recompute_ns", found.recompute_ns),
        ("offload_exposed_ns", found.offload_exposed_ns),
        ("offload_union_ns", found.offload_union_ns),
        ("offload_copies", found.offload_copies),
        ("offload_bytes", found.offload_bytes),
        ("host_resident_exposed_ns", found.host_resident_exposed_ns),
        ("host_resident_union_ns", found.host_resident_union_ns),
        ("host_resident_copies", found.host_resident_copies),
        ("host_resident_bytes", found.host_resident_bytes),
        ("allocator_ns", found.allocator_ns),
        ("allocator_calls", found.allocator_calls),
        ("allocator_retry_frac", found.allocator_retry_frac),
        ("peak_bytes", found.peak_bytes),
        ("capacity_bytes", found.capacity_bytes),
    ]
    yield figures_table(f"Figures; the allocator over {found.allocator_scope}", figures, scale)
    if modules := known(found.recompute_modules):
        yield times_table("Recompute by what runs again", scale, times_of(modules, Hue.MEMORY))
