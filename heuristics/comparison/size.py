"""How much slower, how sure, and the verdict that follows, whatever the evidence."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from statistics import median
from typing import Any, Final

from msgspec import structs

from heuristics.comparison.between_runs import Runs, is_logged, lengths_of, runs_of
from heuristics.comparison.difference.left_out import all_ns, counted_too, counts_hiccups
from heuristics.comparison.difference.matched import mean_ns, mean_step_ns
from heuristics.comparison.difference.rows import FEW, part_of, step_count
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.ranks import Pair
from heuristics.comparison.same_work import same_recording
from heuristics.comparison.without_steps import judge_windows
from heuristics.result.compared import Comparable, ComparedSize, ComparisonVerdict, Ends, SizeSource
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import FEWEST, LITTLE, Limit
from traces.missing import known, of_known
from traces.recording.line import recording
from traces.recording.options import SPARE, START, Question
from traces.sections.rank import Rank
from traces.sections.section import copied
from traces.spelling import chosen, percent, signed, signed_ms
from traces.statistics.interval import LEAST, LEVEL, MANY, Interval, interval_of
from traces.statistics.permutation import least_p
from traces.texts import Texts

RECORDABLE: Final = Limit(
    50,
    "steps a side",
    "ours: a recording of more is slow to write and read; a log gives them for nothing",
)

_DENOMINATORS: Final = 1_000_000  # more than any number of ways
_OF_INTERVAL: Final = (
    "low_ns",
    "high_ns",
    "low_frac",
    "high_frac",
    "level_frac",
    "method",
    "shows_ns",
    "shows_frac",
)
Lengths = Sequence[int]


@frozen
class Judged:
    """Verdict with its reasons; `record`: what to record where it is undecided, else empty.

    `same`: both sides have the same figures step by step, so they are one recording.
    """

    verdict: ComparisonVerdict
    because: Texts
    record: str
    same: bool = False


@frozen
class Beside:
    """What one kind of evidence, recordings or logs, has to say beside a verdict.

    `told` is said with every verdict; `lacking`: why there is no interval, and `record`: what would
    give one; `longer`: what to record of so many steps a side; `other_runs`: what an interval of
    one run leaves open.
    """

    told: Sequence[str]
    lacking: Iterable[str]
    record: str
    longer: Callable[[int], str]
    other_runs: str


def measure_size(base: Subject, new: Subject, more_base: Sequence[Subject] = ()) -> ComparedSize:
    """The size by the logs where both hold at least `MANY` iterations after their start, else by
    the steps.

    Profiled steps are longer than others, so a log's iterations are the true size where all sides
    have them. A side without steps, one window only, counts 0 and has the window's length as its
    mean and median. `more_base`: further recordings of base; with them base's mean is that of its
    runs.
    """
    by_log = all(map(is_logged, (base, new, *more_base)))
    base_ns, new_ns = lengths_of(base, by_log), lengths_of(new, by_log)
    source: SizeSource = "log"
    counts, interval = (len(base_ns), len(new_ns)), interval_of(base_ns, new_ns)
    if not by_log:
        source, counts = "trace", (step_count(base.rank), step_count(new.rank))
        interval = interval and counted_too(interval, base.rank, new.rank)
    runs = runs_of((base, *more_base), by_log)
    if runs is None:
        return size_of(source, base_ns, new_ns, counts, interval)
    if interval:
        interval = _between_runs(interval, runs, base_ns, new_ns)
    size = size_of(source, base_ns, new_ns, counts, interval, runs.mean_ns)
    return structs.replace(size, between_runs=runs.told)


def size_of(
    source: SizeSource,
    base_ns: Lengths,
    new_ns: Lengths,
    counts: tuple[int, int],
    interval: Interval | None,
    base_mean: Fraction | None = None,
) -> ComparedSize:
    """The size as the document has it. `base_mean`: of base's runs, else it is that of its
    lengths.
    """
    if base_mean is None:
        base_mean = mean_ns(base_ns)
    new_mean = mean_ns(new_ns)
    base_mean_ns, delta_ns = round(base_mean), round(new_mean - base_mean)
    of_interval: dict[str, Any] = dict.fromkeys(_OF_INTERVAL, FEW)
    if interval:
        of_interval = {
            "low_frac": part_of(interval.low_ns, base_mean_ns),
            "high_frac": part_of(interval.high_ns, base_mean_ns),
            "level_frac": interval.level,
            "shows_frac": part_of(interval.shows_ns, min(base_mean_ns, round(new_mean))),
            "p_frac": of_known(float, interval.p),
        }
    return copied(
        ComparedSize,
        interval,
        source=source,
        base_count=counts[0],
        new_count=counts[1],
        base_mean_ns=base_mean_ns,
        new_mean_ns=round(new_mean),
        base_median_ns=round(median(base_ns)),
        new_median_ns=round(median(new_ns)),
        delta_ns=delta_ns,
        delta_frac=part_of(delta_ns, base_mean_ns) or 0.0,
        **of_interval,
    )


def _between_runs(interval: Interval, runs: Runs, base_ns: Lengths, new_ns: Lengths) -> Interval:
    """The interval of the pair moved to the difference from the runs' mean, at least as wide as
    theirs.
    """
    new_mean = mean_ns(new_ns)
    pair_delta_ns, delta_ns = round(new_mean - mean_ns(base_ns)), round(new_mean - runs.mean_ns)
    down_ns = max(pair_delta_ns - interval.low_ns, runs.half_ns)
    up_ns = max(interval.high_ns - pair_delta_ns, runs.half_ns)
    method = f"{interval.method}; Student's t over {len(runs.told.runs)} recordings of base"
    return Interval(delta_ns - down_ns, delta_ns + up_ns, interval.level, method)


def judge_size(size: ComparedSize, comparable: Comparable, base: Subject, new: Subject) -> Judged:
    """The verdict on two recordings."""
    beside_it = list(_traces_beside_logs(size, base.rank, new.rank))
    # neither one recording nor windows decide what is other work
    if comparable.state != "no":
        if same_recording(base.rank, new.rank) and size.delta_ns == 0 and size.source == "trace":
            return Judged("no_change", (say("comparison.one-recording"),), "", same=True)
        if decided := judge_windows(size, base, new):
            verdict, because = decided
            record = say("comparison.record-windows") if verdict == "undecided" else ""
            return Judged(verdict, (because, *beside_it), record)
        if _are_equal(size, base, new):
            return Judged("no_change", (say("comparison.steps-equal"), *beside_it), "")
        beside_it += _left_out(size, base.rank, new.rank)
    lacking, record = _lacking(size, base, new), _record_for(MANY.whole)
    if size.source == "trace" and not size.base_count + size.new_count:
        record = say("comparison.record-windows")
    beside = Beside(beside_it, lacking, record, _record_for, say("comparison.other-runs"))
    return judge(size, comparable, beside)


def _are_equal(size: ComparedSize, base: Subject, new: Subject) -> bool:
    """Of steps too few for an interval, whether none takes as little as a hundredth longer than
    another.
    """
    lengths_ns = sorted((*base.rank.lengths_ns, *new.rank.lengths_ns))
    few = size.ends_ns is None and min(size.base_count, size.new_count) >= FEWEST.value
    return few and lengths_ns[-1] <= (1 + LITTLE.value) * lengths_ns[0]


def judge(size: ComparedSize | None, comparable: Comparable, beside: Beside) -> Judged:
    """The verdict by the interval, and why; without one it is undecided. `size`: None where there
    is none.
    """
    if comparable.state == "no":
        reasons = [
            f"{row.what}: {row.because}" for row in comparable.differences if row.state == "no"
        ]
        if size is not None:
            reasons += _means(size)
        return Judged("not_comparable", (*reasons, *beside.told), "")
    if size is None or (ends := size.ends_ns) is None:
        return Judged("undecided", (*beside.told, *beside.lacking), beside.record)
    if ends[0] <= 0 <= ends[1]:
        return _judge_around_zero(size, ends, beside)
    verdict: ComparisonVerdict = "improvement"
    whole = say("comparison.interval-below-zero")
    if ends[0] > 0:
        verdict, whole = "regression", say("comparison.interval-above-zero")
    return Judged(
        verdict, (whole, *_by_chance(size, ends), *beside.told, _of_runs(size, beside)), ""
    )


def _left_out(size: ComparedSize, base: Rank, new: Rank) -> Iterator[str]:
    """That the difference has to hold with the hiccups of both sides, and what it is with them
    where that matters.
    """
    if size.source == "log" or not (base.steps.slow or new.steps.slow):
        return
    mine, theirs = _hiccups(base), _hiccups(new)
    if size.ends_ns is not None and counts_hiccups(base, new):
        yield say("comparison.hiccups-counted", base=mine, new=theirs)
    delta_frac = float(mean_ns(all_ns(new)) / mean_ns(all_ns(base))) - 1
    apart = abs(delta_frac - size.delta_frac) > LITTLE.value
    if not size.between_runs and (apart or delta_frac * size.delta_frac < 0):
        delta = signed(percent(delta_frac))
        yield say("comparison.with-hiccups", base=mine, new=theirs, delta=delta)


def _hiccups(rank: Rank) -> str:
    steps = rank.steps
    return f"{len(steps.slow)} of {len(steps.used) + len(steps.slow)}"


def _by_chance(size: ComparedSize, ends: Ends) -> Iterator[str]:
    """What the permutation test says, and where unlike scatter outweighs it."""
    if not isinstance(size.p_frac, float):
        return
    p = Fraction(size.p_frac).limit_denominator(_DENOMINATORS)
    spelled = percent(size.p_frac)
    if p.numerator == 1 and p < 1:
        spelled = f"{p} ({spelled})"
    yield say("comparison.permutation", p=spelled)
    if size.p_frac <= 1 - LEVEL and ends[0] <= 0 <= ends[1]:
        yield say("comparison.unlike-scatter")


def _of_runs(size: ComparedSize, beside: Beside) -> str:
    """What varies from run to run: in the interval, or what would put it there."""
    if not (runs := size.between_runs):
        return beside.other_runs
    return say(
        "comparison.between-runs", runs=len(runs.runs), std_ns=runs.std_ns, half_ns=runs.half_ns
    )


def judge_pairs(judged: Judged, pairs: Sequence[Pair]) -> Judged:
    """The verdict of the first pair, unless another contradicts it: one rank does not stand for
    all.
    """
    if judged.verdict != "no_change":
        return judged
    for place, pair in enumerate(pairs[1:], 2):
        base_ns, new_ns = mean_step_ns(pair.base), mean_step_ns(pair.new)
        if abs(new_ns - base_ns) > LITTLE.value * min(base_ns, new_ns):
            delta_ns = round(new_ns - base_ns)
            other = say(
                "comparison.another-pair",
                pair=place,
                pairs=len(pairs),
                device=pair.base.device,
                delta=signed_ms(delta_ns),
                part=part_in_words(delta_ns, round(base_ns)),
            )
            return Judged(
                "undecided", (other, *judged.because), say("comparison.record-another-pair")
            )
    return judged


def _judge_around_zero(size: ComparedSize, ends: Ends, beside: Beside) -> Judged:
    shorter_ns, shows_ns = min(size.base_mean_ns, size.new_mean_ns), (ends[1] - ends[0]) // 2
    furthest_frac = max(-ends[0], ends[1]) / shorter_ns
    smallest = say("comparison.smallest", shows_ns=shows_ns, shows_frac=shows_ns / shorter_ns)
    because = [*_by_chance(size, ends), smallest]
    if size.between_runs:
        because.append(_of_runs(size, beside))
    because += beside.told
    matters = chosen(LITTLE.value)
    if furthest_frac <= LITTLE.value:
        narrow = say("comparison.interval-narrow", furthest_frac=furthest_frac, matters=matters)
        return Judged("no_change", (narrow, *because), "")
    record = beside.longer(_needed(size, ends))
    if size.between_runs and size.between_runs.half_ns >= shows_ns:
        record = say("comparison.record-runs")
    wide = say("comparison.interval-wide", furthest_frac=furthest_frac, matters=matters)
    return Judged("undecided", (wide, *because), record)


def _needed(size: ComparedSize, ends: Ends) -> int:
    """About how many steps a side would tell the difference from zero, or what matters from it."""
    delta_ns, half_ns = abs(size.delta_ns), (ends[1] - ends[0]) / 2
    matters_ns = LITTLE.value * min(size.base_mean_ns, size.new_mean_ns)
    narrow_ns = max(delta_ns, matters_ns - delta_ns, 1)
    count = min(size.base_count, size.new_count) * (half_ns / narrow_ns) ** 2
    return max(ceil(count), MANY.whole)


def about(count: int) -> str:
    """A count by its first two digits."""
    return f"{float(f'{count:.1e}'):,.0f}"


def _record_for(count: int) -> str:
    if count > RECORDABLE.value:
        return say("comparison.record-logs", count=about(count))
    active = count + SPARE
    line = recording(Question.REGRESSION).nsys
    return say(
        "comparison.record", count=count, line=line, start=START, end=START + active, active=active
    )


def part_in_words(delta_ns: float, of_ns: int) -> str:
    """A difference as part of a step."""
    if not of_ns:
        return "an unknown share"
    return signed(percent(delta_ns / of_ns))


def ends_in_words(size: ComparedSize, ends: Ends) -> tuple[str, str]:
    return part_in_words(ends[0], size.base_mean_ns), part_in_words(ends[1], size.base_mean_ns)


def counts_in_words(size: ComparedSize) -> str:
    base = f"{size.base_count:,}" if size.base_count else "no"
    new = f"{size.new_count:,}" if size.new_count else "none"
    return say(f"comparison.counts-by-{size.source}", base=base, new=new)


def _means(size: ComparedSize) -> Iterator[str]:
    """Both means, and the interval in ms and as part of the base's step, where there is one."""
    yield say(
        "comparison.means",
        base_ns=size.base_mean_ns,
        new_ns=size.new_mean_ns,
        delta=signed_ms(size.delta_ns),
        part=part_in_words(size.delta_ns, size.base_mean_ns),
        counts=counts_in_words(size),
    )
    if size.ends_ns is not None:
        level = known(size.level_frac)
        assert level is not None
        low, high = ends_in_words(size, size.ends_ns)
        ends = " to ".join(map(signed_ms, size.ends_ns))
        yield say("comparison.interval", level=chosen(level), ends=ends, low=low, high=high)


def _traces_beside_logs(size: ComparedSize, base: Rank, new: Rank) -> Iterator[str]:
    """How much longer profiled steps are than logged ones, and whether they differ as the logs
    do.
    """
    if size.source != "log" or size.ends_ns is None or not (base.steps.found and new.steps.found):
        return
    yield say(
        "comparison.profiled-beside-logged",
        base=_longer_than(base, size.base_median_ns),
        new=_longer_than(new, size.new_median_ns),
    )
    traced_ns = round(mean_step_ns(new) - mean_step_ns(base))
    if not size.ends_ns[0] <= traced_ns <= size.ends_ns[1]:
        other_way = traced_ns * size.delta_ns < 0
        yield say(
            "comparison.profiled-the-other-way" if other_way else "comparison.profiled-outside",
            base=len(base.lengths_ns),
            new=len(new.lengths_ns),
            delta=signed_ms(traced_ns),
        )


def _longer_than(rank: Rank, logged_ns: int) -> str:
    return part_in_words(round(median(rank.lengths_ns)) - logged_ns, logged_ns)


def _lacking(size: ComparedSize, base: Subject, new: Subject) -> Iterator[str]:
    yield say("comparison.few", counts=counts_in_words(size), least=LEAST)
    p = least_p(size.base_count, size.new_count)
    if size.base_count and size.new_count and p > 1 - Fraction(str(LEVEL)):
        yield say("comparison.few-show-none", p=f"{p} ({percent(float(p))})")
    for name, side in (("base", base), ("new", new)):
        if not side.rank.steps.found:
            yield say("comparison.one-window", side=name)
    logged = len(base.logged_ns), len(new.logged_ns)
    if any(logged):
        yield say("comparison.few-logged", base=logged[0], new=logged[1], least=MANY.value)
