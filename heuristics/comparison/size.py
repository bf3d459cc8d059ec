"""How much slower, how sure, and the verdict that follows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median
from typing import Final, Literal

from heuristics.comparison.difference.interval import LEAST, Interval, interval_of
from heuristics.comparison.pairs import Pair
from heuristics.comparison.recorded_alike import same_recording
from heuristics.result.compared import Comparable, ComparisonVerdict, Gate
from heuristics.result.configured import Log
from traces.limits import Limit
from traces.recording.line import recording
from traces.recording.options import START, Question
from traces.sections.rank import Rank
from traces.spelling import chosen, in_ms, percent, signed, signed_ms

MATTERS: Final = Limit(
    0.01,
    "fraction of the shorter step",
    "ours: a third of the gate our README shows (3 %). `no_change` is the verdict only where the whole "
    "interval is within it, so that it never hides what a gate would stop",
)
RECORDABLE: Final = Limit(
    50, "steps a side", "ours: a recording of more is slow to write and read; a log gives them for nothing"
)

_SPARE: Final = 2
"""A first or a partial step is left out."""
_LOGS: Final = "the training logs of both runs, with hundreds of iterations: --base-log FILE --new-log FILE"

_OTHER_RUNS: Final = (
    "the interval holds what varies from step to step, not from one run of the same thing to the next: two "
    "runs of base show that"
)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the difference, per step: from the logs where both are given, else from the traces.

    `delta_ns` is the difference of means. `interval` is None with fewer than 8 steps or iterations a side.
    A side without steps, one window only, counts 0 and has the window's length as its mean and median.
    """

    source: Literal["log", "trace"]
    base_count: int
    new_count: int
    base_mean_ns: int
    new_mean_ns: int
    base_median_ns: int
    new_median_ns: int
    delta_ns: int
    interval: Interval | None
    base_logged: int = 0
    new_logged: int = 0
    """Steady iterations that a log holds; 0 without a log."""

    @property
    def delta_frac(self) -> float:
        """The difference as part of the base's step."""
        return self.delta_ns / self.base_mean_ns if self.base_mean_ns else 0.0

    @property
    def shows_ns(self) -> int:
        """Half the interval: about the smallest difference it could have shown. 0 without one."""
        return (self.interval.high_ns - self.interval.low_ns) // 2 if self.interval else 0


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdict with its reasons; `record`: what to record where it is undecided, else empty.

    `same`: both sides have the same figures step by step, so they are one recording.
    """

    verdict: ComparisonVerdict
    because: tuple[str, ...]
    record: str
    same: bool = False


def measure_size(base: Rank, new: Rank, base_log: Log | None, new_log: Log | None) -> Size:
    """The size by the logs where both hold at least `LEAST` iterations after their start, else by the steps.

    Profiled steps are longer than others, so a log's iterations are the true size where both sides have them.
    """
    logged = [log.iterations_ns if log else () for log in (base_log, new_log)]
    by_log = all(len(side) >= LEAST.value for side in logged)
    base_ns, new_ns = logged if by_log else (base.lengths_ns, new.lengths_ns)
    base_mean, new_mean = _mean(base_ns), _mean(new_ns)
    return Size(
        source="log" if by_log else "trace",
        base_count=len(base_ns) if by_log or base.steps.found else 0,
        new_count=len(new_ns) if by_log or new.steps.found else 0,
        base_mean_ns=round(base_mean),
        new_mean_ns=round(new_mean),
        base_median_ns=round(median(base_ns)),
        new_median_ns=round(median(new_ns)),
        delta_ns=round(new_mean - base_mean),
        interval=interval_of(base_ns, new_ns),
        base_logged=len(logged[0]),
        new_logged=len(logged[1]),
    )


def _mean(values_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(values_ns), len(values_ns))


def judge_size(size: Size, comparable: Comparable, base: Rank, new: Rank) -> Judged:
    """Regression, improvement, no change, or why that is unknown."""
    traced = tuple(_traces_beside_logs(size, base, new))
    if comparable.state == "no":
        no = [f"{one.what}: {one.because}" for one in comparable.differences if one.state == "no"]
        return Judged("not_comparable", (*no, _means(size), *_spread(size), *traced), "")
    if same_recording(base, new) and size.delta_ns == 0 and size.source == "trace":
        same = "both sides have the same figures step by step: they are one recording"
        return Judged("no_change", (same,), "", same=True)
    if size.interval is None:
        return Judged("undecided", tuple(_lacking(size, base, new)), _record_for(LEAST.value))
    if size.interval.low_ns <= 0 <= size.interval.high_ns:
        return _judge_around_zero(size, size.interval, traced)
    slower = size.interval.low_ns > 0
    whole = f"the whole interval is {'above' if slower else 'below'} zero"
    return Judged("regression" if slower else "improvement", (whole, *traced, _OTHER_RUNS), "")


def judge_pairs(judged: Judged, pairs: Sequence[Pair]) -> Judged:
    """The verdict of the first pair, unless another contradicts it: one rank does not stand for all."""
    if judged.verdict != "no_change":
        return judged
    for place, pair in enumerate(pairs[1:], 1):
        base_ns, new_ns = (_mean(side.lengths_ns) for side in (pair.base, pair.new))
        if abs(new_ns - base_ns) > MATTERS.value * min(base_ns, new_ns):
            delta_ns = round(new_ns - base_ns)
            moved = f"{signed_ms(delta_ns)}, {_part(delta_ns, round(base_ns))}"
            other = f"pair {place + 1} of {len(pairs)} ranks (GPU {pair.base.device}) differs by {moved}"
            record = "compare that rank: --base-gpu N --new-gpu N"
            return Judged("undecided", (f"{other}, the first does not", *judged.because), record)
    return judged


def judge_gate(size: Size, judged: Judged, limit_frac: float) -> Gate:
    """Tripped where the lower end of the interval, as part of the base's mean step, is above the limit."""
    limit = f"the limit of {chosen(limit_frac)}"
    if judged.same:
        return Gate(limit_frac, "passed", "one recording is no slower than itself")
    if judged.verdict == "not_comparable":
        return Gate(limit_frac, "undecided", f"the two cannot be compared, so {limit} is not judged")
    if size.interval is None or not size.base_mean_ns:
        few = f"{_counts(size)}, where {LEAST.value} a side are needed: {limit} is not judged"
        return Gate(limit_frac, "undecided", few)
    low = _part(size.interval.low_ns, size.base_mean_ns)
    high = _part(size.interval.high_ns, size.base_mean_ns)
    limit_ns = limit_frac * size.base_mean_ns
    if size.interval.low_ns > limit_ns:
        return Gate(limit_frac, "tripped", f"the lower end of the interval, {low}, is above {limit}")
    if size.interval.high_ns > limit_ns:
        straddles = f"the interval, {low} to {high}, straddles {limit}: only its lower end is not above it"
        if judged.verdict == "undecided":
            return Gate(limit_frac, "undecided", f"{straddles}, and zero lies within it too")
        return Gate(limit_frac, "passed", f"{straddles}, so that more may be lost; more steps would decide")
    return Gate(limit_frac, "passed", f"the upper end of the interval, {high}, is not above {limit}")


def _judge_around_zero(size: Size, interval: Interval, traced: tuple[str, ...]) -> Judged:
    """An interval that holds zero: narrow enough to say that nothing changed, or not."""
    shorter_ns = min(size.base_mean_ns, size.new_mean_ns)
    furthest_ns = max(-interval.low_ns, interval.high_ns)
    furthest, shows = (percent(one / shorter_ns) for one in (furthest_ns, size.shows_ns))
    smallest = f"the smallest change that could be detected is about {in_ms(size.shows_ns)} per step, {shows}"
    rest = (smallest, *traced)
    matters = chosen(MATTERS.value)
    if furthest_ns <= MATTERS.value * shorter_ns:
        held = f"the interval holds zero, within {furthest} of a step: no change of {matters} or more"
        return Judged("no_change", (held, *rest), "")
    wide = f"the interval holds zero and changes of up to {furthest}, more than {matters}: it shows neither"
    delta_ns = abs(size.delta_ns)
    narrow_ns = max(delta_ns, MATTERS.value * shorter_ns - delta_ns, 1)
    needed = min(size.base_count, size.new_count) * (size.shows_ns / narrow_ns) ** 2
    return Judged("undecided", (f"{wide} a change nor its absence", *rest), _record_for(needed))


def _record_for(count: float) -> str:
    """What to record so that about `count` steps a side are there."""
    many = max(ceil(count), int(LEAST.value))
    if many > RECORDABLE.value:
        return f"about {float(f'{many:.1e}'):,.0f} steps a side would decide it: give {_LOGS}"
    active = many + _SPARE
    line = recording(Question.REGRESSION).nsys
    flags = f"--profile-step-start {START} --profile-step-end {START + active}"
    return (
        f"record {many} steps or more a side: {line}, with {flags} in the training "
        f"arguments (PyTorch profiler: active={active}); or give {_LOGS}"
    )


def _part(delta_ns: float, of_ns: int) -> str:
    return signed(percent(delta_ns / of_ns)) if of_ns else "an unknown share"


def _means(size: Size) -> str:
    """`100 ms in base, 105 ms in new: +5.00 ms, +5.0 % (means; 8 steps in base, 9 in new)`."""
    means = f"{in_ms(size.base_mean_ns)} in base, {in_ms(size.new_mean_ns)} in new"
    share = _part(size.delta_ns, size.base_mean_ns)
    return f"{means}: {signed_ms(size.delta_ns)}, {share} (means; {_counts(size)})"


def _counts(size: Size) -> str:
    noun = "logged iterations" if size.source == "log" else "steps"
    base = f"{size.base_count:,}" if size.base_count else "no"
    new = f"{size.new_count:,}" if size.new_count else "none"
    return f"{base} {noun} in base, {new} in new"


def _spread(size: Size) -> Iterator[str]:
    """The interval in ms and as part of the base's step, where there is one."""
    if size.interval is None:
        return
    low_ns, high_ns = size.interval.low_ns, size.interval.high_ns
    ends = f"{signed_ms(low_ns)} to {signed_ms(high_ns)}"
    low, high = (_part(one, size.base_mean_ns) for one in (low_ns, high_ns))
    yield f"{chosen(size.interval.level)} interval: {ends} per step, {low} to {high} of the base's"


def _traces_beside_logs(size: Size, base: Rank, new: Rank) -> Iterator[str]:
    """How much longer profiled steps are than logged ones, and whether they differ as the logs do."""
    if size.source != "log" or size.interval is None or not (base.steps.found and new.steps.found):
        return
    longer = [
        _part(round(median(side.lengths_ns)) - logged_ns, logged_ns)
        for side, logged_ns in ((base, size.base_median_ns), (new, size.new_median_ns))
    ]
    yield f"profiled steps against logged ones, by medians: {longer[0]} in base, {longer[1]} in new"
    traced_ns = round(_mean(new.lengths_ns) - _mean(base.lengths_ns))
    if size.interval.low_ns <= traced_ns <= size.interval.high_ns:
        return
    other_way = traced_ns * size.delta_ns < 0
    how = "the other way than the logs" if other_way else "outside of the logs' interval"
    counts = f"{len(base.lengths_ns)} and {len(new.lengths_ns)} profiled steps"
    yield (
        f"the {counts} differ by {signed_ms(traced_ns)}, {how}: the logs decide, and the rows "
        "explain the profiled steps only"
    )


def _lacking(size: Size, base: Rank, new: Rank) -> Iterator[str]:
    """Why there is no interval."""
    yield f"{_counts(size)}: fewer than {LEAST.value} a side do not show how much steps vary by themselves"
    for name, side in (("base", base), ("new", new)):
        if not side.steps.found:
            yield f"no steps were found in {name}: its figure is that of one window"
    if size.base_logged or size.new_logged:
        logs = f"the logs hold {size.base_logged} iterations after their start in base"
        yield f"{logs}, {size.new_logged} in new, where {LEAST.value} a side are needed"
