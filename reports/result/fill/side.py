"""One side of a comparison, typed: what its own result could not tell keeps its own reason."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Final

from heuristics.result.compared_run import Place
from heuristics.result.configured import Log
from heuristics.result.result import Result
from heuristics.result.side import BudgetRow, Side, SideLog, SideSteps
from reports.result.fill.parts import copied
from traces.missing import Missing, OrMissing, known
from traces.sections.rank import Rank

NO_STEPS: Final = Missing(
    "",
    "no steps were found: the whole window is compared",
    "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx",
)
_NO_LOG: Final = Missing("", "no training log was given", "--base-log, --new-log")
_SHORT_LOG: Final = Missing("", "the log holds no iterations after its start", "give a longer log")


def side_of(result: Result, rank: Rank, means_ns: Mapping[str, Fraction], named: Collection[str]) -> Side:
    """One side. `means_ns`: what its step is made of, by row; `named`: the rows the attribution names."""
    step_ns = round(_mean(rank.lengths_ns))
    verdict = result.verdict
    return copied(
        verdict,
        Side,
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
        walls_told=any(wall.outcome != "unmeasurable" for wall in result.walls),
        budget_rows=_budget_rows(means_ns, named, step_ns),
        timeline=rank.timeline,
    )


def place_of(result: Result, rank: Rank) -> Place:
    """Where a rank stands in its own result."""
    index = next(index for index, one in enumerate(result.ranks) if one is rank)
    return Place(index, rank.device, rank.rank)


def mean_delta_ns(base: Rank, new: Rank) -> OrMissing[int]:
    """Difference of means, half to even, so that swapped sides mirror; not told where a side has no steps."""
    if not (base.steps.found and new.steps.found):
        return NO_STEPS
    return round(_mean(new.lengths_ns) - _mean(base.lengths_ns))


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
        return SideSteps("none", 0, NO_STEPS, NO_STEPS, NO_STEPS, NO_STEPS, dropped)
    lengths = rank.lengths_ns
    return SideSteps(
        source=rank.steps.source,
        count=len(lengths),
        mean_ns=round(_mean(lengths)),
        median_ns=round(_median(lengths)),
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
    return SideLog(log.name, len(lengths), round(_mean(lengths)), round(_median(lengths)))


def _mean(lengths_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(lengths_ns), len(lengths_ns))


def _median(lengths_ns: Sequence[int]) -> Fraction:
    ordered, middle = sorted(lengths_ns), len(lengths_ns) // 2
    return Fraction(ordered[middle] + ordered[-middle - 1], 2)
