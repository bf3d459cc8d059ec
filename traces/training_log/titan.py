"""Lines of torchtitan's trainer: a step's number, its rates, its memory, and how long it waited for
data.

torchtitan (components/metrics.py, 2025-03 to 2026-07) prints `step: 10 loss: 8.2 grad_norm: 0.4
memory: 65.53GiB(82.98%) tps: 1,482 tflops: 86.61 mfu: 8.76%` behind its logger's time; some loggers
print its other metrics behind these. It prints no length: two lines of one rank tell it. `tps`
counts tokens of one device, `memory` is the most that PyTorch reserved.
"""

from datetime import datetime
from typing import Final

from traces.frozen import frozen
from traces.patterns import Match, compiled
from traces.training_log.log import Iteration, LoggedMemory
from traces.training_log.memory import rank_of

WORDS: Final = (b"  tps: ",)
_NUMBER: Final = r"([0-9]{1,3}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,9})?|[0-9]{1,12}(?:\.[0-9]{1,9})?)"
_STEP: Final = compiled(rf"\bstep: {{0,8}}([0-9]{{1,9}})  .{{0,200}}?  tps: {{0,8}}{_NUMBER}")
_TIME: Final = compiled(r"\b([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}),([0-9]{3})\b")
_TFLOPS: Final = compiled(rf"  tflops: {{0,8}}{_NUMBER}")
_MEMORY: Final = compiled(r"  memory: {0,8}([0-9]{1,6}\.[0-9]{1,3})GiB\(")
_LOADING: Final = compiled(r"data_loading\(%\)\"?: {0,8}([0-9]{1,3}(?:\.[0-9]{1,9})?)")
_GIB: Final = 1 << 30


@frozen
class TitanStep:
    """What one line says. `iteration`: None for the first line, whose length nothing tells."""

    iteration: Iteration | None
    memory: LoggedMemory | None
    loading_frac: float | None


class TitanLines:
    """Reads the lines of one log, of the rank that prints first."""

    def __init__(self) -> None:
        self._rank: int | None = None
        self._last: tuple[int, float] | None = None
        self._begun = False

    def take(self, number: int, text: str) -> TitanStep | None:
        match = _STEP.search(text) if "  tps: " in text else None
        if not match:
            return None
        rank = rank_of(text)
        if not self._begun:
            self._begun, self._rank = True, rank
        if rank != self._rank:
            return TitanStep(None, None, None)
        loading, gib = _LOADING.search(text), _MEMORY.search(text)
        reserved = (
            LoggedMemory(number, rank, peak_reserved_bytes=round(float(gib[1]) * _GIB))
            if gib
            else None
        )
        return TitanStep(self._iteration(number, text, match), reserved, _share(loading))

    def _iteration(self, number: int, text: str, match: Match) -> Iteration | None:
        index, at, before = int(match[1]), _seconds(text), self._last
        if at is not None:
            self._last = index, at
        if before is None or at is None or index <= before[0] or at <= before[1]:
            return None
        tflops = _TFLOPS.search(text)
        return Iteration(
            index=index,
            length_ns=round((at - before[1]) / (index - before[0]) * 1e9),
            line=number,
            tflops_per_gpu=_number(tflops[1]) or None if tflops else None,
            tokens_per_s_per_gpu=_number(match[2]) or None,
        )


def _seconds(text: str) -> float | None:
    match = _TIME.search(text)
    if not match:
        return None
    try:
        return datetime.fromisoformat(match[1]).timestamp() + int(match[2]) / 1000
    except ValueError:  # no such day or hour
        return None


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _share(match: Match | None) -> float | None:
    percent = float(match[1]) if match else None
    if percent is None or percent > 100:
        return None
    return percent / 100
