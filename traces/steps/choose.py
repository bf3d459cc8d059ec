"""Steps of one rank: what the user asks for, else NVTX step ranges, else one window."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from traces.errors import EmptySelection
from traces.names.ranges import family
from traces.steps.borders import HostOrder
from traces.steps.found import Step, Steps, drop, from_steps, one_window
from traces.steps.nvtx import HostRanges, matching_ranges, step_named_ranges, steps_of
from traces.steps.rules import leave_out_partial, leave_out_warm_up
from traces.steps.selection import Selection
from traces.timeline import RankTimeline


def choose_steps(rank: RankTimeline, selection: Selection) -> Steps:
    """Find the steps of a rank and those to use.

    Raises `EmptySelection`, naming the nearest there is, where the user's choice matches nothing.
    """
    if selection.by_time:
        return _given_window(rank, selection)
    order = HostOrder(rank.activities)
    if selection.nvtx is not None:
        found = _given_ranges(rank, selection)
        recorded, _ = steps_of(found, order)
        recorded = [drop(step, "no GPU work") if step.length_ns == 0 else step for step in recorded]
        steps = from_steps("user", found.what, tuple(recorded))
    else:
        steps = _steps_by_name(rank, order)
    return steps if selection.steps is None else _sliced(steps, selection.steps)


def _steps_by_name(rank: RankTimeline, order: HostOrder) -> Steps:
    found = step_named_ranges(rank, order)
    if found is not None:
        recorded = leave_out_warm_up(leave_out_partial(*steps_of(found, order)))
        steps = from_steps("nvtx", found.what, tuple(recorded))
        if steps.used:
            return steps
    first, last = _extent(rank)
    return one_window("none", "first to last GPU activity", first, last)


def _given_window(rank: RankTimeline, selection: Selection) -> Steps:
    first, last = _extent(rank)
    start = first if selection.start_ns is None else selection.start_ns
    end = last if selection.end_ns is None else selection.end_ns
    if start >= last or end <= first or start >= end:
        raise EmptySelection(
            f"--start/--end choose {start / 1e9:.6f}s to {end / 1e9:.6f}s, where nothing ran. "
            f"GPU activity lies between {first / 1e9:.6f}s and {last / 1e9:.6f}s."
        )
    return one_window("user", "the time given", start, end)


def _given_ranges(rank: RankTimeline, selection: Selection) -> HostRanges:
    assert selection.nvtx is not None
    texts = rank.columns.range_texts
    wanted = np.array([selection.nvtx.search(text) is not None for text in texts], dtype=np.bool_)
    found = matching_ranges(rank, wanted, f"--nvtx {selection.nvtx.pattern!r}")
    if found is None:
        raise EmptySelection(
            f"--nvtx {selection.nvtx.pattern!r} matches no range. {_nearest(rank, selection)}"
        )
    return found


def _nearest(rank: RankTimeline, selection: Selection) -> str:
    """The range texts most like the expression, or the most frequent ones."""
    texts = rank.columns.range_texts
    counts = Counter(family(texts[code]) for code in rank.columns.ranges.text.tolist() if code >= 0)
    if not counts or selection.nvtx is None:
        return "The trace has no NVTX ranges; record with --trace=cuda,nvtx."
    near = get_close_matches(selection.nvtx.pattern, list(counts), n=3, cutoff=0.4)
    near = near or [text for text, _ in counts.most_common(3)]
    return "The nearest there are: " + ", ".join(repr(text[:60]) for text in near) + "."


def _sliced(steps: Steps, chosen: tuple[int, int | None]) -> Steps:
    """Only the recorded steps from A to B, B excluded; ones left out for another reason stay left out."""
    if not steps.recorded:
        raise EmptySelection(
            "--steps needs recorded steps, and none were found. Name a range that repeats with --nvtx REGEX, "
            "or choose times with --start and --end."
        )
    first, end = chosen[0], len(steps.recorded) if chosen[1] is None else chosen[1]
    recorded = tuple(_chosen_only(step, first, end) for step in steps.recorded)
    sliced = replace(from_steps("user", f"{steps.what}, --steps {first}:{end}", recorded))
    if not sliced.used:
        left = {step.index: step.dropped for step in steps.dropped}
        usable = [step.index for step in steps.used]
        raise EmptySelection(
            f"--steps {first}:{end} holds no usable step. Recorded are 0 to {len(steps.recorded) - 1}"
            + (f", left out {left}" if left else "")
            + (f"; usable are {usable[0]} to {usable[-1]}." if usable else ".")
        )
    return sliced


def _chosen_only(step: Step, first: int, end: int) -> Step:
    return step if first <= step.index < end else drop(step, f"not in --steps {first}:{end}")


def _extent(rank: RankTimeline) -> tuple[int, int]:
    return int(rank.activities.start_ns.min()), int(rank.activities.end_ns.max())
