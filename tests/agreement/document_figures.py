"""Every figure of a document by what it is, and what a report may work out of figures that it shows.

Those are: lengths of steps, means over them, sums of rows, and shares of what the rows add up to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from reports.content.names import kernel_name
from traces.settings.derive import DEFAULT

Document = dict[str, Any]

_TIMES: Final = {
    unit: Fraction(1, ns) for unit, ns in (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9))
}
_SIZES: Final = {
    unit: Fraction(1, size)
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1), ("GiB", 2**30), ("MiB", 2**20))
}
_RATES: Final = ("TFLOP/s", "tokens/s", "GB/s")
_FLOAT: Final = Fraction(1, 10**12)
"""By how much of itself a quotient may be off that was divided in another order."""
_DIGITS: Final = 3
"""Digits that count in every rounded figure; whole numbers of fewer are counts."""
_TEXT_ROWS: Final = 40
"""Rows of a table of the plain text before it says how many more there are."""
_LONGEST: Final = 12
"""Rows a format may show of a list before it says how many more there are."""
_COLUMNS: Final = ("at_ns", "length_ns", "key", "name", "reason")
"""Of a timeline: thousands of values, with which nearly any number would be found."""
_OF_WINDOW: Final = (
    "budget_ns", "exposed_comm_by_kind_ns", "exposed_copy_by_kind_ns", "compute_by_class_ns", "absent_ns",
    "hidden_comm_ns", "masked_ns", "moe",
)  # fmt: skip
_APART: Final = ("timeline", "steps", "ledger", "sequence")
"""Parts of a rank whose times are sorted out each in its own way."""
_NAMED: Final = ("profiler", "lazy_init", "allocator")
"""Causes of a late launch that a bar shows apart from the others."""
_BUSY: Final = ("compute", "busy", "exposed_comm", "exposed_copy")
_OF_MOE: Final = ("wall_ns", "work_ns", "exposed_ns", "blocking_ns", "host_wait_ns")


def figures_of(document: Document) -> Figures:
    """Every figure of a diagnosis or a comparison."""
    found = Figures()
    _collect(document, "", found)
    for rank in document.get("ranks", ()):
        _of_rank(rank, found)
    _of_walls(document, found)
    _of_run(document.get("run"), found)
    _of_memory(document.get("memory_estimate"), found)
    _of_configuration(document, found)
    _of_comparison(document, found)
    return found.close()


@dataclass(slots=True)
class Figures:
    """What a document holds, sorted out by what it is: ns, shares, bytes, whole numbers, other numbers."""

    times: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    counts: set[int] = field(default_factory=set)
    others: list[float] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)

    def has(self, number: str, unit: str) -> bool:
        """Whether one of the figures reads so, rounded as this one is."""
        bare = number.replace(",", "").lstrip("+-")
        if unit == "" and bare.isdigit() and (int(bare) in self.counts or len(bare) < _DIGITS):
            return int(bare) in self.counts
        mantissa, _, exponent = bare.partition("e")
        last_digit = Fraction(10) ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        if bare.isdigit() and len(bare) > _DIGITS and not int(bare[_DIGITS:]):
            last_digit = Fraction(10) ** (len(bare) - _DIGITS)
        value = Fraction(bare)
        return any(
            _near(values, factor, value, last_digit, slack) for values, factor, slack in self._readings(unit)
        )

    def _readings(self, unit: str) -> Iterator[tuple[list[float], Fraction, Fraction]]:
        """Values that may stand before a unit, what one of them is in it, and what floats may be off by."""
        for one, factor in _TIMES.items():
            if unit in ("", one):
                yield self.times, factor, Fraction(0)
        for one, factor in _SIZES.items():
            if unit in ("", one):
                yield self.sizes, factor, Fraction(0)
        if unit in ("", "%"):
            yield self.shares, Fraction(100), _FLOAT
        if unit == "GB/s":
            yield self.sizes, Fraction(1, 10**9), _FLOAT
        if unit.endswith(_RATES):
            yield self.others, Fraction(1), _FLOAT
        if unit == "":
            yield self.shares, Fraction(1), _FLOAT
            yield self.others, Fraction(1), _FLOAT

    def close(self) -> Figures:
        """Sorted, for looking up; every whole number also counts."""
        for values in (self.times, self.shares, self.sizes, self.others):
            values[:] = sorted({abs(one) for one in values})
            self.counts |= {int(one) for one in values if one == int(one)}
        return self


def _near(
    values: list[float], factor: Fraction, value: Fraction, last_digit: Fraction, slack: Fraction
) -> bool:
    """Whether a value times the factor is within half a unit of the last digit that is printed."""
    off = last_digit / 2 * (1 + _FLOAT) + value * slack
    place = bisect_left(values, (value - off) / factor)
    return place < len(values) and values[place] <= (value + off) / factor


def _collect(value: Any, key: str, found: Figures) -> None:
    """Sort one value out by the unit in its key, or in a key above it."""
    if isinstance(value, dict):
        found.counts.add(len(value))
        for name, part in value.items():
            if name not in _COLUMNS or not isinstance(part, list):
                found.texts.add(name)
                _collect(part, _unit(name, value, key), found)
    elif isinstance(value, list):
        found.texts |= {"x".join(map(str, value))} if _is_grid(value) else set()
        found.counts |= {len(value) - left for left in range(_LONGEST + 1) if left <= len(value)}
        for part in value:
            _collect(part, key, found)
    elif isinstance(value, str):
        found.texts.add(value)
    elif value is not None and not isinstance(value, bool):
        _sorted_out(value, key, found)


def _is_grid(value: list[Any]) -> bool:
    return len(value) == 3 and all(isinstance(one, int) for one in value)


def _unit(name: str, beside: Document, above: str) -> str:
    """The unit a key names; that of evidence stands beside it."""
    if name in ("value", "limit") and "unit" in beside:
        unit = str(beside["unit"])
        return "frac" if unit.startswith("fraction") else unit
    for unit in ("ns", "frac", "bytes"):
        if name.endswith(f"_{unit}") or f"_{unit}_" in name or name in (unit, f"{unit}_per_s"):
            return unit
    if name.endswith("_count") or name in ("index", "step", "rank", "layer", "process", "device"):
        return ""
    return above


def _sorted_out(value: float, unit: str, found: Figures) -> None:
    where = {"ns": found.times, "frac": found.shares, "bytes": found.sizes}.get(unit, found.others)
    where.append(value)


def _of_rank(rank: Document, found: Figures) -> None:
    """What is worked out from a rank's figures: lengths, sums, shares of its window, means of its steps."""
    window_ns, used = rank["budget_ns"]["window"], rank["steps"]["used"]
    own = Figures()
    for key in _OF_WINDOW:
        _collect(rank.get(key), "ns", own)
    own.times += [
        0,
        *_wholes(rank),
        *_smaller_parts(rank),
        *_moe_sums(rank.get("moe") or {"rows": (), "by_layer": ()}),
    ]
    lengths = [one["end_ns"] - one["start_ns"] for one in (*used, *rank["steps"]["dropped"])]
    found.times += own.times + lengths + [ns / (len(used) or 1) for ns in own.times]
    found.shares += [1.0, *(ns / window_ns for ns in own.times + lengths)]
    found.shares += [ns / whole for ns in own.times for whole in _wholes(rank) if whole]
    _of_kernels(rank, found)
    every = Figures()
    _collect({key: part for key, part in rank.items() if key not in _APART}, "", every)
    _collect(rank["memory"]["recompute_modules"], "ns", every)
    every.times += _pieces(rank)
    found.times += [ns / (len(used) or 1) for ns in every.times]
    found.shares += [ns / window_ns for ns in every.times]
    found.texts.add(str(rank["gpu"]).removeprefix("NVIDIA "))
    _of_steps(rank, lengths[: len(used)] or [window_ns], found)
    _of_timeline(rank.get("timeline"), found)
    drawn = (rank["timeline"], *rank["other_steps"])
    found.counts |= {sum(one[key] for one in drawn) for key in ("left_out", "host_left_out")}


def _of_run(run: Document | None, found: Figures) -> None:
    """Of several ranks: how much waits, who caused how much of it, and how far their steps differ."""
    if run is None:
        return
    late, wait_ns = run["late"] or {"wait_ns": 0}, run["wait_ns"]
    caused = [one["caused_ns"] or 0 for one in run["ranks"]]
    steps = [one["step_ns"] for one in run["ranks"] if one["step_ns"]]
    found.shares += [
        part / whole
        for part, whole in (
            (wait_ns, wait_ns + run["transfer_ns"]),
            (late["wait_ns"], wait_ns),
            *((ns, wait_ns) for ns in run["wait_by_kind_ns"].values()),
            *((one, sum(caused)) for one in caused),
            *((max(steps) - min(steps), min(steps)) for _ in steps[:1]),
        )
        if whole
    ]
    found.counts |= {one["group"] + 1 for one in run["ranks"]}


def _pieces(rank: Document) -> Iterator[int]:
    """Pieces of a bar: buckets, idle time by reason, and the small ones added up."""
    pieces = Counter[str]()
    for row in rank["ledger"] or ():
        if row["group"] == "budget":
            bucket, _, reason = row["row"].partition(".")
            reason, _, cause = reason.partition(".")
            first = cause if cause in _NAMED else reason if reason.startswith("launch_") else "other"
            pieces[f"{bucket}.{first}" if bucket == "idle" else bucket] += sum(row["per_step_ns"])
    lengths = sorted(pieces.values(), reverse=True)
    yield from lengths
    yield from (sum(lengths[shown:]) for shown in range(len(lengths)))


def _of_kernels(rank: Document, found: Figures) -> None:
    """Kernels of one short name added up: their work, and its part of the window."""
    work = Counter[tuple[str, str]]()
    table = rank["kernel_table"]
    found.counts.add(len(table["rows"]) + table["left_out"]["rows"] - _TEXT_ROWS)
    for row in rank["kernel_table"]["rows"]:
        work[kernel_name(row["name"]), row["key"]] += row["work_ns"]
        found.texts.add(kernel_name(row["name"]))
    found.shares += [ns / rank["budget_ns"]["window"] for ns in work.values()]


def _smaller_parts(rank: Document) -> Iterator[int]:
    """The smallest parts of a table added up, however many a format shows one by one."""
    for key in ("exposed_comm_by_kind_ns", "exposed_copy_by_kind_ns", "compute_by_class_ns", "absent_ns"):
        parts = Figures()
        _collect(rank[key], "ns", parts)
        lengths = sorted(parts.times, reverse=True)
        yield from (int(sum(lengths[shown:])) for shown in range(len(lengths)))


def _wholes(rank: Document) -> Iterator[int]:
    """What a table of a rank adds up to: lost time, exposed communication, blocking by communication."""
    yield rank["budget_ns"]["window"] - rank["budget_ns"]["compute"]
    yield sum((rank["exposed_comm_by_kind_ns"] or {}).values())
    blocking = (rank["absent_ns"] or {"blocking": {}})["blocking"]
    yield sum(ns for kind, ns in blocking.items() if not kind.startswith("mem"))


def _of_steps(rank: Document, lengths_ns: list[int], found: Figures) -> None:
    """Rows of the ledger and sums by the first word of their names: of each step, of all, and in the mean."""
    rows = rank.get("ledger") or ()
    steps = [*zip(*(one["per_step_ns"] for one in rows), strict=True)]
    steps.append(tuple(map(sum, zip(*steps, strict=True))))
    for row_ns, length_ns in zip(steps, (*lengths_ns, rank["budget_ns"]["window"]), strict=False):
        told = _by_head((one["group"], one["row"], ns) for one, ns in zip(rows, row_ns, strict=True))
        found.times += [*told, *(ns / len(lengths_ns) for ns in told)]
        found.shares += [ns / length_ns for ns in told]


def _by_head(rows: Iterable[tuple[str, str, int]]) -> list[int]:
    """Each row, and rows of a group added up by the first word of their names."""
    single, added = [], Counter[tuple[str, str]]()
    for group, row, ns in rows:
        single.append(ns)
        added[group, row.partition(".")[0]] += ns
    return [*single, *added.values()]


def _of_timeline(timeline: Document | None, found: Figures) -> None:
    """Its length; activities and lost time by stream, kind and in all: how many, how long, the longest."""
    if timeline is None:
        return
    groups: dict[Any, list[int]] = defaultdict(list)
    for lane in timeline["lanes"]:
        for key, length_ns in zip(lane["key"], lane["length_ns"], strict=True):
            for group in ("all", ("stream", lane["stream"]), ("key", key)):
                groups[group].append(length_ns)
    lost = timeline["reasons"] or {"reason": (), "length_ns": ()}
    for reason, length_ns in zip(lost["reason"], lost["length_ns"], strict=True):
        groups["lost", reason].append(length_ns)
    found.times += [timeline["end_ns"] - timeline["start_ns"]]
    found.times += [ns for lengths in groups.values() for ns in (sum(lengths), max(lengths))]
    found.counts |= {len(lengths) for lengths in groups.values()}
    found.counts.add(len(groups["all"]) + timeline["left_out"])


def _moe_sums(moe: Document) -> Iterator[int]:
    """Rows of a module added up over its passes; of a layer's module too; host waits over all."""
    for rows, names in ((moe["rows"], ("module",)), (moe["by_layer"], ("layer", "module"))):
        for place in {tuple(row[name] for name in names) for row in rows}:
            mine = [row for row in rows if tuple(row[name] for name in names) == place]
            yield from (sum(row.get(key) or 0 for row in mine) for key in _OF_MOE)
    yield sum(row.get("host_wait_ns") or 0 for row in moe["rows"])


def _of_walls(document: Document, found: Figures) -> None:
    """Costs by step of one rank, and the share of each kind."""
    ranks = document.get("ranks", ())
    steps = sum(len(rank["steps"]["used"]) or 1 for rank in ranks) or 1
    for wall in document.get("walls", ()):
        costs = [wall["cost_ns"] or 0, *(wall["cost_by_kind_ns"] or {}).values()]
        found.times += [ns / steps for ns in costs]
        most = wall["at_most_frac"] or 0.0
        found.times += [most * sum(rank["budget_ns"]["window"] for rank in ranks) / steps]
        if wall["cost_ns"]:
            found.shares += [wall["cost_frac"] * ns / wall["cost_ns"] for ns in costs]


def _of_memory(estimate: Document | None, found: Figures) -> None:
    """What the estimate is where a log's peak stands beside it, and the shares of its parts."""
    if estimate is None:
        return
    estimated = estimate["total_bytes"] - (estimate["rest_bytes"] or 0)
    found.sizes.append(estimated)
    parts = [value for key, value in estimate.items() if key.endswith("_bytes") and value is not None]
    found.shares += [part / whole for part in parts for whole in (estimated, estimate["total_bytes"])]


def _of_configuration(document: Document, found: Figures) -> None:
    """How many rules of the workflow are in each state, and how many settings were written."""
    states = Counter(one["state"] for one in document.get("workflow", ()))
    configuration = document.get("configuration") or {"settings": ()}
    written = [one for one in configuration["settings"] if one["said"] != DEFAULT]
    found.counts |= {*states.values(), len(written), len(configuration["settings"]) - len(written)}


def _smaller_rows(sides: list[dict[str, int]]) -> Iterator[int]:
    """Rows of each side added up: those that are not compute, communication or copies, and the smallest."""
    rows = sorted(
        {row for side in sides for row in side}, key=lambda row: -max(side.get(row, 0) for side in sides)
    )
    for side in sides:
        yield sum(ns for row, ns in side.items() if row.partition(".")[0] not in _BUSY)
        yield from (sum(side.get(row, 0) for row in rows[shown:]) for shown in range(len(rows)))


def _of_comparison(document: Document, found: Figures) -> None:
    """Columns of the attribution added up, and places of suspects."""
    rows = document.get("attribution", ())
    for key in ("count_ns", "duration_ns", "overlap_ns", "base_ns", "new_ns", "delta_ns"):
        told = [row[key] for row in rows if row[key] is not None]
        found.times += [sum(told[shown:]) for shown in range(len(told))] if told else []
    sides = [document[name] for name in ("base", "new") if name in document]
    for side in sides:
        found.texts.add(str(side["gpu"]).removeprefix("NVIDIA "))
        _of_timeline(side.get("timeline"), found)
        told = _by_head(("", one["row"], one["mean_ns"]) for one in side.get("budget_rows") or ())
        found.shares += [ns / side["step_ns"] for ns in told]
        found.times += told
    found.times += [
        *_smaller_rows([{one["row"]: one["mean_ns"] for one in side["budget_rows"]} for side in sides])
    ]
    shares = [row["share_frac"] for row in rows if row["share_frac"] is not None]
    found.shares += [sum(shares[shown:]) for shown in range(len(shares))]
    if rows:
        found.shares.append(1.0)
    found.counts |= {*range(1, len(document.get("suspects", ())) + 1)}
