"""One rank's step: how steps were found, where every millisecond went, and why no compute ran."""

from collections import Counter
from collections.abc import Iterator

from reports.content.analysis.addresses import address_blocks
from reports.content.analysis.times import Time, scale_of, stretch_name, times_of, times_table
from reports.content.blocks import Blocks, Hue, Table, Term, items
from reports.content.names import beyond, optional, statement, when
from reports.rows import each
from traces.limits import QUARTER, WALL
from traces.missing import Missing, known
from traces.sections.rank import Rank
from traces.sections.steps import Dropped, Outside, Steps
from traces.sections.window import Absent
from traces.spelling import counted, duration, percent, printable


def step_blocks(rank: Rank) -> Blocks:
    """How steps were found, and what was noted of them."""
    steps, what = rank.steps, printable(rank.steps.what, 120)
    if steps.used:
        lengths = {"mean": steps.mean_ns, "median": steps.median_ns, "shortest": steps.min_ns}
        lengths["longest"] = steps.max_ns
        figures = (optional(f"{name} {{}}", time_ns, duration) for name, time_ns in lengths.items())
        count = counted(len(steps.used), stretch_name(steps))
        yield statement(f"{count} by {what}: {', '.join(filter(None, figures))}.")
    else:
        yield statement(f"No steps were found; judged is one window: {what}.")
    yield from items("", _notes(rank))


def _notes(rank: Rank) -> Iterator[str]:
    steps, name = rank.steps, stretch_name(rank.steps)
    if steps.slow:
        yield f"{_hiccups(steps)}, in no other figure."
    if steps.outside_ns and (text := _outside(rank, steps.outside_ns, 0)):
        yield text
    if 0 < len(steps.replayed) < len(steps.used):
        of_all = f"{len(steps.replayed)} of {len(steps.used)} {name}s were replayed"
        yield f"{of_all}, each for others of about its length: costs and savings rest on them."
    if not steps.used and 0 < steps.replayed_ns < (window_ns := rank.budget_ns.window):
        part = f"Slices of {percent(steps.replayed_ns / window_ns)} of the window were replayed"
        yield f"{part}, each for an equal part of it: costs and savings rest on them."
    if steps.disagreement:
        yield f"{steps.disagreement}."
    for dropped_step in steps.dropped:
        yield f"{name.capitalize()} {dropped_step.index} is left out: {dropped_step.reason}."
    if (hidden_ns := known(rank.hidden_comm_ns)) is not None:
        yield f"Communication hidden under compute: {scale_of(rank).ms(hidden_ns)} ms."


def outside(rank: Rank) -> Blocks:
    """What lies outside the steps, where it is a tenth of them or more, and which are left out."""
    around, least_ns = rank.steps.outside_ns, WALL.value * rank.budget_ns.window
    if around and (text := _outside(rank, around, least_ns)):
        yield statement(text)
    if rank.steps.slow:
        yield statement(f"Left out: {_hiccups(rank.steps)}.")
    others = each(_unused(rank.steps), "reason")
    for reason, count in Counter(others).most_common(1):
        more = beyond(len(others) - count, 0, "; {} more")
        whole = duration(sum(each(_unused(rank.steps), "length_ns")))
        what = counted(count, stretch_name(rank.steps))
        yield statement(f"Left out: {what}, {reason}{more}; {whole} in all.")


def _unused(steps: Steps) -> list[Dropped]:
    """Those left out that are no hiccups."""
    return [step for step in steps.dropped if step.index not in steps.slow]


def _hiccups(steps: Steps) -> str:
    usual_ns = steps.median_ns or 1
    more = [step.length_ns / usual_ns - 1 for step in steps.dropped if step.index in steps.slow]
    by = " to ".join(dict.fromkeys((percent(min(more)), percent(max(more)))))
    name = f"{when(min(more) >= QUARTER.value, 'far ')}longer {stretch_name(steps)}"
    beside = f"{duration(steps.hiccups_ns)} beyond the median"
    return f"{counted(len(more), name)} (hiccups, by {by}), {beside}"


def _outside(rank: Rank, around: Outside, least_ns: float) -> str:
    if not rank.steps.used:
        return when(
            around.before_ns > least_ns, f"Before the window: {duration(around.before_ns)}."
        )
    used, parts = rank.steps.used, [around.before_ns, around.between_ns, around.after_ns]
    for step in _unused(rank.steps):
        parts[(step.index > used[0].index) + (step.index > used[-1].index)] -= step.length_ns
    where = ("before the first", "between them", "after the last")
    said = [f"{duration(ns)} {at}" for ns, at in zip(parts, where, strict=True) if ns > least_ns]
    return optional(f"Outside the {stretch_name(rank.steps)}s: {{}}.", said, ", ".join)


def budget(rank: Rank) -> Table:
    return times_table(
        "Budget", scale_of(rank), _buckets(rank), Time(Term("window"), rank.budget_ns.window)
    )


def _buckets(rank: Rank) -> Iterator[Time]:
    parts, comm_ns = rank.budget_ns, known(rank.budget_ns.exposed_comm)
    yield Time(Term("compute") if comm_ns is not None else "busy", parts.compute, Hue.COMPUTE)
    yield from times_of(rank.compute_by_class_ns, Hue.COMPUTE, 1)
    if comm_ns is not None:
        yield Time(Term("exposed_comm"), comm_ns, Hue.COMMUNICATION)
        yield from times_of(rank.exposed_comm_by_kind_ns or {}, Hue.COMMUNICATION, 1)
    yield Time(Term("exposed_copy"), parts.exposed_copy, Hue.COPY)
    yield from times_of(rank.exposed_copy_by_kind_ns, Hue.COPY, 1)
    yield Time(Term("idle"), parts.idle, Hue.IDLE)


def lost_time(rank: Rank) -> Blocks:
    """Why no compute ran."""
    absent = rank.absent_ns
    if isinstance(absent, Missing):
        yield statement(f"Unknown: {absent.reason}.")
    if not absent:
        return
    total = Time(Term("absent_ns"), rank.budget_ns.window - rank.budget_ns.compute)
    yield times_table("Time without compute", scale_of(rank), _reasons(absent), total)
    if by := rank.absent_decided_by_frac:
        known_by = f"{percent(by.recorded)} recorded dependency, {percent(by.inferred)} inferred"
        yield statement(f"{known_by}, {percent(by.none)} unknown.", "Rests on")
    if masked_ns := rank.masked_ns:
        yield statement(
            f"In {scale_of(rank).ms(masked_ns)} ms of the late launches the late kernel also "
            "waited for another kernel; a faster host alone would not recover them."
        )
    yield from address_blocks(rank)


def _reasons(absent: Absent) -> Iterator[Time]:
    delays = {
        "arrival": absent.launch_latency.arrival,
        "kernel_gap": absent.launch_latency.kernel_gap,
    }
    families = (
        ("launch_starved", absent.launch_starved, Hue.HOST),
        ("blocking", absent.blocking, Hue.COMMUNICATION),
        ("launch_latency", delays, Hue.IDLE),
    )
    for key, parts, hue in families:
        if total_ns := sum(parts.values()):
            yield Time(Term(key), total_ns, hue)
            yield from times_of(parts, hue, 1)
    for key in ("graph_opaque", "dependency_stalled", "trailing"):
        if time_ns := getattr(absent, key):
            yield Time(Term(key), time_ns, Hue.IDLE)
