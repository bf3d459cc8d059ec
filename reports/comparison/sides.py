"""One side of a comparison in the document: which run, which rank of it, its steps, its own verdict."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from reports.document import Document
from traces.results.result import Log, Rank, Result, Steps


def side_section(result: Result, rank: Rank) -> Document:
    """The contract's `base` or `new`. `step_ns`: the mean of its used steps, or the window without steps."""
    verdict = result.verdict
    return {
        "name": rank.trace,
        "traces": [trace.name for trace in result.traces],
        "gpu": rank.gpu,
        "rank": rank.rank,
        "device": rank.device,
        "process": rank.process,
        "tool_version": result.tool_version,
        "guidance": result.guidance,
        "step_ns": round(_mean(rank.steps.lengths_ns)),
        "steps": _steps(rank.steps),
        "log": _log(result.log),
        "wall": verdict.get("wall"),
        "bound": verdict.get("bound"),
        "kind": verdict.get("kind"),
        "confidence": verdict.get("confidence"),
    }


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
    lengths = log.steady_ns
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
