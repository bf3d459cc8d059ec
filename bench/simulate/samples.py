"""Samples of hardware counters, as nsys takes them while a run goes on."""

from __future__ import annotations

from typing import Final

from bench.simulate.draws import uniform
from bench.simulate.host_program import Engine
from bench.simulate.kernels import GPUS
from bench.simulate.run import Run

_METRICS_EVERY_NS: Final = 100_000
"""nsys's default of 10 kHz."""


def samples_of(run: Run) -> list[tuple[int, int, int, int]]:
    """Time and three counters in per cent, one row per period."""
    sm_count = GPUS[run.knobs.gpu].sm_count
    count = run.executed.end_ns // _METRICS_EVERY_NS + 1
    sums = [[0.0, 0.0, 0.0] for _ in range(count)]
    for activity in run.executed.activities:
        work = activity.work
        if work.engine not in (Engine.SMS, Engine.COMMUNICATION):
            continue
        filled = min(work.block_count / sm_count, 1.0)
        is_gemm = "gemm" in work.kernel or work.kernel.startswith("attention")
        weights = (filled, filled * (0.35 if work.engine is Engine.SMS else 0.03), filled * 0.6 * is_gemm)
        first, last = activity.start_ns // _METRICS_EVERY_NS, activity.end_ns // _METRICS_EVERY_NS
        for period in range(first, min(last, count - 1) + 1):
            begin_ns = period * _METRICS_EVERY_NS
            inside_ns = min(activity.end_ns, begin_ns + _METRICS_EVERY_NS) - max(activity.start_ns, begin_ns)
            for place, weight in enumerate(weights):
                sums[period][place] += weight * inside_ns / _METRICS_EVERY_NS
    rows = []
    for period, values in enumerate(sums):
        noise = uniform(f"{run.knobs.seed}/sample/{period}")
        percent = (round(100 * min(value, 1.0) * (0.97 + 0.03 * noise)) for value in values)
        rows.append((period * _METRICS_EVERY_NS, *percent))
    return rows  # type: ignore[return-value]
