"""How much slower, how sure, and the verdict that follows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from statistics import median
from typing import Final

from heuristics.comparison.difference.interval import LEAST, interval_of
from heuristics.comparison.difference.rows import FEW, part_of, step_count
from heuristics.comparison.ranks import Pair
from heuristics.comparison.same_work import same_recording
from heuristics.result.compared import Comparable, ComparedSize, ComparisonVerdict, Ends, Gate
from heuristics.result.configured import Log
from traces.limits import Limit
from traces.missing import known
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
class Judged:
    """Verdict with its reasons; `record`: what to record where it is undecided, else empty.

    `same`: both sides have the same figures step by step, so they are one recording.
    """

    verdict: ComparisonVerdict
    because: tuple[str, ...]
    record: str
    same: bool = False


def measure_size(base: Rank, new: Rank, base_log: Log | None, new_log: Log | None) -> ComparedSize:
    """The size by the logs where both hold at least `LEAST` iterations after their start, else by the steps.

    Profiled steps are longer than others, so a log's iterations are the true size where both sides have them.
    A side without steps, one window only, counts 0 and has the window's length as its mean and median.
    """
    logged = [log.iterations_ns if log else () for log in (base_log, new_log)]
    by_log = all(len(side) >= LEAST.value for side in logged)
    base_ns, new_ns = logged if by_log else (base.lengths_ns, new.lengths_ns)
    base_mean, new_mean = _mean(base_ns), _mean(new_ns)
    base_mean_ns, delta_ns = round(base_mean), round(new_mean - base_mean)
    found = interval_of(base_ns, new_ns)
    return ComparedSize(
        source="log" if by_log else "trace",
        base_count=len(base_ns) if by_log else step_count(base),
        new_count=len(new_ns) if by_log else step_count(new),
        base_mean_ns=base_mean_ns,
        new_mean_ns=round(new_mean),
        base_median_ns=round(median(base_ns)),
        new_median_ns=round(median(new_ns)),
        delta_ns=delta_ns,
        delta_frac=delta_ns / base_mean_ns if base_mean_ns else 0.0,
        low_ns=found.low_ns if found else FEW,
        high_ns=found.high_ns if found else FEW,
        low_frac=part_of(found.low_ns, base_mean_ns) if found else FEW,
        high_frac=part_of(found.high_ns, base_mean_ns) if found else FEW,
        level_frac=found.level if found else FEW,
        method=found.method if found else FEW,
    )


def _mean(values_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(values_ns), len(values_ns))


def judge_size(
    size: ComparedSize, comparable: Comparable, base: Rank, new: Rank, logged: tuple[int, int] = (0, 0)
) -> Judged:
    """Regression, improvement, no change, or why that is unknown. `logged`: iterations that the logs hold."""
    traced = tuple(_traces_beside_logs(size, base, new))
    if comparable.state == "no":
        no = [f"{one.what}: {one.because}" for one in comparable.differences if one.state == "no"]
        return Judged("not_comparable", (*no, _means(size), *_spread(size), *traced), "")
    if same_recording(base, new) and size.delta_ns == 0 and size.source == "trace":
        same = "both sides have the same figures step by step: they are one recording"
        return Judged("no_change", (same,), "", same=True)
    if (ends := size.ends_ns) is None:
        return Judged("undecided", tuple(_lacking(size, base, new, logged)), _record_for(LEAST.value))
    if ends[0] <= 0 <= ends[1]:
        return _judge_around_zero(size, ends, traced)
    slower = ends[0] > 0
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


def judge_gate(size: ComparedSize, judged: Judged, limit_frac: float) -> Gate:
    """Tripped where the lower end of the interval, as part of the base's mean step, is above the limit."""
    limit = f"the limit of {chosen(limit_frac)}"
    if judged.same:
        return Gate(limit_frac, "passed", "one recording is no slower than itself")
    if judged.verdict == "not_comparable":
        return Gate(limit_frac, "undecided", f"the two cannot be compared, so {limit} is not judged")
    if (ends := size.ends_ns) is None or not size.base_mean_ns:
        few = f"{_counts(size)}, where {LEAST.value} a side are needed: {limit} is not judged"
        return Gate(limit_frac, "undecided", few)
    low, high = (_part(one, size.base_mean_ns) for one in ends)
    limit_ns = limit_frac * size.base_mean_ns
    if ends[0] > limit_ns:
        return Gate(limit_frac, "tripped", f"the lower end of the interval, {low}, is above {limit}")
    if ends[1] > limit_ns:
        straddles = f"the interval, {low} to {high}, straddles {limit}: only its lower end is not above it"
        if judged.verdict == "undecided":
            return Gate(limit_frac, "undecided", f"{straddles}, and zero lies within it too")
        return Gate(limit_frac, "passed", f"{straddles}, so that more may be lost; more steps would decide")
    return Gate(limit_frac, "passed", f"the upper end of the interval, {high}, is not above {limit}")


def _judge_around_zero(size: ComparedSize, ends: Ends, traced: tuple[str, ...]) -> Judged:
    """An interval that holds zero: narrow enough to say that nothing changed, or not."""
    shorter_ns = min(size.base_mean_ns, size.new_mean_ns)
    furthest_ns = max(-ends[0], ends[1])
    shows_ns = (ends[1] - ends[0]) // 2  # about the smallest difference that the interval could have shown
    furthest, shows = (percent(one / shorter_ns) for one in (furthest_ns, shows_ns))
    smallest = f"the smallest change that could be detected is about {in_ms(shows_ns)} per step, {shows}"
    rest = (smallest, *traced)
    matters = chosen(MATTERS.value)
    if furthest_ns <= MATTERS.value * shorter_ns:
        held = f"the interval holds zero, within {furthest} of a step: no change of {matters} or more"
        return Judged("no_change", (held, *rest), "")
    wide = f"the interval holds zero and changes of up to {furthest}, more than {matters}: it shows neither"
    delta_ns = abs(size.delta_ns)
    narrow_ns = max(delta_ns, MATTERS.value * shorter_ns - delta_ns, 1)
    needed = min(size.base_count, size.new_count) * (shows_ns / narrow_ns) ** 2
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


def _means(size: ComparedSize) -> str:
    """`100 ms in base, 105 ms in new: +5.00 ms, +5.0 % (means; 8 steps in base, 9 in new)`."""
    means = f"{in_ms(size.base_mean_ns)} in base, {in_ms(size.new_mean_ns)} in new"
    share = _part(size.delta_ns, size.base_mean_ns)
    return f"{means}: {signed_ms(size.delta_ns)}, {share} (means; {_counts(size)})"


def _counts(size: ComparedSize) -> str:
    noun = "logged iterations" if size.source == "log" else "steps"
    base = f"{size.base_count:,}" if size.base_count else "no"
    new = f"{size.new_count:,}" if size.new_count else "none"
    return f"{base} {noun} in base, {new} in new"


def _spread(size: ComparedSize) -> Iterator[str]:
    """The interval in ms and as part of the base's step, where there is one."""
    level = known(size.level_frac)
    if size.ends_ns is None or level is None:
        return
    ends = " to ".join(map(signed_ms, size.ends_ns))
    low, high = (_part(one, size.base_mean_ns) for one in size.ends_ns)
    yield f"{chosen(level)} interval: {ends} per step, {low} to {high} of the base's"


def _traces_beside_logs(size: ComparedSize, base: Rank, new: Rank) -> Iterator[str]:
    """How much longer profiled steps are than logged ones, and whether they differ as the logs do."""
    if size.source != "log" or size.ends_ns is None or not (base.steps.found and new.steps.found):
        return
    longer = [
        _part(round(median(side.lengths_ns)) - logged_ns, logged_ns)
        for side, logged_ns in ((base, size.base_median_ns), (new, size.new_median_ns))
    ]
    yield f"profiled steps against logged ones, by medians: {longer[0]} in base, {longer[1]} in new"
    traced_ns = round(_mean(new.lengths_ns) - _mean(base.lengths_ns))
    if size.ends_ns[0] <= traced_ns <= size.ends_ns[1]:
        return
    other_way = traced_ns * size.delta_ns < 0
    how = "the other way than the logs" if other_way else "outside of the logs' interval"
    counts = f"{len(base.lengths_ns)} and {len(new.lengths_ns)} profiled steps"
    yield (
        f"the {counts} differ by {signed_ms(traced_ns)}, {how}: the logs decide, and the rows "
        "explain the profiled steps only"
    )


def _lacking(size: ComparedSize, base: Rank, new: Rank, logged: tuple[int, int]) -> Iterator[str]:
    """Why there is no interval."""
    yield f"{_counts(size)}: fewer than {LEAST.value} a side do not show how much steps vary by themselves"
    for name, side in (("base", base), ("new", new)):
        if not side.steps.found:
            yield f"no steps were found in {name}: its figure is that of one window"
    if any(logged):
        logs = f"the logs hold {logged[0]} iterations after their start in base"
        yield f"{logs}, {logged[1]} in new, where {LEAST.value} a side are needed"
