"""One metric over the results of a history: what it is, its changes in words, its page with a chart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from heuristics.comparison.difference.change_points import ChangePoint
from reports.content.blocks import (
    Block,
    Code,
    Command,
    Drawing,
    Headline,
    Page,
    Sentence,
    Tone,
    items,
    table,
    words,
)
from reports.content.names import name_of
from traces.spelling import counted, gpu_model, printable, rounded, signed

WIDTH: Final = 76
_HEIGHT: Final = 12
_APART: Final = 4


def chart_lines(
    numbers: Sequence[int], values: Sequence[float | None], changed: Sequence[int]
) -> Iterator[str]:
    """Values as `o`, a bar of `:` before each place of `changed`; `numbers` of results below."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    labels = {
        row: rounded(low + (high - low) * row / (_HEIGHT - 1)) for row in (0, _HEIGHT // 2, _HEIGHT - 1)
    }
    margin = max(map(len, labels.values()))
    room = WIDTH - margin - 3
    columns = _columns(len(values), room)
    rows = [[" "] * (columns[-1] + 1) for _ in range(_HEIGHT)]
    for place in changed:
        for row in rows:
            row[max(columns[place] - 1, 0)] = ":"
    for value, column in zip(values, columns, strict=True):
        if value is not None:
            height = round((value - low) / (high - low) * (_HEIGHT - 1)) if high > low else 0
            rows[height][column] = "o"
    for height in reversed(range(_HEIGHT) if high > low else range(1)):
        yield f"{labels.get(height, ''):>{margin}} | {''.join(rows[height])}".rstrip()
    yield f"{'':>{margin}} +{'-' * (columns[-1] + 2)}"
    yield f"{'':>{margin}}   {_under(numbers, columns, room)}"


def _columns(count: int, width: int) -> list[int]:
    """Where each value stands: up to four columns apart while there is room, at most `width`."""
    between = max(1, count - 1)
    if apart := min(_APART, (width - 2) // between):
        return [1 + place * apart for place in range(count)]
    return [1 + place * (width - 2) // between for place in range(count)]


def _under(numbers: Sequence[int], columns: Sequence[int], room: int) -> str:
    """Numbers of results below the axis, as many as do not touch."""
    line = ""
    for number, column in zip(numbers, columns, strict=True):
        if column >= len(line) + (2 if line else 0) and column + len(str(number)) <= room:
            line = f"{line:<{column}}{number}"
    return line


_TAG: Final = 24
_CHANGES: Final = 8
FEWEST: Final = 8
"""Results without which no change can be shown."""


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
    ("_bytes", Unit("GB", 1e-9)),
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
    if metric.startswith("ledger."):
        return Unit("ms per step", 1e-6)
    for end, unit in _UNITS:
        if metric.endswith(end) or metric.partition(".")[0].endswith(end):
            return unit
    return Unit("", 1.0)


def shown(value: float, unit: Unit) -> str:
    return f"{rounded(value * unit.factor)} {unit.word}".rstrip()


def step_words(change: ChangePoint, unit: Unit) -> str:
    """The size of a change: in % of the mean before it, a share's in points."""
    difference = change.after_mean - change.before_mean
    if unit.word == "%":
        return f"{signed(rounded(difference * unit.factor))} points"
    if not change.before_mean:
        return "from zero"
    return f"{signed(rounded(difference / change.before_mean * 100))} %"


def group_words(alike: Mapping[str, object]) -> str:
    gpu = printable(str(alike.get("gpu") or "GPU not recorded"), 40)
    return ", ".join(
        [gpu, *(f"{_ALIKE.get(key, key)}: {value}" for key, value in alike.items() if key != "gpu")]
    )


def left_out_words(left_out: Sequence[LeftOut]) -> list[str]:
    return [
        f"{counted(one.count, 'result')} with another "
        f"{', '.join(_ALIKE.get(key, key) for key in one.differ)}: --like {one.newest}"
        for one in left_out
    ]


def trend_page(trend: Trend) -> Page:
    unit = unit_of(trend.metric)
    title = words(Code(trend.metric), f" in {unit.word}" if unit.word else "")
    return Page(title, (group_words(trend.alike),), tuple(_blocks(trend, unit)))


def _blocks(trend: Trend, unit: Unit) -> Iterator[Block]:
    values = [None if one.value is None else one.value * unit.factor for one in trend.points]
    known = [one for one in trend.points if one.value is not None]
    yield _headline(trend, unit, len(known))
    if known and len(known) < FEWEST:
        seen = (f"{shown(one.value, unit)} in {one.id}" for one in known if one.value is not None)
        yield Sentence((", ".join(seen),), "Results")
    elif known:
        changed = [change.index for change in trend.changes]
        yield Drawing(tuple(chart_lines([one.id for one in trend.points], values, changed)))
    earlier = len(trend.changes) - _CHANGES
    said = [_change(trend, change, unit) for change in trend.changes[-_CHANGES:]]
    yield from items("Changes", (*said, f"and {earlier} before them" if earlier > 0 else ""))
    if known and known[-1].value is not None:
        yield Sentence((f"{shown(known[-1].value, unit)} in {_named(known[-1])}",), "Newest")
    if gaps := [str(one.id) for one in trend.points if one.value is None]:
        said_by = f"{len(gaps)} of {len(trend.points)} results do not have it: {', '.join(gaps)}"
        yield Sentence((said_by,), "Gaps")
    yield from (Sentence((said,), "Left out") for said in left_out_words(trend.left_out))


def _headline(trend: Trend, unit: Unit, count: int) -> Headline:
    if trend.changes:
        return Headline("CHANGED", (_change(trend, trend.changes[-1], unit),), Tone.NOTICE)
    results = counted(count, "result")
    if count < FEWEST:
        return Headline("TOO FEW RESULTS", (f"{results}; a change beyond chance takes {FEWEST}",), Tone.PLAIN)
    return Headline("NO CHANGE", (f"in {results} beyond what chance would do",), Tone.PLAIN)


def _change(trend: Trend, change: ChangePoint, unit: Unit) -> str:
    means = f"mean {shown(change.before_mean, unit)} -> {shown(change.after_mean, unit)}"
    return f"{step_words(change, unit)} from {_named(trend.points[change.index])} on: {means}"


def _named(point: Point) -> str:
    tag = f", {printable(point.tag, _TAG)}" if point.tag else ""
    return f"result {point.id} ({point.added_at[:10]}{tag})"


def metrics_page(names: Sequence[str]) -> Page:
    if not names:
        return _empty()
    rows = ((Code(name), unit_of(name).word) for name in names)
    return Page(words("Metrics of the history"), (), (table("", ("metric", "unit"), rows, ()),))


@dataclass(frozen=True, slots=True)
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
        return _empty()
    heads = ["id", "added", "name", "tag", "GPU", "step ms", "bottleneck"]
    heads += ["origin"] if any(line.origin for line in lines) else []
    rows = (_listed(line)[: len(heads)] for line in lines)
    blocks: list[Block] = [table("", heads, rows, (0, 5))]
    if baselines:
        named = ", ".join(f"{name} is {number}" for name, number in sorted(baselines.items()))
        blocks.append(Sentence((named,), "Baselines"))
    return Page(words("Results of the history"), (), tuple(blocks))


def _listed(line: Line) -> tuple[str, ...]:
    step = "unknown" if line.step_ns is None else shown(line.step_ns, Unit("", 1e-6))
    gpu = gpu_model(line.gpu or "unknown")
    wall = "none" if line.wall is None else name_of(line.wall)
    return str(line.id), line.added_at[:10], line.name, line.tag, gpu, step, wall, line.origin or ""


def _empty() -> Page:
    add = Command(("Add a result:",), "moe-diag history add RESULT.json")
    return Page(words("The history is empty"), (), (add,))
