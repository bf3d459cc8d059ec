"""The trend of one metric as text: a chart in 80 columns of ASCII, and its changes in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.comparison.difference.change_points import ChangePoint
from reports.layout import WIDTH, titled
from reports.words import printable

_HEIGHT: Final = 12
_TAG: Final = 24
_CHANGES: Final = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One result of a trend; `value` is None where it does not tell the metric."""

    id: int
    added_at: str
    tag: str
    value: float | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Results that are no part of a trend: how many, in what they differ, the number of the newest."""

    count: int
    differ: tuple[str, ...]
    newest: int


@dataclass(frozen=True, slots=True)
class Trend:
    """One metric over results that are alike in what `alike` says. `changes` index `points`, one at least."""

    metric: str
    alike: Mapping[str, object]
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """How a metric is shown: its values times `factor`, in `word`."""

    word: str
    factor: float


_UNITS: Final = (
    ("_ns", Unit("ms", 1e-6)),
    ("_frac", Unit("%", 100.0)),
    ("_bytes", Unit("GiB", 2.0**-30)),
    ("tokens_per_s_per_gpu", Unit("tokens/s per GPU", 1.0)),
    ("tflops_per_gpu", Unit("TFLOP/s per GPU", 1.0)),
)
"""By the end of the name, or of its first part."""

_ALIKE: Final = {
    "gpu": "GPU",
    "ranks": "ranks recorded",
    "world_size": "GPUs in the run",
    "num_layers": "layers",
    "hidden_size": "hidden size",
    "ffn_hidden_size": "FFN size",
    "num_moe_experts": "experts",
    "moe_ffn_hidden_size": "expert FFN size",
    "moe_router_topk": "experts per token",
    "seq_length": "sequence length",
    "train.micro_batch_size": "micro batch",
    "train.global_batch_size": "global batch",
}


def unit_of(metric: str) -> Unit:
    """The unit a metric is shown in, by its name; those of the ledger are times per step."""
    if metric.startswith("ledger."):
        return Unit("ms a step", 1e-6)
    for end, unit in _UNITS:
        if metric.endswith(end) or metric.partition(".")[0].endswith(end):
            return unit
    return Unit("", 1.0)


def shown(value: float, unit: Unit) -> str:
    """A value in its unit, with four digits: `48.02`."""
    scaled = value * unit.factor
    whole = math.floor(math.log10(abs(scaled))) if scaled else 0
    return f"{scaled:,.{min(6, max(0, 3 - whole))}f}"


def step_words(change: ChangePoint, unit: Unit) -> str:
    """The size of a change: in % of the mean before it, a share's in points."""
    difference = change.after_mean - change.before_mean
    if unit.word == "%":
        return f"{difference * unit.factor:+.1f} points"
    return f"{difference / change.before_mean * 100:+.1f} %" if change.before_mean else "from zero"


def group_words(alike: Mapping[str, object]) -> str:
    """What all results of a trend have in common."""
    gpu = printable(str(alike.get("gpu") or "GPU not told"), 40)
    return ", ".join(
        [gpu, *(f"{_ALIKE.get(key, key)} {value}" for key, value in alike.items() if key != "gpu")]
    )


def left_out_words(left_out: Sequence[LeftOut]) -> list[str]:
    """How many results are not shown, why, and how to see them."""
    return [
        f"{one.count} {'result' if one.count == 1 else 'results'} with another "
        f"{', '.join(_ALIKE.get(key, key) for key in one.differ)}: --like {one.newest}"
        for one in left_out
    ]


def render_trend(trend: Trend) -> str:
    """The trend as plain text."""
    unit = unit_of(trend.metric)
    told = [point for point in trend.points if point.value is not None]
    heading = trend.metric + (f" in {unit.word}" if unit.word else "")
    lines = [*titled("Trend", heading), *titled("Of", group_words(trend.alike))]
    lines += ["", *(_chart(trend, unit) if told else []), ""]
    lines += _changes(trend, unit, len(told))
    if gaps := [str(point.id) for point in trend.points if point.value is None]:
        lines += titled("Gaps", f"not told by {len(gaps)} of {len(trend.points)}: {', '.join(gaps)}")
    if told and told[-1].value is not None:
        lines += titled("Newest", f"{shown(told[-1].value, unit)} {unit.word} in {_named(told[-1])}")
    for words in left_out_words(trend.left_out):
        lines += titled("Left out", words)
    return "\n".join(lines) + "\n"


def render_metrics(names: Sequence[str]) -> str:
    """The metrics that can be followed, one a line with its unit."""
    lines = [f"{name}  ({unit_of(name).word})" if unit_of(name).word else name for name in names]
    return "\n".join(lines or ["The history is empty. Add a result: moe-diag history add RESULT.json"]) + "\n"


def _named(point: Point) -> str:
    tag = f", {printable(point.tag, _TAG)}" if point.tag else ""
    return f"result {point.id} ({point.added_at[:10]}{tag})"


def _changes(trend: Trend, unit: Unit, told: int) -> list[str]:
    if not trend.changes:
        few = "; fewer than 8 cannot show one" if told < 8 else ""
        return titled("Changes", f"none in {told} results beyond what chance would do{few}")
    lines: list[str] = []
    for change in trend.changes[-_CHANGES:]:
        sizes = f"{shown(change.before_mean, unit)} -> {shown(change.after_mean, unit)} {unit.word}".rstrip()
        said = f"{step_words(change, unit)} from {_named(trend.points[change.index])} on: {sizes} in the mean"
        lines += titled("" if lines else "Changes", said)
    if len(trend.changes) > _CHANGES:
        lines += titled("", f"and {len(trend.changes) - _CHANGES} before them")
    return lines


def _chart(trend: Trend, unit: Unit) -> Iterator[str]:
    """Points as `o`, a bar of `:` before each change; numbers of results below."""
    values = [point.value for point in trend.points if point.value is not None]
    low, high = min(values), max(values)
    labels = [shown(low + (high - low) * row / (_HEIGHT - 1), unit) for row in range(_HEIGHT)]
    margin = max(map(len, labels)) + 1
    columns = _columns(len(trend.points), WIDTH - margin - 3)
    width = columns[-1] + 1
    rows = [[" "] * width for _ in range(_HEIGHT)]
    for change in trend.changes:
        for row in rows:
            row[max(columns[change.index] - 1, 0)] = ":"
    for point, column in zip(trend.points, columns, strict=True):
        if point.value is not None:
            height = round((point.value - low) / (high - low) * (_HEIGHT - 1)) if high > low else 0
            rows[height][column] = "o"
    for height in reversed(range(_HEIGHT)):
        label = labels[height] if height in (0, _HEIGHT - 1, _HEIGHT // 2) else ""
        if high > low or height == 0:
            yield f"{label:>{margin}} | {''.join(rows[height])}".rstrip()
    yield f"{'':>{margin}} +{'-' * (width + 1)}"
    yield f"{'':>{margin}}   {_under(trend.points, columns, WIDTH - margin - 3)}"


def _columns(count: int, width: int) -> list[int]:
    """Where each point stands: every second or third column while there is room, at most `width`."""
    if count == 1:
        return [1]
    apart = min(4, (width - 2) // (count - 1))
    if apart:
        return [1 + place * apart for place in range(count)]
    return [1 + place * (width - 2) // (count - 1) for place in range(count)]


def _under(points: Sequence[Point], columns: Sequence[int], room: int) -> str:
    """Numbers of results below the axis, as many as do not touch."""
    line = ""
    for point, column in zip(points, columns, strict=True):
        if column >= len(line) + (2 if line else 0) and column + len(str(point.id)) <= room:
            line = f"{line:<{column}}{point.id}"
    return line
