"""What the title of a suspect promises, asked again of the figures of both sides: counts, means and signs.

Nothing here is of the code that finds suspects: a title is read as a person would read it, and held against
the ledgers of both ranks and against the rows of the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import nan
from typing import Final

from heuristics.result.compared import Compared, ComparedRow, Suspect
from heuristics.result.result import Result
from traces.missing import known
from traces.sections.rank import Rank

Asked = Callable[..., Iterable[str]]
SAME: Final = 0.02
"""Counts within this part of the larger one are the same: it is what routing moves."""
_LATER: Final = re.compile(r"take[s]? longer|is slower|are slower|is later|costs the host more than")
_EARLIER: Final = re.compile(r"take[s]? less|is faster|are faster|is earlier")


@dataclass(frozen=True, slots=True)
class Work:
    """Activities of some rows a step and the time that they take one by one."""

    count: float
    work_ns: float

    @property
    def each_ns(self) -> float:
        return self.work_ns / self.count if self.count else 0.0


def work_of(rank: Rank, belongs: Callable[[str], bool]) -> Work:
    """Of the rows of the ledger whose name without `idle.` belongs."""
    steps = len(rank.steps.used) or 1
    rows = [
        row
        for row in known(rank.ledger) or ()
        if row.group == "budget" and belongs(row.row.removeprefix("idle."))
    ]
    return Work(sum(row.count for row in rows) / steps, sum(row.work_ns for row in rows) / steps)


@dataclass(frozen=True, slots=True)
class Pair:
    """One suspect with the sides of its comparison."""

    compared: Compared
    suspect: Suspect
    base: Rank
    new: Rank

    @property
    def rows(self) -> list[ComparedRow]:
        return [row for row in self.compared.attribution if row.row in self.suspect.rows]

    def sides(self, *names: str) -> tuple[Work, Work]:
        """Both sides of some rows; none named: of the rows of the suspect."""
        listed = names or self.suspect.rows
        return work_of(self.base, listed.__contains__), work_of(self.new, listed.__contains__)

    def compute(self) -> tuple[Work, Work]:
        return tuple(work_of(side, lambda row: row.startswith("compute.")) for side in (self.base, self.new))  # type: ignore[return-value]

    def sees_alike(self) -> bool:
        """Whether both sides record single kernels, or hide as many of them in whole replays."""
        one, other = self.sides("compute.graph_replay")
        return same(one.count, other.count)


def same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(one, other)


def contradictions(compared: Compared, base: Result, new: Result) -> Iterator[str]:
    """A line for every suspect whose title its own figures contradict."""
    first = compared.pairs[0]
    for suspect in compared.suspects:
        pair = Pair(compared, suspect, base.ranks[first.base.index], new.ranks[first.new.index])
        for what in (*_sums(pair), *_directions(pair), *_promises(pair)):
            yield f"{suspect.id} ({suspect.title}): {what}"


def _sums(pair: Pair) -> Iterator[str]:
    names = [row.row for row in pair.rows]
    if sorted(names) != sorted(pair.suspect.rows) or "noise" in names or not names:
        yield f"its rows {pair.suspect.rows} are none of the comparison"
    if sum(row.delta_ns for row in pair.rows) != pair.suspect.explains_ns:
        yield "what it explains is not the sum of its rows"


def _directions(pair: Pair) -> Iterator[str]:
    title, explains_ns = pair.suspect.title, pair.suspect.explains_ns
    if _LATER.search(title) and explains_ns <= 0:
        yield f"longer, and {explains_ns} ns"
    if _EARLIER.search(title) and explains_ns >= 0:
        yield f"less, and {explains_ns} ns"


def _promises(pair: Pair) -> Iterator[str]:
    for pattern, asked in _TITLES.items():
        if found := re.search(pattern, pair.suspect.title):
            yield from asked(pair, *found.groups())


def _sign(way: str | None) -> int:
    """-1 where the words of a title promise less of something."""
    return -1 if way in _LESS else 1


def _moves(by: Callable[[Pair], float], *also: Asked) -> Asked:
    """Something differs, from base to new, in the direction that the title says; and what else must hold."""

    def asked(pair: Pair, way: str | None = None) -> Iterator[str]:
        if not by(pair) * _sign(way) > 0:
            yield f"{way}, and it moves by {by(pair):g}"
        yield from (what for one in also for what in one(pair))

    return asked


def _number(base: Work, new: Work, way: str) -> Iterator[str]:
    if (new.count - base.count) * _sign(way) <= 0 or same(base.count, new.count):
        yield f"{base.count:g} -> {new.count:g} of them"


def _mean(base: Work, new: Work, way: str) -> Iterator[str]:
    if (new.each_ns - base.each_ns) * _sign(way) <= 0:
        yield f"one takes {base.each_ns:.0f} -> {new.each_ns:.0f} ns"


def _is_seen(pair: Pair) -> Iterator[str]:
    if not pair.sees_alike():
        yield "one side records whole replays of graphs, whose kernels are not seen"


def _same_kernels(pair: Pair, name: str = "") -> Iterator[str]:
    base, new = pair.sides(f"compute.{name}") if name else pair.compute()
    if not same(base.count, new.count):
        yield f"{base.count:g} against {new.count:g} kernels are not the same"
    yield from _is_seen(pair)


def _same_class(pair: Pair, name: str, way: str) -> Iterator[str]:
    base, new = pair.sides(f"compute.{name}")
    yield from _same_kernels(pair, name)
    yield from _mean(base, new, way)
    others_ns = sum(
        max((one.base_each_ns or 0) * one.base_count, (one.new_each_ns or 0) * one.new_count)
        for one in pair.compared.kernels
        if one.key == f"compute.{name}" and one.change in ("new", "gone")
    )
    if others_ns > 0.25 * max(base.work_ns, new.work_ns):
        yield f"{others_ns:.0f} ns of it are in kernels that only one side has"


def _more_of_class(pair: Pair, way: str, name: str) -> Iterator[str]:
    yield from _number(*pair.sides(f"compute.{name}"), way)
    yield from _is_seen(pair)


def _exchanged(pair: Pair, name: str) -> Iterator[str]:
    kinds = {one.change for one in pair.compared.kernels if one.key == f"compute.{name}"}
    if not {"new", "gone"} <= kinds:
        yield f"kernels of that class are {sorted(kinds)}"
    yield from _is_seen(pair)


def _other_number(pair: Pair, name: str) -> Iterator[str]:
    base, new = pair.sides(f"compute.{name}")
    if same(base.count, new.count):
        yield f"{base.count:g} -> {new.count:g} of them are the same number"
    yield from _is_seen(pair)


def _calls(pair: Pair) -> tuple[Work, Work]:
    base, new = (sum(getattr(row, side) for row in pair.rows) for side in ("base_count", "new_count"))
    return Work(base, 0), Work(new, 0)


def _more_calls(pair: Pair, way: str) -> Iterator[str]:
    yield from _number(*_calls(pair), way)
    yield from _is_seen(pair)


def _buckets(pair: Pair) -> Iterator[str]:
    base, new = _calls(pair)
    if same(base.count, new.count):
        yield f"{base.count:g} -> {new.count:g} calls are the same number"
    yield from _same_kernels(pair)


def _alike(pair: Pair, way: str) -> Iterator[str]:
    for row in pair.rows:
        base, new = pair.sides(row.row)
        is_large = base.work_ns > 0.05 * pair.compute()[0].work_ns
        if base.count and new.count and row.row.startswith("compute.") and is_large:
            yield from _mean(base, new, way)


def _everything(pair: Pair, way: str) -> Iterator[str]:
    yield from _number(*pair.compute(), way)
    yield from _is_seen(pair)


def _row(name: str, *also: Asked) -> Asked:
    """A row of the suspect moves this way: longer where nothing is said."""

    def moved_ns(pair: Pair) -> float:
        return sum(row.delta_ns for row in pair.rows if row.row == name)

    return _moves(moved_ns, *also)


def _of_gpu(pair: Pair) -> float:
    rows = [row for row in pair.compared.attribution if row.row.startswith(("compute.", "exposed_"))]
    return sum(row.delta_ns for row in rows)


def _small(pair: Pair, way: str) -> Iterator[str]:
    """Counts of what is no small kernel are the same, of all there are more."""
    base, new = pair.sides("compute.gemm", "compute.grouped_gemm", "compute.attention")
    if not same(base.count, new.count):
        yield f"{base.count:g} against {new.count:g} matrix products are not the same"
    if not same(*(one.count for one in pair.compute())):
        yield from _number(*pair.compute(), way)
    yield from _is_seen(pair)


def _workers(pair: Pair, way: str) -> Iterator[str]:
    """More workers load where the rhythm of waits, or a setting, has more, or a process of its own came."""
    apart = [side.data_loading.loads_apart if side.data_loading else None for side in (pair.base, pair.new)]
    if sorted(apart, key=str) == [False, True]:
        if apart[1] is not (way == "More"):
            yield f"batches load apart: {apart}"
        return
    counts = [
        known(side.data_loading.workers) if side.data_loading else None for side in (pair.base, pair.new)
    ]
    settings = [one for one in pair.compared.changed if one.what.endswith("num_workers")]
    base, new = counts if None not in counts else (settings[0].base, settings[0].new) if settings else (0, 0)
    if ((new or 0) - (base or 0)) * _sign(way) <= 0:
        yield f"{base} -> {new} workers"


_BITS: Final = {"nvfp4": 4, "bf16": 16, "fp16": 16, "tf32": 19, "fp32": 32}


def _bits(pair: Pair, way: str) -> Iterator[str]:
    """Fewer bits in the mean of matrix work, a narrower precision by name, or kernels that cast."""
    means = []
    for side in (pair.base, pair.new):
        shares = side.detected.precision_shares_frac
        name = known(side.detected.precision)
        weights = shares if sum(shares.values()) >= 0.5 else {name: 1.0} if name else {}
        bits = sum(_BITS.get(one, 8) * frac for one, frac in weights.items())
        means.append(bits / sum(weights.values()) if weights else None)
    base, new = pair.sides("compute.quantize")
    if None not in means and means[0] != means[1]:
        if (means[0] > means[1]) != (way == "fewer"):  # type: ignore[operator]
            yield f"{means[0]} -> {means[1]} bits in the mean"
    elif (base.count - new.count) * _sign(way) <= 0:
        yield "neither the bits of matrix work nor kernels that cast changed that way"


def _again(pair: Pair) -> float:
    """Time of recompute a step; where both have the same, forward kernels."""
    times = [(known(one.memory.recompute_ns) or 0) / len(one.lengths_ns) for one in (pair.base, pair.new)]
    return times[1] - times[0] if times[0] != times[1] else _forward(pair.new) - _forward(pair.base)


def _forward(side: Rank) -> float:
    """Kernels a step that are called so."""
    rows = (one for one in side.kernel_table.rows if re.search("fwd|forward", one.name, re.IGNORECASE))
    return sum(one.count for one in rows) / len(side.lengths_ns)


def _pageable(side: Rank) -> float:
    """The part of the input copies that reads pageable memory; where that is not known, no number."""
    loading = side.data_loading
    count = known(loading.input_copies_pageable) if loading else None
    return nan if count is None or not loading else count / loading.input_copies


def _optimizer(pair: Pair, way: str) -> Iterator[str]:
    base, new = pair.sides("compute.optimizer")
    gone = base if way.startswith("kernels") else new
    if gone.count or not base.count + new.count:
        yield f"{base.count:g} -> {new.count:g} optimizer kernels"


def _in_graphs(side: Rank) -> float:
    return known(side.detected.graph_share_frac) or 0.0


_EXPLAINED: Final = _moves(lambda pair: pair.suspect.explains_ns)
_LESS: Final = {*("less", " less", "Less", "fewer", "Fewer", "faster", "is done sooner", "stopped", "pinned")}
_TITLES: Final[dict[str, Asked]] = {
    r"^The same (\w+) kernels take (longer|less)": _same_class,
    r"^(More|Fewer) (\w+) kernels run": _more_of_class,
    r"^Other (\w+) kernels do the work": _exchanged,
    r"^Another number of (\w+) kernels": _other_number,
    r"^There are (more|fewer) calls": _more_calls,
    r"^Each call of .* takes (longer|less)": _moves(
        lambda pair: sum(known(row.duration_ns) or 0 for row in pair.rows)
    ),
    r"^(Less|More) of .* is hidden": _moves(
        lambda pair: -sum(known(row.overlap_ns) or 0 for row in pair.rows)
    ),
    r"for the same kernels": _same_kernels,
    r"^All compute is (slower|faster) alike": _alike,
    r"^The step has (more|less) of everything": _everything,
    r"^(More|Fewer) small kernels for the same GEMMs": _small,
    r"^The GPU (is done sooner|has more to do)": _moves(_of_gpu, _same_kernels),
    r"^The data loader holds launches up( less)?": _row("launch_starved.data"),
    r"^(More|Fewer) workers load": _workers,
    r"^CUDA graphs (replay more|stopped)": _moves(lambda pair: _in_graphs(pair.new) - _in_graphs(pair.base)),
    r"^The GPU takes (longer|less) from one kernel to the next": _row(
        "launch_latency.kernel_gap", _same_kernels
    ),
    r"^Matrix work runs in (fewer|more) bits": _bits,
    r"^(More|Less) is recomputed": _moves(_again),
    r"^Input is copied from (pageable|pinned)": _moves(
        lambda pair: _pageable(pair.new) - _pageable(pair.base)
    ),
    r"^Another number of calls of": _buckets,
    r"^The optimizer runs in (plain|kernels)": _optimizer,
    r"^(More|Less) time goes to (?:copies|modules)": _EXPLAINED,
}
