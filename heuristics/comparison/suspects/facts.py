"""What both sides of a difference show, by the names that causes ask for.

`before.NAME` and `after.NAME` are of one side, NAME is what a sentence has of both; the others are of the
difference itself. None is unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from msgspec import UNSET

from heuristics.comparison.difference.subject import Subject, same_count
from heuristics.comparison.suspects.causes import named, table
from heuristics.comparison.suspects.direction import is_off, way
from heuristics.comparison.suspects.view import View
from heuristics.config.facts import Fact
from heuristics.result.compared import Change, ComparedRow, KernelDelta
from heuristics.result.result import rank_in_run
from heuristics.rules.condition import Language
from traces.limits import Limit
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.run import Late
from traces.spelling import in_ms, percent, signed_ms, spoken

MAIN: Final = Limit(0.5, "fraction", "ours: of parts that add up, one of at least a half is the main one")
LESS: Final = Limit(
    0.05, "fraction of kernel work", "ours: a judgement: what one small module of a layer holds"
)
VISIBLE: Final = Limit(
    0.005,
    "fraction of the step",
    "ours: as heuristics.comparison.difference.rows, below which rows are noise",
)
SLOWER: Final = Limit(
    0.02, "fraction", "ours: the classes of two GPUs of one real run differ by 0.6 % at most"
)
SPREAD: Final = Limit(
    0.5, "of the slowdown", "ours: a judgement: what waits for memory loses less with the clock"
)
SHARE: Final = Limit(
    0.05, "fraction of compute", "ours: a judgement: smaller classes are a few short kernels"
)
MOST: Final = Limit(0.8, "fraction of compute", "ours: the rest are classes too small to be judged")
EXCHANGED: Final = Limit(
    0.25, "fraction of the class", "ours: a judgement: less is one GEMM of a layer out of many"
)
CLASSES: Final = named("@classes")
FUSED: Final = ("deepep", "hybridep", "ncclep")
"""Dispatchers of `flex`, as the trace is read for them."""
_GPU_ROWS: Final = (*CLASSES, "exposed_comm.*", "exposed_copy.*")
_EXPERTS: Final = table()["families"]["ep"]["rows"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What one side shows; `spelled`: as sentences have it."""

    of: Callable[[Subject], Any]
    spelled: Callable[[Any], str] = str


def _counted(classes: Iterable[str]) -> Figure:
    """Kernels a step of some classes of compute."""
    rows = (*classes,)
    return Figure(lambda side: sum(side.counts.get(row, 0.0) for row in rows), _whole)


def _of_memory(field: str, spelled: Callable[[float], str]) -> Figure:
    """A number of the memory section, per step."""

    def per_step(side: Subject) -> float | None:
        value = known(getattr(side.rank.memory, field))
        return None if value is None else value / len(side.rank.lengths_ns)

    return Figure(per_step, spelled)


def _whole(number: float) -> str:
    return f"{number:.0f}"


def _rounded_ms(time_ns: float) -> str:
    return in_ms(round(time_ns))


def _dispatcher(side: Subject) -> str | None:
    name = side.rank.detected.dispatcher
    return None if name == "unknown" else name


def asked_for(side: Subject) -> str | None:
    """The fused dispatcher that a side is configured for; None where none, or unknown."""
    if side.value("moe_token_dispatcher_type") != "flex":
        return None
    backend = side.value("moe_flex_dispatcher_backend")
    if not is_off(backend):
        return str(backend)
    return "deepep" if side.value("moe_enable_deepep") else None


def _tensor_parallel(side: Subject) -> int | None:
    size = side.value("tensor_model_parallel_size", "tp")
    return size if isinstance(size, int) else None


def _bound(side: Subject) -> bool | None:
    bound = side.value("launcher.numa_binding", "cpu_bound_to_numa")
    return bound if isinstance(bound, bool) else None


def _perturbed(side: Subject) -> float | None:
    parts = (known(trace.capture.perturbation_frac) for trace in side.result.traces)
    return max((frac for frac in parts if frac is not None), default=None)


def _waiting_ns(side: Subject) -> int | None:
    a2a = known(side.rank.a2a)
    waiting_ns = known(a2a.waiting_like_ns) if a2a else None
    return None if waiting_ns is None else waiting_ns // len(side.rank.lengths_ns)


def _waited_ns(side: Subject) -> int | None:
    own = rank_in_run(side.result, side.rank)
    return None if own is None else own.waited_ns


FIGURES: Final[Mapping[str, Figure]] = {
    "dispatcher": Figure(_dispatcher),
    "asked": Figure(asked_for),
    "gpu": Figure(lambda side: known(side.rank.gpu)),
    "tp": Figure(_tensor_parallel),
    "bound": Figure(_bound),
    "graphs": Figure(lambda side: known(side.rank.detected.graph_share_frac), percent),
    "perturbed": Figure(_perturbed, percent),
    "waiting": Figure(_waiting_ns, in_ms),
    "waited": Figure(_waited_ns, in_ms),
    "kernels": _counted(CLASSES),
    "small": _counted(named("@small")),
    "others": _counted(name for name in CLASSES if name not in named("@small")),
    "grouped": _counted(["compute.grouped_gemm"]),
    "gemms": _counted(["compute.gemm"]),
    "casts": _counted(["compute.quantize"]),
    "recompute": _of_memory("recompute_ns", _rounded_ms),
    "recomputed": Figure(
        lambda side: sorted(known(side.rank.memory.recompute_modules) or ()),
        lambda modules: ", ".join(modules) or "none",
    ),
    "offload": _of_memory("offload_exposed_ns", _rounded_ms),
    "allocations": _of_memory("allocator_calls", "{:.1f}".format),
}


def _pair(name: str, view: View) -> tuple[Any, Any]:
    of = FIGURES[name].of
    return of(view.facts.base), of(view.facts.new)


def _arrow(name: str, view: View) -> str | None:
    """A figure of both sides, where both have it."""
    pair = _pair(name, view)
    return None if None in pair else view.arrow(*map(FIGURES[name].spelled, pair))


def _same(name: str, view: View) -> bool:
    return same_count(*_pair(name, view))


def _skipped(before: Subject, after: Subject) -> bool:
    """The fused dispatcher that is asked for after ran before; another one runs after."""
    ran, asked = _dispatcher(before), asked_for(after)
    return asked in FUSED and asked == ran and _dispatcher(after) not in (None, ran)


def _findings(view: View) -> tuple[str, ...]:
    """Findings of the configuration of the side after that speak of its dispatcher."""
    return tuple(one.id for one in view.facts.new.result.config_findings if "dispatcher" in one.id)


def _ungraphed(view: View) -> bool | None:
    """Less kernel work is in CUDA graphs."""
    before, after = _pair("graphs", view)
    return None if before is None or after is None else before - after >= LESS.value


def _regraphed(view: View) -> bool:
    before, after = _pair("graphs", view)
    return before is not None and after is not None and abs(after - before) >= LESS.value


def _graphs_untouched(view: View) -> bool:
    """No setting of CUDA graphs changed, by a configuration of the side after."""
    return known(view.facts.new.result.configuration) is not None and not view.changes(named("@graphs"))


def _precision(view: View) -> str | None:
    changes = view.changes(["detected.precision"])
    return view.arrow(str(changes[0].base), str(changes[0].new)) if changes else None


def _narrowed(view: View) -> bool | None:
    """Matrix work runs in another precision; None where a side does not tell, or its shares alone do."""
    if _precision(view):
        return True
    before, after = (known(side.rank.detected.precision) for side in (view.facts.base, view.facts.new))
    return False if before is not None and before == after else None


def _grew(name: str, view: View) -> bool | None:
    """A time of the memory section grew visibly."""
    before, after = _pair(name, view)
    if before is None or after is None:
        return None
    steps = view.facts.base.rank.lengths_ns
    return bool(after - before >= VISIBLE.value * sum(steps) / len(steps))


def _allocates_more(view: View) -> bool | None:
    """Fewer calls do not rule out that memory is tight."""
    before, after = _pair("allocations", view)
    return True if before is not None and after is not None and after > before else None


def _host_ns(view: View) -> int:
    return view.delta_ns(named("@own"))


def _gpu_ns(view: View) -> int:
    return view.delta_ns(_GPU_ROWS)


def _cost_ns(view: View) -> int:
    """What an overlap costs the host."""
    return view.delta_ns(named("@host", "launch_starved.sync"))


def _hidden_ns(view: View) -> int:
    return max(-view.delta_ns(named("@ep")), 0)


def _late(side: Subject) -> Late | None:
    return None if side.result.run is UNSET else known(side.result.run.late)


def _late_rank_came(view: View) -> bool:
    """Nobody was late before; now a rank is, and most of what communication grew by is waiting."""
    before, after = _late(view.facts.base), _late(view.facts.new)
    if before is None or after is None or before.cause is not Cause.NONE or after.cause is Cause.NONE:
        return False
    return _is_most(_pair("waited", view), view.grew(["exposed_comm.*"]))


def _is_most(pair: tuple[int | None, int | None], rows: Iterable[ComparedRow]) -> bool:
    """Whether a time grew by most of what rows grew by."""
    (before, after), grown_ns = pair, sum(row.delta_ns for row in rows)
    return not (before is None or after is None or grown_ns <= 0 or after - before < MAIN.value * grown_ns)


def _late_rank(view: View) -> str | None:
    late = _late(view.facts.new)
    if late is None:
        return None
    if late.index is None:
        return f"no single one, {spoken(late.cause)}"
    rank = view.facts.new.result.ranks[late.index]
    number = known(rank.rank)
    return f"{f'GPU {rank.device}' if number is None else f'rank {number}'}, {spoken(late.cause)}"


def _parts(rows: Iterable[ComparedRow]) -> dict[str, int]:
    """What rows grew by: by count, duration and overlap; nothing where that is unknown."""
    parts = [(known(row.count_ns), known(row.duration_ns), known(row.overlap_ns)) for row in rows]
    if any(one[0] is None for one in parts):
        return {}
    sums = (sum(one or 0 for one in part) for part in zip(*parts, strict=True))
    return dict(zip(("count", "duration", "overlap"), sums, strict=False))


def _main_part(rows: Sequence[ComparedRow]) -> str | None:
    """Which of count, duration and overlap makes most of rows that grew; None where none does, or unknown."""
    delta_ns, parts = sum(row.delta_ns for row in rows), _parts(rows)
    if delta_ns <= 0 or not parts:
        return None
    part = max(parts, key=lambda one: parts[one])
    return part if parts[part] >= MAIN.value * delta_ns else None


def _part(patterns: Iterable[str], view: View) -> str | None:
    return _main_part(view.grew(patterns))


def _part_ms(patterns: Iterable[str], part: str, view: View) -> str:
    return signed_ms(view.sign * _parts(view.grew(patterns))[part])


def _calls(patterns: Iterable[str], view: View) -> str:
    """Activities a step of rows that grew."""
    rows = view.grew(patterns)
    return view.arrow(_whole(sum(row.base_count for row in rows)), _whole(sum(row.new_count for row in rows)))


def _mean_ns(side: Subject) -> dict[str, tuple[float, int]]:
    """Of each class the mean time of a kernel and the work of all."""
    rows = (row for row in known(side.rank.ledger) or () if row.row in CLASSES and row.count and row.work_ns)
    return {row.row: (row.work_ns / row.count, row.work_ns) for row in rows}


@dataclass(frozen=True, slots=True)
class Alike:
    """By how many times longer a kernel takes in the mean of the large classes, at least and at most."""

    classes: int
    mean: float
    least: float
    most: float


def _slower_alike(view: View) -> Alike | None:
    """All large classes of compute that have as many kernels take longer by the same factor."""
    base, new = view.facts.base, view.facts.new
    before, after = _mean_ns(base), _mean_ns(new)
    total_ns = sum(work_ns for _, work_ns in before.values())
    times = {
        name: (after[name][0] / each_ns, work_ns)
        for name, (each_ns, work_ns) in before.items()
        if work_ns >= SHARE.value * total_ns
        and name in after
        and same_count(base.counts.get(name, 0.0), new.counts.get(name, 0.0))
    }
    told_ns = sum(work_ns for _, work_ns in times.values())
    if len(times) < 3 or told_ns < MOST.value * total_ns:
        return None
    mean = sum(longer * work_ns for longer, work_ns in times.values()) / told_ns
    alike = all(abs(longer - mean) <= SPREAD.value * (mean - 1) for longer, _ in times.values())
    if mean - 1 < SLOWER.value or not alike:
        return None
    return Alike(len(times), mean, min(times.values())[0], max(times.values())[0])


def _longer(field: str, view: View) -> str | None:
    found = _slower_alike(view)
    return None if found is None else percent(getattr(found, field) - 1)


def _more_work(view: View) -> bool:
    """All large classes have more kernels, alike."""
    before, after = _pair("kernels", view)
    if after <= before or same_count(before, after):
        return False
    counts, later = view.facts.base.counts, view.facts.new.counts
    times = [later.get(name, 0.0) / count for name, count in counts.items() if name in CLASSES and count >= 1]
    mean = after / before
    alike = [abs(one - mean) <= SPREAD.value * (mean - 1) for one in times]
    return len(times) >= 3 and sum(alike) >= len(alike) - 1


def _ungrouped(view: View) -> bool:
    """Grouped GEMMs went, and others came."""
    (grouped, left), (gemms, more) = _pair("grouped", view), _pair("gemms", view)
    return bool(grouped) and left <= (1 - MAIN.value) * grouped and more > gemms


Way = Literal["more", "exchanged", "grid", "slower"]
CHANGES: Final[Mapping[Way, tuple[Change, ...]]] = {
    "slower": ("slower",),
    "more": ("more", "new"),
    "exchanged": ("new", "gone"),
    "grid": ("grid",),
}
"""What kernels show of the way in which their class got longer."""


def _way(row_name: str, view: View) -> Way | None:
    """How a class of compute that grew got longer; None where it did not, or nothing is the main part."""
    row = view.rows.get(row_name)
    if row is None or row.delta_ns <= 0:
        return None
    work_ns = dict[Change, float]()
    for one in view.facts.kernels:
        if one.key == row_name:
            sides = (one.base_each_ns or 0) * one.base_count, (one.new_each_ns or 0) * one.new_count
            work_ns[one.change] = work_ns.get(one.change, 0.0) + max(sides)
    least_ns = EXCHANGED.value * max(row.base_ns, row.new_ns)
    if min(work_ns.get("new", 0.0), work_ns.get("gone", 0.0)) >= least_ns:
        return "exchanged"
    if work_ns.get("grid", 0.0) >= least_ns:
        return "grid"
    part = _main_part([row])
    if part == "duration":
        return "slower"
    is_more = row.new_count > row.base_count and not same_count(row.base_count, row.new_count)
    return "more" if part != "overlap" and is_more else None


def _kernels(row_name: str, way: Way, view: View) -> tuple[str, ...]:
    """The kernels of a class that changed most."""
    kernels = [one for one in view.facts.kernels if one.key == row_name and one.change in CHANGES[way]]
    return tuple(_kernel(view, one) for one in kernels[:2])


def _kernel(view: View, kernel: KernelDelta) -> str:
    times = ("none" if ns is None else in_ms(ns) for ns in (kernel.base_each_ns, kernel.new_each_ns))
    found = f"{kernel.name[:60]}: {view.arrow(*times)}"
    if kernel.base_grid == kernel.new_grid or not kernel.base_grid or not kernel.new_grid:
        return found
    grids = ("x".join(map(str, grid)) for grid in (kernel.base_grid, kernel.new_grid))
    return f"{found}, grid: {view.arrow(*grids)}"


def _of_before(figure: Figure, view: View) -> object:
    return figure.of(view.facts.base)


def _of_after(figure: Figure, view: View) -> object:
    return figure.of(view.facts.new)


def _facts() -> Iterator[tuple[str, Callable[[View], object]]]:
    for name, figure in FIGURES.items():
        yield f"before.{name}", partial(_of_before, figure)
        yield f"after.{name}", partial(_of_after, figure)
        yield name, partial(_arrow, name)
    for key, family in table()["families"].items():
        yield f"part.{key}", partial(_part, family["rows"])
        yield f"calls.{key}", partial(_calls, family["rows"])
        for part in ("count", "duration", "overlap"):
            yield f"{part}.{key}", partial(_part_ms, family["rows"], part)
    for row in CLASSES:
        class_ = row.partition(".")[2]
        yield f"way.{class_}", partial(_way, row)
        yield f"number.{class_}", partial(_calls, [row])
        for way_ in CHANGES:
            yield f"{way_}.{class_}", partial(_kernels, row, way_)


VIEWED: Final = Language(
    {
        **{name: Fact(of) for name, of in _facts()},
        "same_kernels": Fact(lambda view: _same("kernels", view) and _pair("kernels", view)[0] > 0),
        "same_small": Fact(partial(_same, "small")),
        "same_others": Fact(partial(_same, "others")),
        "ungraphed": Fact(_ungraphed),
        "regraphed": Fact(_regraphed),
        "graphs_untouched": Fact(_graphs_untouched),
        "skipped": Fact(lambda view: _skipped(view.facts.base, view.facts.new)),
        "returned": Fact(lambda view: _skipped(view.facts.new, view.facts.base)),
        "findings": Fact(_findings),
        "precision": Fact(_precision),
        "narrowed": Fact(_narrowed),
        "widened": Fact(lambda view: -1 in map(way, view.changes(["detected.precision"]))),
        "recompute_grew": Fact(partial(_grew, "recompute")),
        "offload_grew": Fact(partial(_grew, "offload")),
        "allocates_more": Fact(_allocates_more),
        "copies": Fact(partial(_calls, ["exposed_copy.*"])),
        "host_grew": Fact(lambda view: _host_ns(view) > 0),
        "gpu_shrank": Fact(lambda view: _gpu_ns(view) <= -MAIN.value * _host_ns(view)),
        "gpu_moved": Fact(lambda view: signed_ms(view.sign * _gpu_ns(view))),
        "host_cost_ns": Fact(_cost_ns),
        "host_cost": Fact(lambda view: in_ms(_cost_ns(view))),
        "hidden_ns": Fact(_hidden_ns),
        "hidden": Fact(lambda view: in_ms(_hidden_ns(view))),
        "late_rank_came": Fact(_late_rank_came),
        "late_rank": Fact(_late_rank),
        "waits_more": Fact(lambda view: _is_most(_pair("waiting", view), view.grew(_EXPERTS))),
        "ungrouped": Fact(_ungrouped),
        "more_work": Fact(_more_work),
        "slower_alike": Fact(lambda view: _slower_alike(view) is not None),
        "classes_alike": Fact(lambda view: found.classes if (found := _slower_alike(view)) else None),
        **{f"{one}_longer": Fact(partial(_longer, one)) for one in ("mean", "least", "most")},
    }
)
"""What conditions of causes are asked in."""
