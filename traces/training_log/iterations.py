"""Iteration lines of the trainers.

Megatron-LM (megatron/training/training.py, core_v0.12.0 to d98e8a64) and Megatron-Bridge
(training/utils/train_utils.py, v0.2 to 067f987d) print `iteration 10/ 100 | consumed samples: ... | elapsed
time per iteration (ms): 31310.0 | throughput per GPU (TFLOP/s/GPU): 199.1 | ...` on the last rank.
Megatron-Bridge also prints `Step Time : 31.31s GPU utilization: 199.1MODEL_TFLOP/s/GPU` on the first.
"""

import re
from collections import deque
from dataclasses import replace
from typing import Final

from traces.limits import Limit
from traces.training_log.log import Iteration

WORDS: Final = (b"elapsed time per iteration", b"Step Time :")
KEPT: Final = Limit(100_000, "iterations", "ours: a long run's newest, and bounded")
_NUMBER: Final = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(?![0-9.])"
_ITERATION: Final = re.compile(
    rf"iteration +([0-9]{{1,12}})/ *([0-9]{{1,12}}) \|.*?elapsed time per iteration \(ms\): {_NUMBER}"
)
_THROUGHPUT: Final = re.compile(rf"throughput per GPU \(TFLOP/s/GPU\): {_NUMBER}")
_TOKENS: Final = re.compile(rf"[Tt]okens?(?:/| per )s(?:ec(?:ond)?)?(?:/| per )(?:gpu|GPU)[^:|]*: *{_NUMBER}")
_BATCH: Final = re.compile(r"global batch size: +([0-9]{1,12})")
_STEP_TIME: Final = re.compile(rf"Step Time : {_NUMBER}s GPU utilization: {_NUMBER}(?:MODEL_)?TFLOP/s/GPU")
_ROUNDED_NS: Final = 5_000_001
"""`Step Time` has two decimals of a second."""


class IterationLines:
    """Collects iteration lines; `result` is what they say together."""

    def __init__(self) -> None:
        self.last_of_run = False
        self.planned: int | None = None
        self._iterations: deque[Iteration] = deque(maxlen=int(KEPT.value))
        self._step_times: deque[Iteration] = deque(maxlen=int(KEPT.value))
        self._step_time_count = 0

    def take(self, number: int, text: str) -> bool:
        """Whether the line is one of these."""
        found = _ITERATION.search(text) if "elapsed time per iteration" in text else None
        if found:
            self.planned = int(found[2])
            self.last_of_run = int(found[1]) >= self.planned
            length_ns = round(float(found[3]) * 1e6)
            if length_ns:
                self._iterations.append(
                    Iteration(
                        index=int(found[1]),
                        length_ns=length_ns,
                        line=number,
                        tflops_per_gpu=_positive(_THROUGHPUT.search(text)),
                        tokens_per_s_per_gpu=_positive(_TOKENS.search(text)) if "oken" in text else None,
                        global_batch_size=int(batch[1]) if (batch := _BATCH.search(text)) else None,
                    )
                )
        elif "Step Time :" in text and (found := _STEP_TIME.search(text)):
            self._step_time_count += 1
            length_ns = round(float(found[1]) * 1e9)
            if length_ns:
                tflops = float(found[2]) or None
                self._step_times.append(Iteration(self._step_time_count, length_ns, number, tflops))
        return found is not None

    def result(self) -> tuple[Iteration, ...]:
        """Numbered iterations, with the throughput that a `Step Time` line of the same length adds.

        The two kinds come from different ranks, so that either may be first; both are in order.
        """
        if not self._iterations:
            return tuple(self._step_times)
        waiting = deque(self._step_times)
        told: list[Iteration] = []
        for iteration in self._iterations:
            while len(waiting) > 1 and not _same(waiting[0], iteration) and waiting[1].line < iteration.line:
                waiting.popleft()
            if waiting and _same(waiting[0], iteration):
                adds = waiting.popleft().tflops_per_gpu
                iteration = replace(iteration, tflops_per_gpu=iteration.tflops_per_gpu or adds)
            told.append(iteration)
        return tuple(told)


def _same(step_time: Iteration, iteration: Iteration) -> bool:
    return abs(step_time.length_ns - iteration.length_ns) <= _ROUNDED_NS


def _positive(found: re.Match[str] | None) -> float | None:
    return (float(found[1]) or None) if found else None
