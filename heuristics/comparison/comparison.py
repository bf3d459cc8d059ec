"""Two results -> a comparison: comparable, real, why, what changed. The one entry."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from statistics import mean, median
from typing import Final

from msgspec import UNSET

from heuristics.comparison.comparable import judge_comparable
from heuristics.comparison.difference.changed import changed
from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.comparison.difference.matched import budget_rows, mean_step_ns
from heuristics.comparison.difference.rows import FEW, Facts, attribute, layers, part_of
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.expected import Prediction, judge_expected
from heuristics.comparison.ranks import Pair, compare_runs, pair_ranks, place_of
from heuristics.comparison.size import Judged, judge_gate, judge_pairs, judge_size, measure_size
from heuristics.comparison.suspects.find import find_suspects, with_explained
from heuristics.result.compared import (
    BudgetRow,
    Comparable,
    Compared,
    ComparedPair,
    ComparedRun,
    ComparedSize,
    Expected,
    Gate,
    Side,
    SideLog,
    SideSteps,
    Suspect,
)
from heuristics.result.configured import Log
from heuristics.result.result import Result
from heuristics.result.tool import SCHEMA_VERSION, Tool
from traces.missing import Missing, OrMissing, known
from traces.sections.rank import Rank

_NO_STEPS: Final = Missing(
    "",
    "no steps were found: the whole window is compared",
    "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx",
)
_NO_LOG: Final = Missing("", "no training log was given", "--base-log, --new-log")
_SHORT_LOG: Final = Missing("", "the log holds no iterations after its start", "give a longer log")


def side_of(side: Subject, means_ns: Mapping[str, Fraction], named: Collection[str]) -> Side:
    """One side. `means_ns`: what its step is made of, by row; `named`: the rows the attribution names."""
    result, rank = side.result, side.rank
    step_ns, verdict = round(mean_step_ns(rank)), result.verdict
    return Side(
        name=rank.trace,
        traces=tuple(trace.name for trace in result.traces),
        gpu=rank.gpu,
        rank=rank.rank,
        device=rank.device,
        process=rank.process,
        tool_version=result.tool.version,
        guidance=result.tool.guidance,
        step_ns=step_ns,
        steps=_steps(rank),
        log=_log(known(result.log)),
        wall=verdict.wall,
        walls_told=any(wall.outcome != "unmeasurable" for wall in result.walls),
        bound=verdict.bound,
        kind=verdict.kind,
        confidence=verdict.confidence,
        budget_rows=_budget_rows(means_ns, named, step_ns),
        timeline=rank.timeline,
    )


def mean_delta_ns(base: Rank, new: Rank) -> OrMissing[int]:
    """Difference of means, half to even, so that swapped sides mirror; not told where a side has no steps."""
    if not (base.steps.found and new.steps.found):
        return _NO_STEPS
    return round(mean_step_ns(new) - mean_step_ns(base))


def _budget_rows(
    means_ns: Mapping[str, Fraction], named: Collection[str], step_ns: int
) -> tuple[BudgetRow, ...]:
    """Every row of the step, rounded as the attribution rounds it; the rows add up to `step_ns`.

    What rounding leaves over goes to the largest row that is part of the attribution's `noise`.
    """
    rounded = {row: round(mean_ns) for row, mean_ns in means_ns.items()}
    rest_ns = step_ns - sum(rounded.values())
    if rest_ns:
        rounded[_taker(rounded, named, rest_ns)] += rest_ns
    return tuple(BudgetRow(row, mean_ns) for row, mean_ns in rounded.items())


def _taker(rounded: Mapping[str, int], named: Collection[str], rest_ns: int) -> str:
    unnamed = [row for row, mean_ns in rounded.items() if row not in named and mean_ns + rest_ns >= 0]
    return max(unnamed or rounded, key=lambda row: (rounded[row], row))


def _steps(rank: Rank) -> SideSteps:
    dropped = tuple(one.reason for one in rank.steps.dropped)
    if not rank.steps.found:
        return SideSteps("none", 0, _NO_STEPS, _NO_STEPS, _NO_STEPS, _NO_STEPS, dropped)
    lengths = rank.lengths_ns
    return SideSteps(
        source=rank.steps.source,
        count=len(lengths),
        mean_ns=round(mean(map(Fraction, lengths))),
        median_ns=round(median(map(Fraction, lengths))),
        min_ns=min(lengths),
        max_ns=max(lengths),
        dropped=dropped,
    )


def _log(log: Log | None) -> SideLog | Missing:
    if log is None:
        return _NO_LOG
    lengths = log.iterations_ns
    if not lengths:
        return SideLog(log.name, 0, _SHORT_LOG, _SHORT_LOG)
    return SideLog(
        log.name, len(lengths), round(mean(map(Fraction, lengths))), round(median(map(Fraction, lengths)))
    )


_NO_BASE: Final = Missing("", "the steps of base take no time", "record base again")


def compare(
    base: Result,
    new: Result,
    gpus: Sequence[int | None] = (None, None),
    gate_frac: float | None = None,
    predictions: Sequence[Prediction] = (),
) -> Compared:
    """Compare two results with at least one rank each; `gpus`: the CUDA device of each side, None for any.
    `predictions`: what the user expects of fixes, in place of the plan of base.

    Who asked fills in the version of the tool, warnings and the command. Raises `EmptySelection` where a side
    has no such GPU.
    """
    pairs = pair_ranks(base, new, *gpus)
    one, other = Subject(base, pairs[0].base), Subject(new, pairs[0].new)
    sides = one.rank, other.rank
    facts = with_explained(
        Facts(
            one,
            other,
            attribution=attribute(*sides),
            layers=layers(*sides),
            kernels=compare_kernels(*sides),
            changed=changed(one, other),
        )
    )
    comparable = judge_comparable(one, other)
    size = measure_size(one, other)
    judged = judge_pairs(judge_size(size, comparable, one, other), pairs)
    return whole(
        facts,
        pairs,
        comparable,
        size,
        judged,
        suspects=find_suspects(facts),
        gate=None if gate_frac is None else judge_gate(size, judged, gate_frac),
        expected=judge_expected(facts, size, judged, predictions),
        run=compare_runs(base, new, pairs),
    )


def whole(
    facts: Facts,
    pairs: Sequence[Pair],
    comparable: Comparable,
    size: ComparedSize,
    judged: Judged,
    *,
    suspects: tuple[Suspect, ...] = (),
    gate: Gate | None = None,
    expected: tuple[Expected, ...] = (),
    run: ComparedRun | None = None,
) -> Compared:
    """What was found and judged as one comparison."""
    told, (base, new) = facts.attribution, _sides(facts)
    guides = base.guidance, new.guidance
    return Compared(
        schema_version=SCHEMA_VERSION,
        tool=Tool("moe-diag", "", guides[0] if guides[0] == guides[1] else None),
        kind="comparison",
        warnings=(),
        missing=(),
        redacted=True,
        verdict=judged.verdict,
        because=judged.because,
        record=judged.record,
        comparable=comparable,
        base=base,
        new=new,
        size=size,
        step_delta_ns=told.step_delta_ns,
        step_delta_frac=part_of(told.step_delta_ns, base.step_ns) if base.step_ns else _NO_BASE,
        step_delta_ci95_ns=size.ends_ns or FEW,
        attribution=told.rows,
        reasons=told.reasons,
        modules=told.modules,
        layers=facts.layers,
        kernels=facts.kernels,
        changed=facts.changed,
        suspects=suspects,
        pairs=tuple(
            ComparedPair(
                base=place_of(facts.base.result, pair.base),
                new=place_of(facts.new.result, pair.new),
                by=pair.by,
                step_delta_ns=mean_delta_ns(pair.base, pair.new),
            )
            for pair in pairs
        ),
        gate=gate,
        expected=expected,
        run=UNSET if run is None else run,
    )


def _sides(facts: Facts) -> Iterator[Side]:
    """Both sides; their steps are made of the same rows, those that only one has included."""
    rows = budget_rows(facts.base.rank, facts.new.rank)
    named = {one.row for one in facts.attribution.rows}
    yield side_of(facts.base, {one.row: one.base.mean_ns for one in rows}, named)
    yield side_of(facts.new, {one.row: one.new.mean_ns for one in rows}, named)
