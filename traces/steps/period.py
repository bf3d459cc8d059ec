"""Steps from what repeats: kernel names on the busiest compute stream, or equal graph replays.

The period is the lag at which most of a sequence of codes equals itself. Of graphs recorded whole,
n equal replays are n steps whose content is not seen.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from traces.account.host import input_copies
from traces.arrays import (
    NOWHERE,
    BoolArray,
    FloatArray,
    IntArray,
    distinct,
    ints,
    row_by_row,
    summed,
)
from traces.frozen import frozen
from traces.groups import group_of
from traces.launchers import equal_replays
from traces.launches import grid_numbers
from traces.limits import ENOUGH, FEWEST, HALF_A_WALL, MOST, NEARLY_ALL, Limit
from traces.spelling import percent
from traces.steps.borders import HostOrder, found_between, step_borders
from traces.steps.found import Found, Step, Steps, drop
from traces.timeline import RankTimeline, Source
from traces.training import Roles

TIED: Final = Limit(
    0.002,
    "fraction of the kernels beyond chance",
    "ours: multiples of a period match as well; the least counts",
)
_MOST: Final = 64
"""How many lags are compared code by code; the sequence has as many as half its length."""
_CLOSE: Final = 0.01
"""Lags whose estimate is this near the best are candidates, the shortest first: a lag's multiples
are too."""


def matching_lags(codes: IntArray, shortest: int, longest: int) -> tuple[FloatArray, IntArray]:
    """Matches and lags in [shortest, longest] at which the codes, shape (n,), match themselves
    best, best first; shape (k,) each.

    A match is the share of places that equal the place one lag later, on a scale where 0 is what
    chance gives and 1 is all. A correlation of random numbers, one per code, finds candidates among
    all lags in n log n; the match itself is counted.
    """
    longest = min(longest, len(codes) - 1)
    if longest < shortest:
        return np.empty(0), NOWHERE
    estimate = _correlation(codes, longest)[shortest - 1 :]
    most = min(_MOST, len(estimate))
    best = np.argpartition(-estimate, most - 1)[:most]
    close = np.flatnonzero(estimate >= estimate.max() - _CLOSE)[:_MOST]
    # that two picked at random are equal
    chance = float(((np.bincount(codes) / len(codes)) ** 2).sum())
    lags = distinct(np.append(best, close)) + shortest
    match = np.array([match_at(codes, lag, chance) for lag in lags.tolist()])
    first = int(np.argmax(match))
    least = _least_divisor(codes, int(lags[first]), float(match[first]), shortest, chance)
    if least not in lags:
        lags, match = np.append(lags, least), np.append(match, match_at(codes, least, chance))
    order = np.lexsort((lags, -match))
    return match[order], lags[order]


def _least_divisor(codes: IntArray, lag: int, match: float, shortest: int, chance: float) -> int:
    """The lag divided by primes as long as the result matches as well."""
    prime, left = 2, lag
    while left > 1:
        if left % prime:
            prime += 1
            if prime * prime > left:  # of what is left only itself
                prime = left
            continue
        left //= prime
        if lag // prime >= shortest and match_at(codes, lag // prime, chance) >= match - TIED.value:
            lag //= prime
    return lag


def match_at(codes: IntArray, lag: int, chance: float) -> float:
    """Match at one lag, 0 for what chance gives and 1 for all; 0 where chance alone gives all."""
    if chance >= 1:
        return 0.0
    return (float(np.mean(codes[lag:] == codes[:-lag])) - chance) / (1 - chance)


def _fast_size(least: int) -> int:
    """The least product of powers of 2, 3 and 5 that is so large: such transforms are fast."""
    odd: list[int] = [3**threes * 5**fives for threes in range(20) for fives in range(14)]
    return min(number << (-(-least // number) - 1).bit_length() for number in odd)


def _correlation(codes: IntArray, longest: int) -> FloatArray:
    """Estimated match at the lags 1 to `longest`, 1 where all places match."""
    drawn = np.random.default_rng(0).standard_normal(int(codes.max()) + 1)[codes]
    signal = drawn - drawn.mean()
    size = _fast_size(len(signal) + longest)
    power = np.abs(np.fft.rfft(signal, size)) ** 2
    overlap = len(signal) - np.arange(1, longest + 1)
    variance = float(np.mean(signal**2)) or 1.0
    return np.fft.irfft(power, size)[1 : longest + 1] / overlap / variance


def replay_steps(rank: RankTimeline, order: HostOrder) -> Found | None:
    """Equal replays that make up most of the work, each with what was launched up to the next; else
    None.

    A step begins with the copies of its input, so that the wait for these is its own.
    """
    replays = equal_replays(rank.activities)
    if not len(replays):
        return None
    start_ns = _with_input(rank, np.sort(rank.activities.launch_ns[replays]))
    end_ns = np.append(start_ns[1:], order.launch_ns[-1] + 1)
    return found_between(order, start_ns, end_ns, "equal CUDA graph replays, recorded whole")


def _with_input(rank: RankTimeline, replay_ns: IntArray) -> IntArray:
    """When the first input copy since the last replay was launched, else the replay itself, shape
    (n,).
    """
    copies_ns = np.sort(rank.activities.launch_ns[input_copies(rank)])
    feeds = np.searchsorted(replay_ns, copies_ns)
    first_count, usual_count = summed(feeds == 0), summed(feeds == 1)
    others = max(first_count - usual_count, 0)
    copies_ns, feeds = copies_ns[others:], feeds[others:]
    fed = feeds < len(replay_ns)
    start_ns = replay_ns.copy()
    start_ns[feeds[fed][::-1]] = copies_ns[fed][::-1]  # of equal places the last one written stays
    return start_ns


_LEAST_FRAC: Final = 1 - HALF_A_WALL.value


@frozen
class Sequence:
    """Compute on one stream in order of start: which activity each is, and its code, shape (n,)."""

    places: IntArray
    codes: IntArray
    what: str


def period_steps(rank: RankTimeline, order: HostOrder, roles: Roles) -> Found | None:
    """Way 4: what repeats on the busiest compute stream; None rather than noise.

    By name and grid, else by name alone, since routing changes grids.
    """
    places = _busiest_compute_stream(rank)
    layered = layered_of(rank, roles)
    for sequence in sequences_of(rank, places):
        longest = len(sequence.codes) // 2  # what was recorded once does not repeat
        match, lags = matching_lags(sequence.codes, 1, longest)
        left = match >= NEARLY_ALL.value
        while left.any():
            tied = left & (match >= match[left].max() - TIED.value)
            lag = int(lags[tied].min())
            left &= lags != lag
            periods = _cut_by_period(order, rank, sequence, lag)
            if _is_step(periods, order, roles, sequence, layered):
                unsure = roles.backward.any() and not roles.optimizer.any()
                known = (
                    "; it may be a microbatch, as no optimizer kernel is known" if unsure else ""
                )
                return as_steps(
                    periods, order, f"{sequence.what}, {lag} kernels long, {periods.why}{known}"
                )
            if not roles.optimizer.any():  # several layers are no step where one is none
                left &= lags % lag != 0
    return None


def layered_of(rank: RankTimeline, roles: Roles) -> BoolArray:
    """Which activities are of a layer or an optimizer, as far as their names tell."""
    of_role = roles.forward | roles.backward | roles.optimizer
    return of_role | (rank.activities.is_compute & ~rank.of_class("elementwise", "other"))


def shows_steps(rank: RankTimeline, roles: Roles, steps: Steps) -> bool:
    """Whether what repeats is a step: with an optimizer, or with an input copied in most of them.

    A copy just before the first kernel may lie in the one before.
    """
    if roles.optimizer.any():
        return True
    rows = rank.activities
    place = steps.used_at(rows.start_ns[rows.copies("memcpy_h2d")])
    return len(distinct(place[place >= 0])) > MOST.value * len(steps.used)


def _busiest_compute_stream(rank: RankTimeline) -> IntArray:
    rows = rank.activities
    compute = np.flatnonzero(rows.is_compute)
    if not len(compute):
        return compute
    streams = distinct(rows.stream_id[compute])
    place = np.searchsorted(streams, rows.stream_id[compute])
    work = np.bincount(place, weights=rows.length_ns[compute], minlength=len(streams))
    return compute[place == np.argmax(work)]


def sequences_of(rank: RankTimeline, places: IntArray) -> list[Sequence]:
    """Activities, by place, in their order: by name and grid, and by name alone."""
    rows, kernels = rank.activities, rank.kernels
    name = rows.name[places]
    is_kernel = rows.source[places] == Source.KERNEL
    grid = np.full(len(places), -1)  # whole graph replays have none
    grid[is_kernel] = grid_numbers(kernels.shapes)[kernels.shape[rows.row[places[is_kernel]]]]
    return [
        Sequence(places, group_of(grid, name), "repeating sequence of kernel names and grids"),
        Sequence(places, group_of(name), "repeating sequence of kernel names"),
    ]


@frozen
class Periods:
    """A sequence cut every `lag` kernels: arrays of shape (n,), and why it was cut there, in
    words.
    """

    lag: int
    why: str
    host_start_ns: IntArray
    host_end_ns: IntArray
    counts: IntArray
    alike: FloatArray


def _cut_by_period(order: HostOrder, rank: RankTimeline, sequence: Sequence, lag: int) -> Periods:
    """Cut the sequence every `lag` kernels, from the one after the largest regular gap on."""
    rows, places, codes = rank.activities, sequence.places, sequence.codes
    phase, why = _cut(rows.start_ns[places], rows.end_ns[places], lag)
    starts = np.arange(phase, len(places), lag)
    if phase:
        starts = np.append(0, starts)
    launch_ns = order.counted_launch_ns[places]
    cuts = np.maximum.accumulate(np.append(launch_ns[starts], launch_ns[-1] + 1))
    # a cut one has its end
    expected = _model(codes[phase:], lag)[(np.arange(len(codes)) - phase) % lag]
    counts = np.diff(starts, append=len(codes))
    alike = np.add.reduceat(ints(codes == expected), starts) / counts
    kept = counts > HALF_A_WALL.value * lag
    return Periods(lag, why, cuts[:-1][kept], cuts[1:][kept], counts[kept], alike[kept])


def as_steps(periods: Periods, order: HostOrder, what: str) -> Found:
    """Periods as steps, of which those that are short or other work are left out; `what`: in
    words.
    """
    way = found_between(order, periods.host_start_ns, periods.host_end_ns, what)
    steps = []
    figures = row_by_row(periods.counts, periods.alike)
    for step, (count, alike) in zip(way.steps, figures, strict=True):
        steps.append(_judged(step, count, periods.lag, alike))
    return replace(way, steps=steps)


def _cut(start_ns: IntArray, end_ns: IntArray, lag: int) -> tuple[int, str]:
    """How many kernels lie before the first step, and why there, in words.

    Where whole periods were recorded and no more, the recording began with a step; else a step
    begins after the largest gap that returns in most periods.
    """
    gap_ns = np.full(-(-len(start_ns) // lag) * lag, -1)
    gap_ns[1 : len(start_ns)] = np.maximum(start_ns[1:] - np.maximum.accumulate(end_ns)[:-1], 0)
    by_phase = np.sort(gap_ns.reshape(-1, lag), axis=0)
    unknown = np.sum(by_phase < 0, axis=0)
    middle = by_phase[unknown + (len(by_phase) - unknown - 1) // 2, np.arange(lag)]
    phase, left_over = int(np.argmax(middle)), len(start_ns) % lag
    if left_over <= HALF_A_WALL.value * lag and phase > left_over:
        return 0, "from the first recorded"
    others_ns = np.delete(middle, phase).max(initial=0)  # a period of one kernel has no other gap
    if others_ns > MOST.value * middle[phase]:
        return phase, "cut somewhere, as no gap stands out"
    return phase, "from the largest gap that returns"


def _model(codes: IntArray, lag: int) -> IntArray:
    """The period that is most like the one after it; codes from the first step's start on."""
    periods = codes[: len(codes) // lag * lag].reshape(-1, lag)
    alike = np.mean(periods[1:] == periods[:-1], axis=1)
    return periods[int(np.argmax(alike)) if len(alike) else 0]


def _judged(step: Step, count: int, lag: int, alike: float) -> Step:
    """Leave out a piece of `count` kernels that is too short, or of which too few are as in the
    model.
    """
    if count < _LEAST_FRAC * lag:
        return drop(step, f"partial: {count} kernels where the others have {lag}")
    if alike < NEARLY_ALL.value:
        return drop(step, f"other work: {percent(alike)} of its kernels are as in the others")
    if step.length_ns > 0:
        return step
    return drop(step, "no GPU work")


def _is_step(
    periods: Periods, order: HostOrder, roles: Roles, sequence: Sequence, layered: BoolArray
) -> bool:
    """Whether a period is a step and neither a microbatch nor a layer, as far as its kernels tell.

    Where there is an optimizer every step has it, or the period is a microbatch. With forward and
    backward in it, it is no single layer, nor with layers that repeat in it. Where no kernel is of
    a layer, `layered`, a few that return often are enough, but not one over and over.
    """
    lag = periods.lag
    start_ns, end_ns = step_borders(order, periods.host_start_ns, periods.host_end_ns)
    whole = (periods.counts >= _LEAST_FRAC * lag) & (end_ns > start_ns)
    used = whole & (periods.alike >= NEARLY_ALL.value)
    # what most of them are not like is how nothing goes
    if summed(used) <= MOST.value * summed(whole):
        return False
    if not layered.any() and lag > 1 and summed(used) >= max(FEWEST.value, ENOUGH.value / lag):
        return True
    if lag < ENOUGH.value:
        return False

    def everywhere(role: BoolArray) -> bool:
        counts = order.chosen_between(role, periods.host_start_ns[used], periods.host_end_ns[used])
        return bool((counts > 0).all())

    if roles.optimizer.any():
        return everywhere(roles.optimizer)
    if everywhere(roles.forward) and everywhere(roles.backward):
        return True
    inner, _ = matching_lags(sequence.codes[:lag], 2, lag // 2)
    return bool((inner >= MOST.value).any())
