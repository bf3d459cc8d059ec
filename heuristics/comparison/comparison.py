"""Two results -> a comparison: comparable, real, why, what changed. The one entry."""

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import starmap
from statistics import median
from typing import Final

from msgspec.structs import replace

from heuristics.comparison.between_runs import rank_like, why_no_run
from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.difference.aligned import exchanges
from heuristics.comparison.difference.changed import changed
from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.matched import budget_rows, mean_ns, mean_step_ns
from heuristics.comparison.difference.rows import FEW, Facts, attribute, layers, names_of, part_of
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.expected import Prediction, judge_expected
from heuristics.comparison.gate import Asked, gate_of
from heuristics.comparison.ranks import Pair, compare_runs, pair_ranks, place_of
from heuristics.comparison.size import Judged, judge_pairs, judge_size, measure_size
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.comparison.whole_range import NO_STEPS, judge_whole, whole_range
from heuristics.result.compared import (
    BudgetRow,
    Comparable,
    Compared,
    ComparedPair,
    ComparedSize,
    Side,
    SideLog,
    SideSteps,
)
from heuristics.result.configured import Log
from heuristics.result.result import Result
from heuristics.result.tool import SCHEMA_VERSION, tool_of
from heuristics.words import lacking, say
from traces.missing import Missing, gap, known, or_gap
from traces.sections.rank import Rank
from traces.sections.section import copied
from traces.spelling import printable

_NO_LOG: Final = gap(say("comparison.no-log"), "--base-log, --new-log")
_SHORT_LOG: Final = lacking("comparison.short-log")
_NO_BASE: Final = lacking("comparison.no-base")


def _side(side: Subject, means_ns: dict[str, int], named: Collection[str]) -> Side:
    """One side. `means_ns`: what its step is made of, by row, rounded as the attribution rounds it;
    `named`: the rows the attribution names.
    """
    result, rank = side.result, side.rank
    step_ns = round(mean_step_ns(rank))
    return copied(
        Side,
        rank,
        result.verdict,
        name=rank.trace,
        traces=tuple(trace.name for trace in result.traces),
        tool_version=result.tool.version,
        guidance=result.tool.guidance,
        step_ns=step_ns,
        steps=_steps(rank),
        log=_log(known(result.log)),
        walls_told=any(wall.outcome != "unmeasurable" for wall in result.walls),
        budget_rows=_budget_rows(means_ns, named, step_ns),
    )


def _budget_rows(
    means_ns: dict[str, int], named: Collection[str], step_ns: int
) -> tuple[BudgetRow, ...]:
    """Every row of the step; the rows add up to `step_ns`.

    What rounding leaves over goes to the largest row that is part of the attribution's `noise`.
    """
    if rest_ns := step_ns - sum(means_ns.values()):
        unnamed = [
            row for row, row_ns in means_ns.items() if row not in named and row_ns + rest_ns >= 0
        ]
        means_ns[max(unnamed or means_ns, key=lambda row: (means_ns[row], row))] += rest_ns
    return tuple(starmap(BudgetRow, means_ns.items()))


def _steps(rank: Rank) -> SideSteps:
    dropped, lengths = tuple(step.reason for step in rank.steps.dropped), rank.lengths_ns
    if not rank.steps.found:
        return SideSteps("none", 0, *(NO_STEPS,) * 4, dropped, rank.steps.unit)
    figures = *_mean_and_median(lengths), min(lengths), max(lengths)
    return SideSteps(rank.steps.source, len(lengths), *figures, dropped, rank.steps.unit)


def _log(log: Log | None) -> SideLog | Missing:
    if log is None:
        return _NO_LOG
    if not log.iterations_ns:
        return SideLog(log.name, 0, _SHORT_LOG, _SHORT_LOG)
    return SideLog(log.name, len(log.iterations_ns), *_mean_and_median(log.iterations_ns))


def _mean_and_median(lengths_ns: Sequence[int]) -> tuple[int, int]:
    return round(mean_ns(lengths_ns)), round(median(map(Fraction, lengths_ns)))


def compare(
    base: Result,
    new: Result,
    gpus: Sequence[int | None] = (None, None),
    gate: Asked | None = None,
    predictions: Sequence[Prediction] = (),
    more_base: Sequence[Result] = (),
) -> Compared:
    """Compare two results with at least one rank each; `gpus`: the CUDA device of each side, None
    for any. `predictions`: what the user expects of fixes, in place of the plan of base.
    `more_base`: further recordings of base; one that is none becomes a warning.

    Who asked fills in the version of the tool, warnings and the command. Raises `EmptySelection`
    where a side has no such GPU.
    """
    pairs = pair_ranks(base, new, *gpus)
    before, after = Subject(base, pairs[0].base), Subject(new, pairs[0].new)
    ranks, comparable = (before.rank, after.rank), judge_comparable(before, after)
    unexplained = Facts(
        before,
        after,
        attribute(*ranks),
        layers(*ranks),
        compare_kernels(*ranks),
        changed(before, after),
        exchanges(*ranks),
        comparable.state != "no",
    )
    facts = with_explained(unexplained)
    runs, warnings = _runs_of_base(before, more_base, gpus[0])
    size = measure_size(before, after, runs)
    judged = judge_pairs(judge_size(size, comparable, before, after), pairs)
    recorded = whole_range(*ranks)
    ended = before.rank.steps.whole and after.rank.steps.whole
    judged = judge_whole(judged, recorded, ended=ended)
    return replace(
        whole(facts, pairs, comparable, size, judged),
        suspects=find_suspects(facts),
        gate=gate_of(size, judged, gate) if gate else None,
        expected=tuple(judge_expected(facts, size, judged, predictions)),
        run=compare_runs(base, new, pairs),
        whole=recorded,
        warnings=tuple(warnings),
    )


def _runs_of_base(
    base: Subject, more: Sequence[Result], gpu: int | None
) -> tuple[Sequence[Subject], Sequence[str]]:
    """Further recordings of base, and why others are none."""
    runs = list[Subject]()
    warnings = list[str]()
    for result in more:
        run = Subject(result, rank_like(base, result, gpu))
        if why := why_no_run(run, (base, *runs), judge_comparable(base, run)):
            warnings.append(f"--more-base {printable(run.rank.trace, 60)}: {why}")
        else:
            runs.append(run)
    return runs, warnings


def whole(
    facts: Facts, pairs: Sequence[Pair], comparable: Comparable, size: ComparedSize, judged: Judged
) -> Compared:
    """What was found and judged as one comparison, before its causes."""
    attribution, (base, new) = facts.attribution, _sides(facts)
    return copied(
        Compared,
        judged,
        facts,
        attribution,
        schema_version=SCHEMA_VERSION,
        tool=tool_of(base.guidance, new.guidance),
        kind="comparison",
        warnings=(),
        missing=(),
        redacted=True,
        comparable=comparable,
        base=base,
        new=new,
        size=size,
        step_delta_frac=or_gap(part_of(attribution.step_delta_ns, base.step_ns), _NO_BASE),
        step_delta_ci95_ns=size.ends_ns or FEW,
        attribution=attribution.rows,
        suspects=(),
        pairs=tuple(_pair(facts, pair) for pair in pairs),
        gate=None,
    )


def _pair(facts: Facts, pair: Pair) -> ComparedPair:
    """The difference of means is half to even, so that swapped sides mirror; unknown without
    steps.
    """
    base, new = place_of(facts.base.result, pair.base), place_of(facts.new.result, pair.new)
    known_both = pair.base.steps.found and pair.new.steps.found
    delta_ns = round(mean_step_ns(pair.new) - mean_step_ns(pair.base)) if known_both else NO_STEPS
    return ComparedPair(base, new, pair.by, delta_ns)


def _sides(facts: Facts) -> Iterator[Side]:
    """Both sides; their steps are made of the same rows, those that only one has included."""
    rows = budget_rows(facts.base.rank, facts.new.rank)
    named = names_of(facts.attribution.rows)
    yield _side(facts.base, {row.row: round(row.base.mean_ns) for row in rows}, named)
    yield _side(facts.new, {row.row: round(row.new.mean_ns) for row in rows}, named)
