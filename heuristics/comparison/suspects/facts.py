"""What both sides of a difference show, by the names that causes ask for.

`before.NAME` and `after.NAME` are of one side, NAME is what a sentence has of both; the others are of the
difference itself. None is unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

from heuristics.comparison.difference.changed import way
from heuristics.comparison.difference.subject import Subject, same_capture, same_count, sided
from heuristics.comparison.suspects.causes import named, table
from heuristics.comparison.suspects.figures import CLASSES, FIGURES, asked_for, dispatcher, whole
from heuristics.comparison.suspects.view import View
from heuristics.config.facts import Fact
from heuristics.config.features import FLEX
from heuristics.result.compared import Change, ComparedRow, KernelDelta
from heuristics.result.result import late_rank
from heuristics.rules.condition import Language
from heuristics.words import say
from traces.limits import Limit
from traces.missing import known
from traces.sections.cause import Cause
from traces.spelling import in_ms, signed_ms, spoken

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


def _pair(name: str, view: View) -> tuple[Any, Any]:
    of = FIGURES[name].of
    return of(view.before), of(view.after)


def _delta(name: str, view: View) -> float | None:
    before, after = _pair(name, view)
    return None if before is None or after is None else after - before


def _arrow(name: str, view: View) -> str | None:
    pair = _pair(name, view)
    return None if None in pair else view.arrow(*map(FIGURES[name].spelled, pair))


def _same(name: str, view: View) -> bool:
    return same_count(*_pair(name, view))


def _skipped(before: Subject, after: Subject) -> bool:
    """The fused dispatcher that is asked for after ran before; another one runs after."""
    ran, asked = dispatcher(before), asked_for(after)
    return asked in FLEX and asked == ran and dispatcher(after) not in (None, ran)


def _findings(view: View) -> tuple[str, ...]:
    return tuple(one.id for one in view.after.result.config_findings if "dispatcher" in one.id)


def _graphs_untouched(view: View) -> bool:
    """No setting of CUDA graphs changed, by a configuration of the side after."""
    return known(view.after.result.configuration) is not None and not view.changes(named("@graphs"))


def _precision(view: View) -> str | None:
    changes = view.changes(["detected.precision"])
    return view.arrow(str(changes[0].base), str(changes[0].new)) if changes else None


def _narrowed(view: View) -> bool | None:
    """Matrix work runs in another precision; None where a side does not tell, or its shares alone do."""
    if _precision(view):
        return True
    before, after = (known(side.rank.detected.precision) for side in (view.before, view.after))
    return False if before is not None and before == after else None


def _grew(name: str, view: View) -> bool | None:
    more_ns, steps = _delta(name, view), view.before.rank.lengths_ns
    return None if more_ns is None else more_ns >= VISIBLE.value * sum(steps) / len(steps)


def _gpu_ns(view: View) -> int:
    return view.delta_ns((*CLASSES, "exposed_comm.*", "exposed_copy.*"))


def _overlap_costs(view: View) -> str | None:
    cost_ns = view.delta_ns(named("@host", "launch_starved.sync"))
    hidden_ns = max(-view.delta_ns(named("@ep")), 0)
    more = cost_ns > hidden_ns
    return say("comparison.overlap-costs", cost_ns=cost_ns, hidden_ns=hidden_ns) if more else None


def _late_rank_came(view: View) -> bool:
    """Nobody was late before; now a rank is, and most of what communication grew by is waiting."""
    before, after = late_rank(view.before.result), late_rank(view.after.result)
    if before is None or after is None or before.cause is not Cause.NONE or after.cause is Cause.NONE:
        return False
    return _is_most("waited", ["exposed_comm.*"], view)


def _is_most(name: str, patterns: Iterable[str], view: View) -> bool:
    more_ns, grown_ns = _delta(name, view), sum(row.delta_ns for row in view.grew(patterns))
    return more_ns is not None and grown_ns > 0 and more_ns >= MAIN.value * grown_ns


def _late_rank(view: View) -> str | None:
    late = late_rank(view.after.result)
    if late is None:
        return None
    if late.index is None:
        return say("comparison.late-by-no-single-rank", cause=spoken(late.cause))
    rank = view.after.result.ranks[late.index]
    number = known(rank.rank)
    return f"{f'GPU {rank.device}' if number is None else f'rank {number}'}, {spoken(late.cause)}"


def _parts(rows: Iterable[ComparedRow]) -> dict[str, int]:
    parts = [[known(one) for one in (row.count_ns, row.duration_ns, row.overlap_ns)] for row in rows]
    if any(one[0] is None for one in parts):
        return {}
    sums = (sum(one or 0 for one in part) for part in zip(*parts, strict=True))
    return dict(zip(("count_ns", "duration_ns", "overlap_ns"), sums, strict=False))


def _main_part(patterns: Iterable[str], view: View) -> str | None:
    """What makes most of what rows grew by; None where nothing does, or that is unknown."""
    rows = view.grew(patterns)
    parts = _parts(rows)
    part = max(parts, key=lambda one: parts[one], default="")
    is_most = part and parts[part] >= MAIN.value * sum(row.delta_ns for row in rows)
    return part.removesuffix("_ns") if is_most else None


def _parts_of(patterns: Iterable[str], view: View) -> str:
    parts = _parts(view.grew(patterns)).values()
    count, duration, overlap = (signed_ms(view.sign * one) for one in parts)
    return say("comparison.parts", count=count, duration=duration, overlap=overlap)


def _calls(patterns: Iterable[str], view: View) -> str:
    rows = view.grew(patterns)
    return view.arrow(whole(sum(row.base_count for row in rows)), whole(sum(row.new_count for row in rows)))


def _mean_ns(side: Subject) -> dict[str, tuple[float, int]]:
    """Of each class the mean time of a kernel and the work of all."""
    rows = (row for row in known(side.rank.ledger) or () if row.row in CLASSES and row.count and row.work_ns)
    return {row.row: (row.work_ns / row.count, row.work_ns) for row in rows}


def _slower_alike(view: View) -> str | None:
    """All large classes of compute that have as many kernels take longer by the same factor."""
    base, new = view.before, view.after
    before, after = _mean_ns(base), _mean_ns(new)
    total_ns = sum(work_ns for _, work_ns in before.values())
    times = {
        name: (after[name][0] / each_ns - 1, work_ns)
        for name, (each_ns, work_ns) in before.items()
        if work_ns >= SHARE.value * total_ns
        and name in after
        and same_count(base.counts.get(name, 0.0), new.counts.get(name, 0.0))
    }
    told_ns = sum(work_ns for _, work_ns in times.values())
    if len(times) < 3 or told_ns < MOST.value * total_ns:
        return None
    mean = sum(longer * work_ns for longer, work_ns in times.values()) / told_ns
    if mean < SLOWER.value or any(abs(one - mean) > SPREAD.value * mean for one, _ in times.values()):
        return None
    least, most = min(times.values())[0], max(times.values())[0]
    return say(
        "comparison.slower-alike", classes=len(times), mean_frac=mean, least_frac=least, most_frac=most
    )


def _more_work(view: View) -> bool:
    """All large classes have more kernels, alike."""
    before, after = _pair("kernels", view)
    if not before or after <= before or same_count(before, after):
        return False
    counts, later = view.before.counts, view.after.counts
    times = [later.get(name, 0.0) / count for name, count in counts.items() if name in CLASSES and count >= 1]
    mean = after / before
    alike = [abs(one - mean) <= SPREAD.value * (mean - 1) for one in times]
    return len(times) >= 3 and sum(alike) >= len(alike) - 1


def _ungrouped(view: View) -> bool:
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
    part = _main_part([row_name], view)
    if part == "duration":
        return "slower"
    is_more = row.new_count > row.base_count and not same_count(row.base_count, row.new_count)
    return "more" if part != "overlap" and is_more else None


def _kernels(row_name: str, way: Way, view: View) -> tuple[str, ...]:
    kernels = [one for one in view.facts.kernels if one.key == row_name and one.change in CHANGES[way]]
    return tuple(_kernel(view, one) for one in kernels[:2])


def _kernel(view: View, kernel: KernelDelta) -> str:
    times = ("none" if ns is None else in_ms(ns) for ns in (kernel.base_each_ns, kernel.new_each_ns))
    found = f"{kernel.name[:60]}: {view.arrow(*times)}"
    if kernel.base_grid == kernel.new_grid or not kernel.base_grid or not kernel.new_grid:
        return found
    grids = ("x".join(map(str, grid)) for grid in (kernel.base_grid, kernel.new_grid))
    return f"{found}, grid: {view.arrow(*grids)}"


def _facts() -> Iterator[tuple[str, Callable[[View], object]]]:
    for name in FIGURES:
        yield name, partial(_arrow, name)
    for key, family in table()["families"].items():
        yield f"part.{key}", partial(_main_part, family["rows"])
        yield f"parts.{key}", partial(_parts_of, family["rows"])
        yield f"calls.{key}", partial(_calls, family["rows"])
    for row in CLASSES:
        class_ = row.partition(".")[2]
        yield f"way.{class_}", partial(_way, row)
        yield f"number.{class_}", partial(_calls, [row])
        for way_ in CHANGES:
            yield f"{way_}.{class_}", partial(_kernels, row, way_)


VIEWED: Final = Language(
    {
        **sided({name: figure.of for name, figure in FIGURES.items()}, "before", "after"),
        **{name: Fact(of) for name, of in _facts()},
        "same_capture": Fact(lambda view: same_capture(view.before.rank, view.after.rank)),
        "same_kernels": Fact(lambda view: _same("kernels", view) and _pair("kernels", view)[0] > 0),
        "same_small": Fact(partial(_same, "small")),
        "same_others": Fact(partial(_same, "others")),
        "ungraphed": Fact(
            lambda view: None if (more := _delta("graphs", view)) is None else -more >= LESS.value
        ),
        "regraphed": Fact(lambda view: abs(_delta("graphs", view) or 0.0) >= LESS.value),
        "graphs_untouched": Fact(_graphs_untouched),
        "skipped": Fact(lambda view: _skipped(view.before, view.after)),
        "returned": Fact(lambda view: _skipped(view.after, view.before)),
        "findings": Fact(_findings),
        "precision": Fact(_precision),
        "narrowed": Fact(_narrowed),
        "widened": Fact(lambda view: -1 in map(way, view.changes(["detected.precision"]))),
        "recompute_grew": Fact(partial(_grew, "recompute")),
        "offload_grew": Fact(partial(_grew, "offload")),
        "allocates_more": Fact(lambda view: (_delta("allocations", view) or 0.0) > 0 or None),
        "copies": Fact(partial(_calls, ["exposed_copy.*"])),
        "host_grew": Fact(lambda view: view.delta_ns(named("@own")) > 0),
        "gpu_shrank": Fact(lambda view: _gpu_ns(view) <= -MAIN.value * view.delta_ns(named("@own"))),
        "gpu_moved": Fact(lambda view: signed_ms(view.sign * _gpu_ns(view))),
        "overlap_costs": Fact(_overlap_costs),
        "late_rank_came": Fact(_late_rank_came),
        "late_rank": Fact(_late_rank),
        "waits_more": Fact(partial(_is_most, "waiting", table()["families"]["ep"]["rows"])),
        "ungrouped": Fact(_ungrouped),
        "more_work": Fact(_more_work),
        "slower_alike": Fact(_slower_alike),
    },
    config=None,
)
"""What conditions of causes are asked in."""
