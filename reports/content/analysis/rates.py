"""How fast a rank multiplies, copies and communicates, against what its GPU can do."""

from collections.abc import Iterator, Sequence
from math import log10
from typing import Final

from heuristics.guides.roofline import what_moves
from heuristics.result.configured import Throughput
from reports.content.analysis.times import Scale, scale_of
from reports.content.blocks import (
    Blocks,
    Cells,
    Code,
    Drawing,
    Part,
    Quantity,
    Sentence,
    Term,
    words,
)
from reports.content.check_numbers import grouped_words, mfu_words
from reports.content.names import optional, statement, titled, told
from reports.content.plane import Dot, Plane
from reports.content.tables import shaped
from traces.missing import Missing, OrMissing, known
from traces.sections.rank import Rank
from traces.sections.rates import ClassSpeed, MatrixRates, Rates, RoofLimit, Speed
from traces.spelling import percent, rounded, sized

_ROWS: Final = 20
"""Operators that a page lists."""


def rates(rank: Rank, throughput: Throughput | None) -> Iterator[Part]:
    """Not of a result from before rates were measured. `throughput`: by the configuration, for its
    MFU.
    """
    if found := rank.rates:
        by_configuration = _by_configuration(throughput) if throughput else ()
        yield titled("rates", (*_blocks(found, scale_of(rank)), *by_configuration))


def _by_configuration(found: Throughput) -> Blocks:
    """Grouped GEMMs, and MFU beside HFU: recomputed work is a part of that, work without shapes is
    not.
    """
    if said := grouped_words(found):
        yield statement(said)
    if of_peak := mfu_words(found):
        yield statement(f"MFU: {of_peak}, by {found.source}; HFU counts recomputed work as well.")


def _blocks(found: Rates, scale: Scale) -> Blocks:
    if isinstance(found.matrix, MatrixRates):
        yield from _matrix(found.matrix, known(found.memory_gb_per_s), scale)
    elif isinstance(found.matrix, Missing):
        yield statement(
            f"TFLOP/s are unknown: {found.matrix.reason}. To learn them: {found.matrix.cure}."
        )
    rows = list[Cells]()
    for copy in found.copies or ():
        amounts = (f"{copy.count:,}", sized(copy.size_bytes), scale.ms(copy.work_ns))
        rows.append((Term(copy.kind), *amounts, rounded(copy.gb_per_s)))
    if rows:
        yield shaped("copies", rows, unit=scale.unit)
    rows = []
    for one in found.collective_rates or ():
        counts = (f"{one.rank_count:,}", f"{one.count:,}", sized(one.size_bytes))
        speeds = (
            one.algorithm_gb_per_s_at_least,
            one.bus_gb_per_s_at_least,
            one.fastest_bus_gb_per_s,
        )
        rows.append((Term(one.collective), *counts, *map(rounded, speeds), _share(one.link_frac)))
    if rows:
        yield shaped("collectives", rows)


def _matrix(found: MatrixRates, memory: float | None, scale: Scale) -> Blocks:
    rows = ((Term(one.key), *_speed(one, scale)) for one in found.classes)
    yield shaped("matrix_classes", rows, unit=scale.unit)
    yield from _roofline(found, memory)
    operators = found.operators[:_ROWS]
    listed = ((Code(f"{one.operator} {one.dtype}"), *_speed(one, scale)) for one in operators)
    left_out = len(found.operators) - len(operators)
    yield shaped("matrix_operators", listed, left_out, unit=scale.unit)
    counted = percent(found.counted_frac)
    hfu = optional("at least {}", found.hfu_at_least_frac, percent) or "unknown"
    yield statement(
        f"HFU: {hfu} of the dense peak; shapes are known of {counted} of the matrix work."
    )


def _speed(one: Speed, scale: Scale) -> Cells:
    return (
        f"{one.operator_count:,}",
        scale.ms(one.work_ns),
        rounded(one.tflops_per_s),
        _share(one.peak_frac),
        rounded(one.flop_per_byte),
        _share(one.roof_frac),
        told(one.roof_limit),
    )


def _share(value: OrMissing[float]) -> Quantity:
    share = known(value)
    if share is None:
        return Quantity("unknown")
    return Quantity(percent(share), min(1.0, share))


_WIDTH: Final = 64
_DECADES: Final = (0, 4)
"""Powers of ten of FLOP per byte that the picture spans."""
_POWERS: Final = 3
"""Powers of ten of TFLOP/s below the peak that it spans."""


def _roofline(found: MatrixRates, memory: float | None) -> Blocks:
    """Where each class stands under its roof, and what would move it; nothing where a roof is not
    known.
    """
    placed = [one for one in found.classes if one.peak_frac and one.roof_limit]
    if memory is None or not placed:
        return
    lines = []
    for one in placed:
        ridge = _ridge(_peak(one), memory)
        axis = ["-"] * _WIDTH
        axis[_column(ridge)] = "^"
        axis[_column(one.flop_per_byte)] = "#"
        lines.append(f"{one.key:<14} |{''.join(axis)}|")
    lines.append("FLOP per byte in powers of ten, from one to ten thousand. # the class, at most;")
    lines.append("^ the ridge: left of it the limit is memory, right of it the peak.")
    yield Drawing(tuple(lines), _plane(placed, memory))
    for one in placed:
        limit: RoofLimit | None = known(one.roof_limit)
        if limit is not None:
            yield Sentence(words(Term(one.key), f": {what_moves(limit)}"))


def _plane(placed: Sequence[ClassSpeed], memory: float) -> Plane:
    """Both axes by powers of ten: a roof rises with the speed of memory up to the peak of a
    precision.
    """
    peaks = sorted({*map(_peak, placed)})
    top = log10(peaks[-1])

    def at(flop_per_byte: float, tflops: float) -> tuple[float, float]:
        return _part(flop_per_byte, *_DECADES), _part(tflops, top - _POWERS, top + 0.1)

    low, high = (10.0**power for power in _DECADES)
    start = at(low, low * memory / 1e3)
    roofs = tuple((start, at(_ridge(peak, memory), peak), at(high, peak)) for peak in peaks)
    dots = []
    for one in placed:
        name = f"{one.key}: {rounded(one.tflops_per_s)} TFLOP/s"
        dots.append(Dot(at(one.flop_per_byte, one.tflops_per_s), name))
    across = "FLOP per byte, from one to ten thousand"
    up = f"TFLOP/s, up to {rounded(peaks[-1])}, by powers of ten"
    return Plane(roofs, across, up, tuple(dots))


def _peak(one: ClassSpeed) -> float:
    return one.tflops_per_s / (one.peak_frac or 1)


def _ridge(peak: float, memory: float) -> float:
    """FLOP per byte where both roofs meet, of TFLOP/s and GB/s."""
    return peak * 1e3 / memory


def _part(value: float, low: float, high: float) -> float:
    """Where a value lies between two powers of ten, from 0 to 1."""
    return (min(max(log10(max(value, 1e-9)), low), high) - low) / (high - low)


def _column(flop_per_byte: float) -> int:
    return round(_part(flop_per_byte, *_DECADES) * (_WIDTH - 1))
