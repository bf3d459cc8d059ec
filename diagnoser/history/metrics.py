"""The numbers of a result that a trend can follow, and what has to agree within one trend."""

from collections.abc import Iterator
from fractions import Fraction
from statistics import median
from typing import Any, Final

from heuristics.comparison.difference.subject import Subject
from heuristics.result.result import Result
from traces.missing import OrMissing, known
from traces.sections.rank import Rank

_SHAPE: Final = (
    *("world_size", "num_layers", "hidden_size", "ffn_hidden_size", "num_moe_experts"),
    *("moe_ffn_hidden_size", "moe_router_topk", "seq_length"),
    *("train.micro_batch_size", "train.global_batch_size"),
)
"""Knobs without which a step is another step; how the same work is spread and done is what a trend shows."""


def metrics(result: Result) -> dict[str, float]:
    """Numbers by the document's names, times per step; what the result does not tell is absent.

    Of several ranks the one that `compare` would take: the lowest number, else the first.
    """
    return {name: value for name, told in _numbers(result) if (value := known(told)) is not None}


def alike(result: Result) -> dict[str, Any]:
    """GPU, ranks and sizes of the model, as far as told: results that differ in one are not one trend."""
    settings = Subject(result, _first(result)).values
    sizes = {knob: settings[knob] for knob in _SHAPE if settings.get(knob) is not None}
    return {"gpu": known(_first(result).gpu), "ranks": len(result.ranks), **sizes}


def _first(result: Result) -> Rank:
    numbered = [(number, rank) for rank in result.ranks if (number := known(rank.rank)) is not None]
    return min(numbered, key=lambda one: one[0])[1] if numbered else result.ranks[0]


def _numbers(result: Result) -> Iterator[tuple[str, OrMissing[float]]]:
    rank, throughput, log = _first(result), known(result.throughput), known(result.log)
    if rank.steps.found:
        yield "step_ns", _mean(rank.lengths_ns)
        yield "step_median_ns", round(median(map(Fraction, rank.lengths_ns)))
        for row in known(rank.ledger) or ():
            if row.group in ("budget", "moe"):
                yield f"ledger.{row.row}", _mean(row.per_step_ns)
    for name in ("compute", "exposed_comm", "exposed_copy", "idle"):
        yield f"budget_frac.{name}", getattr(rank.budget_frac, name)
    for wall in result.walls:
        yield f"walls.{wall.id}.cost_frac", wall.cost_frac
    if moe := known(rank.moe):
        yield "moe.tax_frac", moe.tax_frac
    yield "sm.occupancy_frac", rank.sm.occupancy_frac
    yield "sm.fill_frac", rank.sm.fill_frac
    yield "memory.peak_bytes", rank.memory.peak_bytes
    for name in ("step_ns", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu_frac") if throughput else ():
        yield f"throughput.{name}", getattr(throughput, name)
    if log and log.iterations_ns:
        yield "log.step_ns", _mean(log.iterations_ns)


def _mean(times_ns: tuple[int, ...]) -> int:
    return round(Fraction(sum(times_ns), len(times_ns)))
