"""The numbers of a result that a trend can follow, and what has to agree within one trend."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from statistics import median
from typing import Any, Final

from traces.results.result import Rank, Result

_SHAPE: Final = (
    "world_size",
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_moe_experts",
    "moe_ffn_hidden_size",
    "moe_router_topk",
    "seq_length",
    "train.micro_batch_size",
    "train.global_batch_size",
)
"""Knobs without which a step is another step; how the same work is spread and done is what a trend shows."""


def metrics(result: Result) -> dict[str, float]:
    """Numbers by the document's names, times per step; what the result does not tell is absent.

    Of several ranks the one that `compare` would take: the lowest number, else the first.
    """
    return dict(_numbers(result))


def alike(result: Result) -> dict[str, Any]:
    """GPU, ranks and sizes of the model, as far as told: results that differ in one are not one trend."""
    settings = result.configuration.settings if result.configuration else {}
    sizes = {knob: settings[knob] for knob in _SHAPE if settings.get(knob) is not None}
    return {"gpu": _first(result).gpu, "ranks": len(result.ranks), **sizes}


def _first(result: Result) -> Rank:
    numbered = [rank for rank in result.ranks if rank.rank is not None]
    return min(numbered, key=lambda rank: rank.rank or 0) if numbered else result.ranks[0]


def _numbers(result: Result) -> Iterator[tuple[str, float]]:
    rank = _first(result)
    if rank.steps.has_steps:
        yield "step_ns", _mean(rank.steps.lengths_ns)
        yield "step_median_ns", round(median(map(Fraction, rank.steps.lengths_ns)))
        for row in rank.ledger or ():
            if row.group in ("budget", "moe"):
                yield f"ledger.{row.row}", _mean(row.per_step_ns)
    for bucket, time_ns in rank.budget_ns.items():
        if time_ns is not None and rank.window_ns:
            yield f"budget_frac.{bucket}", time_ns / rank.window_ns
    for wall in result.walls:
        yield from _told(f"walls.{wall.get('id')}.", wall, ("cost_frac",))
    yield from _told("moe.", rank.moe or {}, ("tax_frac",))
    yield from _told("sm.", rank.sm, ("occupancy_frac", "fill_frac"))
    yield from _told("memory.", rank.memory, ("peak_bytes",))
    keys = ("step_ns", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "mfu_frac")
    yield from _told("throughput.", result.throughput or {}, keys)
    if result.log and result.log.iterations_ns:
        yield "log.step_ns", _mean(result.log.iterations_ns)


def _told(prefix: str, section: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    for key in keys:
        value = section.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + key, value


def _mean(times_ns: tuple[int, ...]) -> int:
    return round(Fraction(sum(times_ns), len(times_ns)))
