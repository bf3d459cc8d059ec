"""What both sides of a difference show, by the names that causes ask for.

`before.NAME` and `after.NAME` are of one side, NAME is what a sentence has of both; the others are of the
difference itself. None is unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, Literal

from heuristics.comparison.difference.changed import way
from heuristics.comparison.difference.rows import SMALL_FRAC
from heuristics.comparison.difference.subject import Subject, same_count, sided
from heuristics.comparison.suspects.causes import named, table
from heuristics.comparison.suspects.figures import CLASSES, FIGURES, asked_for, dispatcher, whole
from heuristics.comparison.suspects.view import View
from heuristics.comparison.suspects.ways import (
    CHANGES,
    Part,
    kernels_of,
    main_part,
    more_work,
    pair,
    parts,
    places_of,
    runs_again,
    same,
    same_kernels,
    same_products,
    seen_alike,
    slower_alike,
    unfused,
    ungrouped,
    way_of,
)
from heuristics.config.facts import Fact
from heuristics.config.features import FLEX
from heuristics.result.result import late_rank
from heuristics.rules.condition import Language
from heuristics.words import say
from traces.limits import HALF_A_WALL, MOST
from traces.missing import known
from traces.sections.cause import Cause
from traces.settings.precision import BITS
from traces.spelling import in_ms, signed_ms, spoken

TF32_BITS: Final = 19


def _delta(name: str, view: View) -> float | None:
    before, after = pair(name, view)
    return None if before is None or after is None else after - before


def _arrow(name: str, view: View) -> str | None:
    both = pair(name, view)
    return None if None in both else view.arrow(*map(FIGURES[name].spelled, both))


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
    """Matrix work runs in fewer bits, by the shares of both sides, else by the precision of each.

    None where a side does not tell, or that which way it went is unknown.
    """
    before, after = (
        _mean_bits(side.rank.detected.precision_shares_frac) for side in (view.before, view.after)
    )
    if before and after:
        return after <= (1 - HALF_A_WALL.value) * before
    told = [side.rank.detected for side in (view.before, view.after)]
    if any(one.precision_shares_frac and known(one.precision) is None for one in told):
        return None
    changes = view.changes(["detected.precision"])
    if changes:
        return {1: True, -1: False}.get(way(changes[0]))
    one, other = (known(side.rank.detected.precision) for side in (view.before, view.after))
    return False if one is not None and one == other else None


def _mean_bits(shares: Mapping[str, float]) -> float | None:
    """Bits of an element, in the mean of matrix work of known format; TF32 multiplies 19 of its 32."""
    bits = {name: TF32_BITS if name == "tf32" else BITS[name] for name in shares if name in BITS}
    whole_frac = sum(shares[name] for name in bits)
    return sum(bits[name] * shares[name] for name in bits) / whole_frac if whole_frac >= MOST.value else None


def _grew(name: str, view: View) -> bool | None:
    more_ns, steps = _delta(name, view), view.before.rank.lengths_ns
    return None if more_ns is None else more_ns >= SMALL_FRAC.value * sum(steps) / len(steps)


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
    return more_ns is not None and grown_ns > 0 and more_ns >= MOST.value * grown_ns


def _late_rank(view: View) -> str | None:
    late = late_rank(view.after.result)
    if late is None:
        return None
    if late.index is None:
        return say("comparison.late-by-no-single-rank", cause=spoken(late.cause))
    rank = view.after.result.ranks[late.index]
    number = known(rank.rank)
    return f"{f'GPU {rank.device}' if number is None else f'rank {number}'}, {spoken(late.cause)}"


def _parts_of(patterns: Iterable[str], view: View) -> str:
    count, duration, overlap = (signed_ms(view.sign * one) for one in parts(view.grew(patterns)).values())
    return say("comparison.parts", count=count, duration=duration, overlap=overlap)


def _stretches_more(view: View) -> bool | None:
    """Stretch alone makes most of what compute grew by; None where a side does not show it."""
    more, beside_ns = _delta("stretch", view), pair("beside_ns", view)[1]
    grown_ns = view.delta_ns(CLASSES)
    if more is None or beside_ns is None:
        return None
    return grown_ns > 0 and more * beside_ns >= MOST.value * grown_ns


FamilyWay = Part | Literal["buckets"]
BUCKETED: Final = ("dp", "all_reduce", "other")
"""Families of communication whose calls are of buckets that a setting makes larger or smaller."""


def _family_way(key: str, patterns: Iterable[str], view: View) -> FamilyWay | None:
    """How a family of communication that grew got longer; None where it did not, or nothing proves how.

    As much in another number of calls is another size of buckets, where the kernels of compute are the same.
    """
    rows = view.grew(patterns)
    told = parts(rows)
    before, after = (sum(getattr(row, side) for row in rows) for side in ("base_count", "new_count"))
    is_same = same_count(before, after)
    if told and key in BUCKETED and not is_same and same_kernels(view):
        least_ns = min(abs(told["count"]), abs(told["duration"]))
        cancels = told["count"] * told["duration"] < 0
        if cancels and abs(told["count"] + told["duration"]) <= MOST.value * least_ns:
            return "buckets"
    part = main_part(patterns, view)
    is_more = after > before and not is_same and seen_alike(view)
    return part if part != "count" or is_more else None


def _each(patterns: Iterable[str], view: View) -> str | None:
    """How long one call of rows that grew takes, on both sides; None where a side has no ledger of them."""
    names = {row.row for row in view.grew(patterns)}
    times = []
    for side in (view.before, view.after):
        rows = [row for row in known(side.rank.ledger) or () if row.group == "budget" and row.row in names]
        count = sum(row.count for row in rows)
        if not count:
            return None
        times.append(in_ms(sum(row.work_ns for row in rows) // count))
    return view.arrow(*times)


def _loader_kept(view: View) -> str | None:
    """The number of workers where both sides show the same one."""
    before, after = pair("workers", view)
    return None if before is None or before != after else str(before)


def _workers_fell(view: View) -> bool | None:
    """Fewer workers load, or none where there were some; None where a side does not show it."""
    fell, (before, after) = _delta("workers", view), pair("apart", view)
    if None not in (before, after) and before != after:
        return bool(before)
    return None if fell is None else fell < 0


def _loading_changed(view: View) -> bool:
    """Loading moved: the launching thread waits otherwise for it, or other workers do it."""
    before, after = pair("workers", view)
    return bool(
        view.matching(["launch_starved.data"])
        or view.changes(named("@loading"))
        or (before is not None and after is not None and before != after)
        or len({*pair("apart", view)} - {None}) > 1
    )


def _calls(patterns: Iterable[str], view: View) -> str:
    rows = view.grew(patterns)
    return view.arrow(whole(sum(row.base_count for row in rows)), whole(sum(row.new_count for row in rows)))


def _facts() -> Iterator[tuple[str, Callable[[View], object]]]:
    for name in FIGURES:
        yield name, partial(_arrow, name)
    for key, family in table()["families"].items():
        yield f"part.{key}", partial(_family_way, key, family["rows"])
        yield f"each.{key}", partial(_each, family["rows"])
        yield f"parts.{key}", partial(_parts_of, family["rows"])
        yield f"calls.{key}", partial(_calls, family["rows"])
    for row in CLASSES:
        class_ = row.partition(".")[2]
        yield f"way.{class_}", partial(way_of, row)
        yield f"number.{class_}", partial(_calls, [row])
        yield f"places.{class_}", partial(places_of, row)
        for way_ in CHANGES:
            yield f"{'number_of' if way_ == 'number' else way_}.{class_}", partial(kernels_of, row, way_)


VIEWED: Final = Language(
    {
        **sided({name: figure.of for name, figure in FIGURES.items()}, "before", "after"),
        **{name: Fact(of) for name, of in _facts()},
        "same_kernels": Fact(same_kernels),
        "seen_alike": Fact(seen_alike),
        "same_small": Fact(partial(same, "small")),
        "same_products": Fact(same_products),
        "unfused": Fact(unfused),
        "runs_again": Fact(runs_again),
        "gaps": Fact(partial(main_part, ["launch_latency.kernel_gap"])),
        "loading_changed": Fact(_loading_changed),
        "loader_kept": Fact(_loader_kept),
        "workers_fell": Fact(_workers_fell),
        "more_pageable": Fact(
            lambda view: None if (more := _delta("pageable", view)) is None else more >= MOST.value
        ),
        "syncs": Fact(partial(_calls, ["launch_starved.sync"])),
        "same_others": Fact(partial(same, "others")),
        "ungraphed": Fact(
            lambda view: None if (more := _delta("graphs", view)) is None else -more >= HALF_A_WALL.value
        ),
        "regraphed": Fact(lambda view: abs(_delta("graphs", view) or 0.0) >= HALF_A_WALL.value),
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
        "gpu_shrank": Fact(lambda view: _gpu_ns(view) <= -MOST.value * view.delta_ns(named("@own"))),
        "gpu_moved": Fact(lambda view: signed_ms(view.sign * _gpu_ns(view))),
        "overlap_costs": Fact(_overlap_costs),
        "late_rank_came": Fact(_late_rank_came),
        "late_rank": Fact(_late_rank),
        "waits_more": Fact(partial(_is_most, "waiting", table()["families"]["ep"]["rows"])),
        "stretches_more": Fact(_stretches_more),
        "ungrouped": Fact(ungrouped),
        "more_work": Fact(more_work),
        "slower_alike": Fact(slower_alike),
    },
    config=None,
)
"""What conditions of causes are asked in."""
