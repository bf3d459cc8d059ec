"""One side in the document: which run and rank, its steps, what they are made of, its own verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from reports.document import Document
from traces.results.result import Log, Rank, Result, Steps


def side_section(
    result: Result, rank: Rank, means_ns: Mapping[str, Fraction], named: Collection[str]
) -> Document:
    """The contract's `base` or `new`. `step_ns`: the mean of its used steps, or the window without steps.

    `means_ns`: what its step is made of, by row; `named`: the rows that the attribution names.
    """
    verdict = result.verdict
    step_ns = round(_mean(rank.steps.lengths_ns))
    return {
        "name": rank.trace,
        "traces": [trace.name for trace in result.traces],
        "gpu": rank.gpu,
        "rank": rank.rank,
        "device": rank.device,
        "process": rank.process,
        "tool_version": result.tool_version,
        "guidance": result.guidance,
        "step_ns": step_ns,
        "steps": _steps(rank.steps),
        "log": _log(result.log),
        "wall": verdict.get("wall"),
        "walls_told": not result.walls or any(wall["outcome"] != "unmeasurable" for wall in result.walls),
        "bound": verdict.get("bound"),
        "kind": verdict.get("kind"),
        "confidence": verdict.get("confidence"),
        "budget_rows": _budget_rows(means_ns, named, step_ns),
        "timeline": None if rank.timeline is None else dict(rank.timeline),
    }


def _budget_rows(means_ns: Mapping[str, Fraction], named: Collection[str], step_ns: int) -> list[Document]:
    """Every row of the step, rounded as the attribution rounds it; the rows add up to `step_ns`.

    What rounding leaves over goes to the largest row that is part of the attribution's `noise`.
    """
    rounded = {row: round(mean_ns) for row, mean_ns in means_ns.items()}
    rest_ns = step_ns - sum(rounded.values())
    if rest_ns:
        rounded[_taker(rounded, named, rest_ns)] += rest_ns
    return [{"row": row, "mean_ns": mean_ns} for row, mean_ns in rounded.items()]


def _taker(rounded: Mapping[str, int], named: Collection[str], rest_ns: int) -> str:
    unnamed = [row for row, mean_ns in rounded.items() if row not in named and mean_ns + rest_ns >= 0]
    return max(unnamed or rounded, key=lambda row: (rounded[row], row))


def place(result: Result, rank: Rank) -> Document:
    """Where a rank stands in its own document."""
    index = next(index for index, one in enumerate(result.ranks) if one is rank)
    return {"index": index, "device": rank.device, "rank": rank.rank}


def mean_delta_ns(base: Steps, new: Steps) -> int | None:
    """Difference of means, half to even, so that swapped sides mirror; None where a side has no steps."""
    if not (base.has_steps and new.has_steps):
        return None
    return round(_mean(new.lengths_ns) - _mean(base.lengths_ns))


def _steps(steps: Steps) -> Document:
    lengths = steps.lengths_ns if steps.has_steps else ()
    return {
        "source": steps.source,
        "count": len(lengths),
        "mean_ns": round(_mean(lengths)) if lengths else None,
        "median_ns": round(_median(lengths)) if lengths else None,
        "min_ns": min(lengths, default=None),
        "max_ns": max(lengths, default=None),
        "dropped": list(steps.dropped),
    }


def _log(log: Log | None) -> Document | None:
    if log is None:
        return None
    lengths = log.iterations_ns
    return {
        "name": log.name,
        "count": len(lengths),
        "mean_ns": round(_mean(lengths)) if lengths else None,
        "median_ns": round(_median(lengths)) if lengths else None,
    }


def _mean(lengths_ns: Sequence[int]) -> Fraction:
    return Fraction(sum(lengths_ns), len(lengths_ns))


def _median(lengths_ns: Sequence[int]) -> Fraction:
    ordered, middle = sorted(lengths_ns), len(lengths_ns) // 2
    return Fraction(ordered[middle] + ordered[-middle - 1], 2)
