"""Which recorded steps are left out, each by name and reason, and which of them are hiccups."""

from bisect import bisect_left
from dataclasses import replace
from itertools import compress, filterfalse
from statistics import median
from typing import Final

import numpy as np

from traces.account.calls import CallKind, kinds_of_calls
from traces.arrays import BoolArray, FloatArray, IntArray, ints, summed
from traces.groups import passing
from traces.intervals import covered_ns, instants_of
from traces.limits import FEWEST, HALF_A_WALL, MOST, WALL, Limit
from traces.patterns import compiled
from traces.spelling import counted, duration, percent
from traces.steps.found import Found, Step, Steps, drop, lengths_ns, median_ns, used_of
from traces.timeline import RankTimeline

SLOW_MAD: Final = Limit(
    3.0, "scaled median absolute deviations", "usual outlier rule; 1.4826 scales to sigma"
)
SLOW_STEPS: Final = Limit(8, "steps", "measurement.md: with fewer the deviation is not known")
EXCEPTIONS: Final = Limit(
    0.2,
    "fraction of the steps",
    "ours: loaders of five workers hold up one step in five, which is how the run goes",
)
FAR: Final = Limit(
    0.2, "fraction of the median step", "measurement.md: data loaders alternate by far more"
)
MANY: Final = Limit(
    0.25,
    "fraction of the steps",
    "measurement.md: what a quarter of the steps show is no exception",
)
_SCALE: Final = 1.4826
_CAPTURES: Final = compiled("cu(?:da)?StreamBeginCapture")
_INITIALISING: Final = (CallKind.INIT, CallKind.ALLOCATE, CallKind.FREE)
_FLUSHES: Final = compiled("(?i)flush|stop")


def leave_out_unusual(rank: RankTimeline, way: Found) -> list[Step]:
    """The rules all ways share, partial steps aside: graph capture, profiler flush, warm-up."""
    rows = rank.columns.overheads
    flushes = passing(_FLUSHES.search, rows.names)[rows.name] & rank.may_be_own(rows)
    start_ns, end_ns = rows.start_ns[flushes], rows.end_ns[flushes]
    steps = [_without_flush(step, start_ns, end_ns) for step in leave_out_capture(rank, way)]
    return leave_out_warm_up(steps, _initialising_ns(rank, way))


def leave_out_capture(rank: RankTimeline, way: Found) -> list[Step]:
    """Drop steps in which the rank's process began to capture a CUDA graph: the model runs
    otherwise.
    """
    calls, names = rank.calls, rank.columns.call_names
    begins = passing(_CAPTURES.match, names)
    at_ns = np.sort(calls.start_ns[begins[calls.name] & rank.may_be_own(calls)])
    counts = np.searchsorted(at_ns, way.host_end_ns) - np.searchsorted(at_ns, way.host_start_ns)
    return [
        drop(step, "graph capture: cudaStreamBeginCapture was called in it") if count > 0 else step
        for step, count in zip(way.steps, counts.tolist(), strict=True)
    ]


def _without_flush(step: Step, start_ns: IntArray, end_ns: IntArray) -> Step:
    """Drop a step at whose start or end the profiler wrote out its buffers, from start to end, for
    a good part of the step.
    """
    at_border = (start_ns <= step.start_ns) | (step.end_ns <= end_ns)
    within_ns = np.minimum(end_ns, step.end_ns) - np.maximum(start_ns, step.start_ns)
    longest_ns = int(within_ns[at_border].max(initial=0))
    if longest_ns <= HALF_A_WALL.value * step.length_ns:
        return step
    return drop(step, f"profiler flush: {longest_ns} ns of it at its border")


def leave_out_partial(steps: list[Step], kernel_counts: list[int]) -> list[Step]:
    """Drop steps without GPU work, and those whose kernel sequence is shorter than the others'.

    One whose sequence is longer, with an evaluation in it, say, is marked. Shorter ones that take
    turns with the others and are alike are whole: no recording cuts two at one place.
    """
    ordered = sorted(count for count in kernel_counts if count)
    others_of = {count: _median_without(ordered, count) for count in ordered}

    def is_part(count: int) -> bool:
        return count < (1 - HALF_A_WALL.value) * (others_of[count] or 0)

    parts = {*filter(is_part, ordered)}
    of_part = np.isin(kernel_counts, [*parts])
    shorter_ns = ints(lengths_ns(compress(steps, of_part)))
    if _at_one_rhythm(of_part, 2) and (
        min(parts) >= (1 - HALF_A_WALL.value) * max(parts)
        and shorter_ns.min() > MOST.value * shorter_ns.max()
    ):
        parts = set()
    whole = [*filterfalse(parts.__contains__, ordered)]  # a part is nothing to have more than

    def judged(step: Step, count: int) -> Step:
        if count == 0 or step.length_ns <= 0:
            return drop(step, "no GPU work")
        if count in parts:
            return drop(step, f"partial: {count} kernels where the others have {others_of[count]}")
        others = _median_without(whole, count)
        return replace(
            step, has_more=others is not None and count > (1 + HALF_A_WALL.value) * others
        )

    return [*map(judged, steps, kernel_counts)]


def _median_without(ordered: list[int], count: int) -> int | None:
    """The lower median of rising numbers without one of them; None where no other is left.

    The lower one: of three steps that with an evaluation in it is not what the other two are held
    against.
    """
    others = len(ordered) - 1
    if others < 1:
        return None
    middle = (others - 1) // 2
    return ordered[middle + (middle >= bisect_left(ordered, count))]


def leave_out_warm_up(steps: list[Step], initialising_ns: IntArray) -> list[Step]:
    """Drop the first used step where it is longer than every other by over 5 % and that is its own.

    It is where at least two others lie together, or where calls of initialisation,
    `initialising_ns` in each step, make up over half of its excess. Where the others alternate it
    has to be far beyond all of them.
    """
    used = [place for place, step in enumerate(steps) if step.dropped is None]
    if len(used) < 2:
        return steps
    first, later = used[0], used[1:]
    first_ns, *lengths = lengths_ns(used_of(steps))
    if first_ns <= (1 + HALF_A_WALL.value) * max(lengths):
        return steps
    more_ns = first_ns - median(lengths)
    loading_ns = initialising_ns[first] - np.median(initialising_ns[later])
    initialises = bool(loading_ns > MOST.value * more_ns)
    if alternate(lengths):
        # a rhythm comes back to its longest step
        is_warm_up = max(lengths) < MOST.value * first_ns
    else:
        is_warm_up = initialises or _alike(lengths, more_ns)
    if not is_warm_up:
        return steps
    reason = f"warm-up: {percent(more_ns / median(lengths))} slower than the rest"
    result = [*steps]
    result[first] = replace(drop(steps[first], reason), is_warm_up=True, initialises=initialises)
    return result


def _alike(lengths_ns: list[int], more_ns: float) -> bool:
    """Whether at least two lengths lie together, by themselves or beside an excess that is far
    larger.
    """
    low, high = np.percentile(lengths_ns, (25, 75))
    limit_ns = max(HALF_A_WALL.value * median(lengths_ns), WALL.value * more_ns)
    return len(lengths_ns) >= 2 and bool(high - low < limit_ns)


def alternate(lengths_ns: list[int]) -> bool:
    """Whether steps have a rhythm, as data loaders give them: then none of them is the odd one.

    A single one is an exception, of however few.
    """
    middle = median(lengths_ns)
    far = np.abs(ints(lengths_ns) - middle) > FAR.value * middle
    return summed(far) >= max(2, MANY.value * len(far)) or _at_one_rhythm(far, FEWEST.whole)


def _at_one_rhythm(far: BoolArray, rounds: int) -> bool:
    """Whether every so many-th step of all is far off, as the slowest of five and more loaders
    makes it.
    """
    places = np.flatnonzero(far).tolist()
    if len(places) < rounds:
        return False
    apart = np.diff(places).tolist()
    return max(places[0], len(far) - places[-1], *apart) <= min(apart)


def _initialising_ns(rank: RankTimeline, way: Found) -> IntArray:
    """How long the rank's process was in calls that load modules or allocate, in each step on the
    host.
    """
    calls = rank.calls
    of_kind = np.isin(kinds_of_calls(rank)[0], _INITIALISING) & rank.may_be_own(calls)
    return covered_ns(way.host_start_ns, way.host_end_ns, instants_of(calls, of_kind))


def leave_out_hiccups(steps: Steps) -> Steps:
    """Leave out used steps that are far longer than the others: counted apart, in no other figure.

    Of few steps (under `SLOW_STEPS`) these are fewer than half, longer than each that holds no more
    than the others (`units.py`); of many the outliers of the usual rule, few enough to be
    exceptions, and longer by a tenth unless they hold more. What comes at a rhythm is how the run
    goes: then none is left out.
    """
    lengths = steps.lengths_ns()
    middle, few = median(lengths), len(lengths) < SLOW_STEPS.value
    limit_ns: float | FloatArray
    if few:
        usual_ns = max(
            (step.length_ns for step in steps.used if not step.has_more), default=max(lengths)
        )
        limit_ns, most = (1 + HALF_A_WALL.value) * usual_ns, (len(lengths) - 1) // 2
    else:
        spread = _SCALE * float(np.median(np.abs(ints(lengths) - middle)))
        has_more = [step.has_more for step in steps.used]
        least_ns = np.where(has_more, HALF_A_WALL.value, WALL.value) * middle
        limit_ns = middle + np.maximum(SLOW_MAD.value * spread, least_ns)
        most = max(int(EXCEPTIONS.value * len(lengths)), 1)
    far = ints(lengths) > limit_ns
    if (
        summed(far) > most
        or _at_one_rhythm(far, 2 if few else FEWEST.whole)
        or (not few and alternate(lengths))
    ):
        return steps
    recorded, slow = [*steps.recorded], []
    for step in compress(steps.used, far):
        more = percent(step.length_ns / middle - 1)
        recorded[step.index] = drop(step, f"hiccup: {more} longer than the median")
        slow.append(step.index)
    return replace(steps.with_recorded(recorded), slow=tuple(slow))


def leave_out_these(steps: Steps, indices: frozenset[int]) -> Steps:
    """Leave out these of the used steps and hiccups, and no other hiccup."""
    recorded = [*steps.recorded]
    for index in set(steps.slow) - indices:
        recorded[index] = replace(recorded[index], dropped=None)
    for index in indices:
        recorded[index] = drop(recorded[index], "hiccup: the other run leaves out as many")
    return replace(steps.with_recorded(recorded), slow=tuple(sorted(indices)))


def disagreement_of(ways: list[Steps]) -> str | None:
    """In words, which ways give another median step than the first; None where all agree."""
    chosen, *others = ways
    usual_ns, differing = median_ns(leave_out_hiccups(chosen).lengths_ns()), []
    for steps in others:
        length_ns = median_ns(leave_out_hiccups(steps).lengths_ns())
        used = counted(len(steps.used), "step")
        if abs(length_ns - usual_ns) > HALF_A_WALL.value * usual_ns:
            differing.append(f"{steps.what}: {duration(length_ns)} ({used})")
    if not differing:
        return None
    used = counted(len(chosen.used), "step")
    return f"{chosen.what}: median step {duration(usual_ns)} ({used}), but " + "; ".join(differing)
