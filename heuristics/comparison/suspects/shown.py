"""What both sides of a difference show, by the names that causes ask for.

`before.NAME` and `after.NAME` of figures.py are of one side, `both.NAME` is what a sentence has of
both; the others are of the difference itself. None is unknown.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import sub
from typing import Final, Literal

from heuristics.comparison.causes.table import named, table
from heuristics.comparison.difference.changed import way
from heuristics.comparison.difference.rows import SMALL_FRAC, delta_ns, names_of
from heuristics.comparison.difference.subject import rows_of_group, same_count
from heuristics.comparison.suspects.figures import CLASSES, pair, whole
from heuristics.comparison.suspects.view import Patterns, View
from heuristics.comparison.suspects.ways import (
    Part,
    kernels_of,
    main_part,
    parts,
    places_of,
    same,
    same_kernels,
    seen_alike,
    to_compare,
    way_of,
)
from heuristics.facts.dictionary import enter, fact
from heuristics.result.compared import ComparedRow
from heuristics.result.result import late_rank
from heuristics.rules.condition import Language
from heuristics.words import say
from traces.limits import HALF_A_WALL, MOST
from traces.missing import known, of_known
from traces.sections.cause import Cause
from traces.settings.precision import BITS
from traces.spelling import in_ms, spoken
from traces.texts import Texts

TF32_BITS: Final = 19


def more_of(name: str, view: View) -> float | None:
    """By how much a figure grew; None where a side does not tell it."""
    before, after = pair(name, view)
    return of_known(sub, after, before)


@fact
def findings(view: View) -> Texts:
    return tuple(row.id for row in view.after.result.config_findings if "dispatcher" in row.id)


@fact
def graphs_untouched(view: View) -> bool:
    """No setting of CUDA graphs changed, by a configuration of the side after."""
    return view.after.is_configured and not view.changes(named("@graphs"))


@fact
def precisions(view: View) -> str | None:
    for change in view.changes(["detected.precision"]):
        return view.arrow(str(change.base), str(change.new))
    return None


@fact
def narrowed(view: View) -> bool | None:
    """Matrix work runs in fewer bits, by the shares of both sides, else by the precision of each.

    None where a side does not tell, or that which way it went is unknown.
    """
    before, after = view.before.rank.detected, view.after.rank.detected
    bits = _mean_bits(before.precision_shares_frac)
    bits_after = _mean_bits(after.precision_shares_frac)
    if bits and bits_after:
        return bits_after <= (1 - HALF_A_WALL.value) * bits
    base_precision, new_precision = known(before.precision), known(after.precision)
    for side, precision in ((before, base_precision), (after, new_precision)):
        if side.precision_shares_frac and precision is None:
            return None
    for change in view.changes(["detected.precision"]):
        return {1: True, -1: False}.get(way(change))
    if base_precision is not None and base_precision == new_precision:
        return False
    return None


def _mean_bits(shares: Mapping[str, float]) -> float | None:
    """Bits of an element, in the mean of matrix work of known format; TF32 multiplies 19 of its
    32.
    """
    bits = {**BITS, "tf32": TF32_BITS}
    known_frac = mean = 0.0
    for name, frac in shares.items():
        if name in bits:
            known_frac += frac
            mean += bits[name] * frac
    if known_frac < MOST.value:
        return None
    return mean / known_frac


def _grew(name: str, view: View) -> bool | None:
    more_ns, steps = more_of(name, view), view.before.rank.lengths_ns
    if more_ns is None:
        return None
    return more_ns >= SMALL_FRAC.value * sum(steps) / len(steps)


def _gpu_ns(view: View) -> int:
    return view.delta_ns((*CLASSES, "exposed_comm.*", "exposed_copy.*"))


@fact
def overlap_costs(view: View) -> str | None:
    cost_ns = view.delta_ns(named("@host", "launch_starved.sync"))
    hidden_ns = max(-view.delta_ns(named("@ep")), 0)
    if cost_ns > hidden_ns:
        return say("comparison.overlap-costs", cost_ns=cost_ns, hidden_ns=hidden_ns)
    return None


@fact
def late_rank_came(view: View) -> bool:
    """Nobody was late before; now a rank is, and most of what communication grew by is waiting."""
    before, after = late_rank(view.before.result), late_rank(view.after.result)
    came = before and after and before.cause is Cause.NONE and after.cause is not Cause.NONE
    return bool(came) and _is_most("waited", ["exposed_comm.*"], view)


def _is_most(name: str, patterns: Patterns, view: View) -> bool:
    more_ns, grown_ns = more_of(name, view), delta_ns(view.grew(patterns))
    return more_ns is not None and grown_ns > 0 and more_ns >= MOST.value * grown_ns


@fact
def late_now(view: View) -> str | None:
    late = late_rank(view.after.result)
    if late is None:
        return None
    if late.index is None:
        return say("comparison.late-by-no-single-rank", cause=spoken(late.cause))
    rank = view.after.result.ranks[late.index]
    number, name = known(rank.rank), f"GPU {rank.device}"
    if number is not None:
        name = f"rank {number}"
    return f"{name}, {spoken(late.cause)}"


def _parts_of(patterns: Patterns, view: View) -> str:
    count, duration, overlap = map(view.signed, parts(view.grew(patterns)).values())
    return say("comparison.parts", count=count, duration=duration, overlap=overlap)


FamilyWay = Part | Literal["buckets"]
BUCKETED: Final = ("dp", "all_reduce", "other")
"""Families of communication whose calls are of buckets that a setting makes larger or smaller."""


def _family_way(key: str, patterns: Patterns, view: View) -> FamilyWay | None:
    """How a family of communication that grew got longer; None where it did not, or nothing proves
    how.

    As much in another number of calls is another size of buckets, where the kernels of compute are
    the same.
    """
    rows = view.grew(patterns)
    moved = parts(rows)
    before, after = _counts(rows)
    is_same = same_count(before, after)
    if moved and key in BUCKETED and not is_same and same_kernels(view):
        least_ns = min(abs(moved["count"]), abs(moved["duration"]))
        cancels = moved["count"] * moved["duration"] < 0
        if cancels and abs(moved["count"] + moved["duration"]) <= MOST.value * least_ns:
            return "buckets"
    part = main_part(patterns, view)
    is_more = after > before and not is_same and seen_alike(view)
    if part != "count" or is_more:
        return part
    return None


def _each(patterns: Patterns, view: View) -> str | None:
    """How long one call of rows that grew takes, on both sides; None where a side has no ledger of
    them.
    """
    names, times = {*names_of(view.grew(patterns))}, []
    for side in (view.before, view.after):
        count = work_ns = 0
        for row in rows_of_group(side.rank, "budget"):
            if row.row in names:
                count += row.count
                work_ns += row.work_ns
        if not count:
            return None
        times.append(in_ms(work_ns // count))
    return view.arrow(*times)


@fact
def loading_changed(view: View) -> bool:
    """Loading moved: the launching thread waits otherwise for it, or other workers do it."""
    before, after = pair("workers", view)
    return bool(
        view.matching(["launch_starved.data"])
        or view.changes(named("@loading"))
        or (before is not None and after is not None and before != after)
        or len({*pair("apart", view)} - {None}) > 1
    )


def _calls(patterns: Patterns, view: View) -> str:
    return view.arrow(*map(whole, _counts(view.grew(patterns))))


def _counts(rows: Iterable[ComparedRow]) -> tuple[float, float]:
    """Activities of rows on either side."""
    before = after = 0.0
    for row in rows:
        before += row.base_count
        after += row.new_count
    return before, after


@fact
def widened(view: View) -> bool:
    """The precision became a wider one."""
    return -1 in map(way, view.changes(["detected.precision"]))


@fact
def host_grew(view: View) -> bool:
    """The host itself takes longer."""
    return view.delta_ns(named("@own")) > 0


@fact
def gpu_shrank(view: View) -> bool:
    """The GPU's work got shorter by most of that."""
    return _gpu_ns(view) <= -MOST.value * view.delta_ns(named("@own"))


@fact
def gpu_moved(view: View) -> str:
    """What the GPU's work moved by."""
    return view.signed(_gpu_ns(view))


def _enter(name: str, of: Callable[..., object], *first: object) -> None:
    """A fact that a function tells of what it takes first: a figure, or rows."""
    enter(name, partial(of, *first), View)


for _name in ("small", "others", "forward", "backward"):
    _enter(f"same_{_name}", same, _name)
enter("classes_ns", lambda view: view.delta_ns(CLASSES), View)
_enter("recompute_grew", _grew, "recompute")
_enter("offload_grew", _grew, "offload")
_enter("gaps", main_part, ["launch_latency.kernel_gap"])
_enter("syncs", _calls, ["launch_starved.sync"])
_enter("copies", _calls, ["exposed_copy.*"])
_enter("waits_more", _is_most, "waiting", table()["families"]["ep"]["rows"])
for _key, _family in table()["families"].items():
    _enter(f"part.{_key}", _family_way, _key, _family["rows"])
    _enter(f"each.{_key}", _each, _family["rows"])
    _enter(f"parts.{_key}", _parts_of, _family["rows"])
    _enter(f"calls.{_key}", _calls, _family["rows"])
for _row in CLASSES:
    _class = _row.partition(".")[2]
    _enter(f"way.{_class}", way_of, _row)
    _enter(f"number.{_class}", _calls, [_row])
    _enter(f"compare.{_class}", to_compare, _row)
    _enter(f"places.{_class}", places_of, _row)
    for _way in table()["ways"]:
        _enter(f"{'number_of' if _way == 'number' else _way}.{_class}", kernels_of, _row, _way)
VIEWED: Final = Language(View)
"""What conditions of causes are asked in."""
