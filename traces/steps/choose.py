"""Steps of one rank: the user's choice, else step ranges, the optimizer, the period, rounds of the
host, else one window.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from traces.beginning import ends_here, starting_ns
from traces.errors import EmptySelection
from traces.groups import passing, places_of_each
from traces.intervals import union
from traces.limits import MOST
from traces.names.frames import public_span
from traces.names.ranges import family, public_call
from traces.nearest import nearest_names
from traces.patterns import Pattern
from traces.sections.steps import StepSource
from traces.steps.borders import HostOrder
from traces.steps.found import Found, Steps, drop, from_steps, one_window
from traces.steps.nvtx import matching_ranges, nvtx_steps, steps_of
from traces.steps.optimizer import optimizer_steps
from traces.steps.period import period_steps, replay_steps, shows_steps
from traces.steps.rounds import round_steps
from traces.steps.rules import (
    disagreement_of,
    leave_out_hiccups,
    leave_out_these,
    leave_out_unusual,
)
from traces.steps.selection import Selection, seconds
from traces.steps.units import mark_units
from traces.timeline import RankTimeline
from traces.training import Roles, judge_training, roles_of

Ways = tuple[tuple[StepSource, Found | None], ...]


def choose_steps(rank: RankTimeline, selection: Selection) -> Steps:
    """Find the steps of a rank and those to use.

    Raises `EmptySelection`, naming the nearest there is, where the user's choice matches nothing.
    """
    roles = roles_of(rank)
    training, evidence = judge_training(roles)
    if selection.by_time:
        steps = _given_window(rank, selection)
    elif selection.whole:
        steps = _whole_window(rank)
    elif selection.nvtx is not None:
        steps = leave_out_hiccups(_given_steps(rank, selection.nvtx))
    else:
        steps = _inferred_steps(rank, roles)
    if selection.left_out_steps is not None:
        steps = leave_out_these(steps, selection.left_out_steps)
    if selection.steps is not None:
        steps = _sliced(steps, selection.steps)
    starts_ns, extent_ns = starting_ns(rank), _recorded(rank)
    return replace(
        steps,
        extent_ns=extent_ns,
        preparing=_preparing(rank, extent_ns[0], int(steps.windows.start_ns[0])),
        starting_ns=starts_ns,
        whole=starts_ns is not None and ends_here(rank),
        training=training,
        training_evidence=evidence,
    )


def _inferred_steps(rank: RankTimeline, roles: Roles) -> Steps:
    """Steps by the first way that finds any; the ways after it are asked whether they agree."""
    order = HostOrder(rank.activities)
    ways: Ways = (
        ("nvtx", nvtx_steps(rank, order)),
        ("optimizer", optimizer_steps(rank, order, roles)),
        ("graph", replay_steps(rank, order)),
        ("period", period_steps(rank, order, roles)),
    )
    if not rank.activities.is_launched.any():
        # without launches a range lies on the host's clock only, ahead of its work
        ways = (*ways[1:], ways[0])
    usable = _usable(rank, ways)
    if usable:
        chosen = leave_out_hiccups(_finest(usable))
        if chosen.source == "period" and not shows_steps(rank, roles, chosen):
            chosen = replace(chosen, unit="block")
        return replace(chosen, disagreement=disagreement_of(usable))
    for rounds in _usable(rank, (("period", round_steps(rank, order, roles)),)):
        return replace(leave_out_hiccups(rounds), unit="block")
    return _whole_window(rank)


def _usable(rank: RankTimeline, ways: Ways) -> list[Steps]:
    usable = []
    for source, way in ways:
        if way is not None:
            recorded = mark_units(rank, way, leave_out_unusual(rank, way))
            steps = from_steps(source, way.what, tuple(recorded))
            if steps.used:
                usable.append(steps)
    return usable


def _whole_window(rank: RankTimeline) -> Steps:
    return one_window("none", "first to last GPU activity", *_extent(rank))


def _finest(ways: list[Steps]) -> Steps:
    """The first way, unless it took a single range for a step in which an optimizer steps often."""
    first = ways[0]
    for way in ways:
        if way.source == "optimizer" and len(way.used) > 1 and len(first.recorded) == 1:
            return way
    return first


def _given_steps(rank: RankTimeline, pattern: Pattern) -> Steps:
    what = f"--nvtx {pattern.text!r}"
    wanted = passing(pattern.search, rank.columns.range_texts)
    ranges = matching_ranges(rank, wanted, what)
    if ranges is None:
        raise EmptySelection(f"{what} matches no range. {_nearest(rank, pattern.text)}")
    steps = from_steps("user", what, tuple(steps_of(ranges, HostOrder(rank.activities)).steps))
    if not steps.used:
        raise EmptySelection(
            f"{what} matches {len(ranges)} ranges, but no GPU work was launched in them. "
            f"{_nearest(rank, pattern.text)}"
        )
    return steps


def _given_window(rank: RankTimeline, selection: Selection) -> Steps:
    first, last = _extent(rank)
    start = first if selection.start_ns is None else selection.start_ns
    end = last if selection.end_ns is None else selection.end_ns
    if start >= last or end <= first:
        raise EmptySelection(
            f"--start/--end choose {seconds(start)} to {seconds(end)}, where nothing ran. "
            f"GPU activity lies between {seconds(first)} and {seconds(last)}."
        )
    unrecorded_ns = max(0, first - start) + max(0, end - last)
    # what was not recorded is not idle, so it must not fill the window
    if unrecorded_ns > MOST.value * (end - start):
        raise EmptySelection(
            f"--start/--end choose {seconds(start)} to {seconds(end)}, most of it not recorded. "
            f"GPU activity lies between {seconds(first)} and {seconds(last)}; a number without "
            "unit is seconds."
        )
    return one_window("user", "the time given", start, end)


def _nearest(rank: RankTimeline, wanted: str) -> str:
    texts = rank.columns.range_texts
    counts = Counter(family(texts[code]) for code in rank.columns.ranges.text.tolist() if code >= 0)
    if not counts:
        return f"The trace has no ranges: {rank.cure('ranges')}."
    common = [text for text, _ in counts.most_common()]
    near = nearest_names(wanted, common, 3) or common[:3]
    return "The nearest there are: " + ", ".join(repr(text[:60]) for text in near) + "."


def _sliced(steps: Steps, chosen: tuple[int, int | None]) -> Steps:
    """Only the recorded steps from A to B, B excluded; ones left out for another reason stay left
    out.
    """
    if not steps.recorded:
        raise EmptySelection(
            "--steps needs recorded steps, and none were found. Name a range that repeats with "
            "--nvtx REGEX, or choose times with --start and --end."
        )
    first, end = chosen[0], len(steps.recorded) if chosen[1] is None else chosen[1]
    recorded = [
        step if first <= step.index < end else drop(step, f"not in --steps {first}:{end}")
        for step in steps.recorded
    ]
    what = f"{steps.what}, --steps {first}:{end}"
    slow = tuple(index for index in steps.slow if first <= index < end)
    sliced = replace(steps.with_recorded(recorded), source="user", what=what, slow=slow)
    if not sliced.used:
        left = {step.index: step.dropped for step in steps.dropped}
        usable = [step.index for step in steps.used]
        raise EmptySelection(
            f"--steps {first}:{end} holds no usable step. Recorded are 0 to "
            f"{len(steps.recorded) - 1}"
            + (f", left out {left}" if left else "")
            + (f"; usable are {usable[0]} to {usable[-1]}." if usable else ".")
        )
    return sliced


def _recorded(rank: RankTimeline) -> tuple[int, int]:
    """From the first call, range or GPU work of the rank's process to the end of its GPU work.

    A host may prepare its first batch for seconds; what it does when its GPU is done is no part of
    the run.
    """
    first_ns, last_ns = _extent(rank)
    for table in (rank.calls, rank.columns.ranges):
        mine = rank.may_be_own(table)
        first_ns = min(first_ns, int(table.start_ns[mine].min(initial=first_ns)))
    return first_ns, last_ns


def _preparing(rank: RankTimeline, first_ns: int, until_ns: int) -> tuple[str, int]:
    """The range that may be named in which the process is for most of a time, and for how long; of
    several the shortest, which lies in the others. Else a single call; empty where there is none.
    """
    ranges, texts = rank.columns.ranges, rank.columns.range_texts
    ranges = ranges.take(
        rank.may_be_own(ranges) & (ranges.start_ns < until_ns) & (ranges.text >= 0)
    )
    found = ("", 0)
    for text, same in places_of_each(ranges.text):
        held = union(ranges.start_ns[same], np.minimum(ranges.end_ns[same], until_ns))
        if held.total_ns > MOST.value * (until_ns - first_ns) and not 0 < found[1] < held.total_ns:
            frame = public_span(texts[text])
            if frame and frame.name:
                found = frame.name, held.total_ns
    calls = rank.calls
    calls = calls.take(rank.may_be_own(calls) & (calls.name >= 0))
    took_ns = np.minimum(calls.end_ns, until_ns) - np.maximum(calls.start_ns, first_ns)
    for longest in np.flatnonzero(took_ns > MOST.value * (until_ns - first_ns))[:1].tolist():
        if not found[1] and (name := public_call(rank.columns.call_names[calls.name[longest]])):
            found = name, int(took_ns[longest])
    return found


def _extent(rank: RankTimeline) -> tuple[int, int]:
    return int(rank.activities.start_ns.min()), int(rank.activities.end_ns.max())
