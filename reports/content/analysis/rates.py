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
    if measured := rank.rates:
        by_configuration = _by_configuration(throughput) if throughput else ()
        yield titled("rates", (*_blocks(measured, scale_of(rank)), *by_configuration))


def _by_configuration(speed: Throughput) -> Blocks:
    """Grouped GEMMs, and MFU beside HFU: recomputed work is a part of that, work without shapes is
    not.
    """
    if grouped := grouped_words(speed):
        yield statement(grouped)
    if of_peak := mfu_words(speed):
        yield statement(f"MFU: {of_peak}, by {speed.source}; HFU counts recomputed work as well.")


def _blocks(measured: Rates, scale: Scale) -> Blocks:
    if isinstance(measured.matrix, MatrixRates):
        yield from _matrix(measured.matrix, known(measured.memory_gb_per_s), scale)
    elif isinstance(measured.matrix, Missing):
        yield statement(
            f"TFLOP/s are unknown: {measured.matrix.reason}. To learn them: {measured.matrix.cure}."
        )
    rows = list[Cells]()
    for copy in measured.copies or ():
        amounts = f"{copy.count:,}", sized(copy.size_bytes), scale.ms(copy.work_ns)
        rows.append((Term(copy.kind), *amounts, rounded(copy.gb_per_s)))
    if rows:
        yield shaped("copies", rows, unit=scale.unit)
    rows = []
    for row in measured.collective_rates or ():
        counts = f"{row.rank_count:,}", f"{row.count:,}", sized(row.size_bytes)
        speeds = (
            row.algorithm_gb_per_s_at_least,
            row.bus_gb_per_s_at_least,
            row.fastest_bus_gb_per_s,
        )
        rows.append((Term(row.collective), *counts, *map(rounded, speeds), _share(row.link_frac)))
    if rows:
        yield shaped("collectives", rows)


def _matrix(matrix: MatrixRates, memory: float | None, scale: Scale) -> Blocks:
    rows = ((Term(class_speed.key), *_speed(class_speed, scale)) for class_speed in matrix.classes)
    yield shaped("matrix_classes", rows, unit=scale.unit)
    yield from _roofline(matrix, memory)
    operators = matrix.operators[:_ROWS]
    listed = (
        (Code(f"{speed.operator} {speed.dtype}"), *_speed(speed, scale)) for speed in operators
    )
    left_out = len(matrix.operators) - len(operators)
    yield shaped("matrix_operators", listed, left_out, unit=scale.unit)
    counted = percent(matrix.counted_frac)
    hfu = optional("at least {}", matrix.hfu_at_least_frac, percent) or "unknown"
    yield statement(
        f"HFU: {hfu} of the dense peak; shapes are known of {counted} of the matrix work."
    )


def _speed(speed: Speed, scale: Scale) -> Cells:
    return (
        f"{speed.operator_count:,}",
        scale.ms(speed.work_ns),
        rounded(speed.tflops_per_s),
        _share(speed.peak_frac),
        rounded(speed.flop_per_byte),
        _share(speed.roof_frac),
        told(speed.roof_limit),
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


def _roofline(matrix: MatrixRates, memory: float | None) -> Blocks:
    """Where each class stands under its roof, and what would move it; nothing where a roof is not
    known.
    """
    placed = [speed for speed in matrix.classes if speed.peak_frac and speed.roof_limit]
    if memory is None or not placed:
        return
    lines = []
    for each_class in placed:
        ridge = _ridge(_peak(each_class), memory)
        axis = ["-"] * _WIDTH
        axis[_column(ridge)] = "^"
        axis[_column(each_class.flop_per_byte)] = "#"
        lines.append(f"{each_class.key:<14} |{''.join(axis)}|")
    lines.append("FLOP per byte in powers of ten, from one to ten thousand. # the class, at most;")
    lines.append("^ the ridge: left of it the limit is memory, right of it the peak.")
    yield Drawing(tuple(lines), _plane(placed, memory))
    for each_class in placed:
        limit: RoofLimit | None = known(each_class.roof_limit)
        if limit is not None:
            yield Sentence(words(Term(each_class.key), f": {what_moves(limit)}"))


def _plane(classes: Sequence[ClassSpeed], memory: float) -> Plane:
    """Both axes by powers of ten: a roof rises with the speed of memory up to the peak of a
    precision.
    """
    peaks = sorted({*map(_peak, classes)})
    top = log10(peaks[-1])

    def at(flop_per_byte: float, tflops: float) -> tuple[float, float]:
        return _part(flop_per_byte, *_DECADES), _part(tflops, top - _POWERS, top + 0.1)

    low, high = (10.0**power for power in _DECADES)
    start = at(low, low * memory / 1e3)
    roofs = tuple((start, at(_ridge(peak, memory), peak), at(high, peak)) for peak in peaks)
    dots = []
    for speed in classes:
        name = f"{speed.key}: {rounded(speed.tflops_per_s)} TFLOP/s"
        dots.append(Dot(at(speed.flop_per_byte, speed.tflops_per_s), name))
    across = "FLOP per byte, from one to ten thousand"
    up = f"TFLOP/s, up to {rounded(peaks[-1])}, by powers of ten"
    return Plane(roofs, across, up, tuple(dots))


def _peak(speed: ClassSpeed) -> float:
    return speed.tflops_per_s / (speed.peak_frac or 1)


def _ridge(peak: float, memory: float) -> float:
    """FLOP per byte where both roofs meet, of TFLOP/s and GB/s."""
    return peak * 1e3 / memory


def _part(value: float, low: float, high: float) -> float:
    """Where a value lies between two powers of ten, from 0 to 1."""
    return (min(max(log10(max(value, 1e-9)), low), high) - low) / (high - low)


def _column(flop_per_byte: float) -> int:
    return round(_part(flop_per_byte, *_DECADES) * (_WIDTH - 1))
