"""Iteration lines of the trainers, and the steady step: how long a step takes without the profiler.

Megatron-LM (megatron/training/training.py, core_v0.12.0 to d98e8a64) and Megatron-Bridge
(training/utils/train_utils.py, v0.2 to 067f987d) print `iteration 10/ 100 | consumed samples: ... |
elapsed time per iteration (ms): 31310.0 | throughput per GPU (TFLOP/s/GPU): 199.1 | ...` on the
last rank. Megatron-Bridge also prints `Step Time : 31.31s GPU utilization: 199.1MODEL_TFLOP/s/GPU`
on the first.

Left out of the steady step are the first iterations of each start, warm-up and capture of CUDA
graphs, iterations that the profiler recorded, and those far above the rest, such as one that waited
for a checkpoint.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean, median
from typing import Final, Literal

from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import Match, compiled
from traces.settings.settings import Settings
from traces.training_log.log import Iteration, Iterations, TrainingLog

WORDS: Final = (b"elapsed time per iteration", b"Step Time :")
KEPT: Final = Limit(
    100_000, "of a kind", "ours: a long run's newest, and every rank of the largest; bounded"
)
_NUMBER: Final = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_END: Final = r"(?:[^0-9.]|$)"
"""Behind a number that goes no further."""
_ITERATION: Final = compiled(
    rf"iteration +([0-9]{{1,12}})/ *([0-9]{{1,12}}) \|.*?elapsed time per iteration \(ms\): "
    rf"{_NUMBER}{_END}"
)
_THROUGHPUT: Final = compiled(rf"throughput per GPU \(TFLOP/s/GPU\): {_NUMBER}{_END}")
_TOKENS: Final = compiled(
    rf"[Tt]okens?(?:/| per )s(?:ec(?:ond)?)?(?:/| per )(?:gpu|GPU)[^:|]*: *{_NUMBER}{_END}"
)
_BATCH: Final = compiled(r"global batch size: +([0-9]{1,12})")
_STEP_TIME: Final = compiled(
    rf"Step Time : {_NUMBER}s GPU utilization: {_NUMBER}(?:MODEL_)?TFLOP/s/GPU"
)
_ROUNDED_NS: Final = 5_000_001
"""`Step Time` has two decimals of a second."""


class IterationLines:
    """Collects iteration lines; `result` is what they say together."""

    def __init__(self) -> None:
        self.last_of_run = False
        self.planned: int | None = None
        self._iterations = deque[Iteration](maxlen=KEPT.whole)
        self._step_times = deque[Iteration](maxlen=KEPT.whole)
        self._step_time_count = 0

    def take(self, number: int, text: str) -> bool:
        match = _ITERATION.search(text) if "elapsed time per iteration" in text else None
        if match:
            self.planned = int(match[2])
            self.last_of_run = int(match[1]) >= self.planned
            length_ns = round(float(match[3]) * 1e6)
            if length_ns:
                self._iterations.append(
                    Iteration(
                        index=int(match[1]),
                        length_ns=length_ns,
                        line=number,
                        tflops_per_gpu=_positive(_THROUGHPUT.search(text)),
                        tokens_per_s_per_gpu=_positive(_TOKENS.search(text))
                        if "oken" in text
                        else None,
                        global_batch_size=int(batch[1]) if (batch := _BATCH.search(text)) else None,
                    )
                )
        elif "Step Time :" in text and (match := _STEP_TIME.search(text)):
            self._step_time_count += 1
            length_ns = round(float(match[1]) * 1e9)
            if length_ns:
                tflops = float(match[2]) or None
                self._step_times.append(Iteration(self._step_time_count, length_ns, number, tflops))
        return match is not None

    def add(self, iteration: Iteration) -> None:
        """An iteration that another reader found."""
        self._iterations.append(iteration)

    def result(self) -> Iterations:
        """Numbered iterations, with the throughput that a `Step Time` line of the same length adds.

        The two kinds come from different ranks, so that either may be first; both are in order.
        """
        if not self._iterations:
            return tuple(self._step_times)
        waiting = deque(self._step_times)
        iterations = []
        for iteration in self._iterations:
            while (
                len(waiting) > 1
                and not _same(waiting[0], iteration)
                and waiting[1].line < iteration.line
            ):
                waiting.popleft()
            if waiting and _same(waiting[0], iteration):
                adds = waiting.popleft().tflops_per_gpu
                iteration = replace(iteration, tflops_per_gpu=iteration.tflops_per_gpu or adds)
            iterations.append(iteration)
        return tuple(iterations)


def _same(step_time: Iteration, iteration: Iteration) -> bool:
    return abs(step_time.length_ns - iteration.length_ns) <= _ROUNDED_NS


def _positive(match: Match | None) -> float | None:
    if match:
        return float(match[1]) or None
    return None


FIRST: Final = Limit(
    3,
    "iterations",
    "ours: a first step builds and compiles, its neighbours fill caches; Megatron-Core warms "
    "graphs up for 3 (cuda_graph_warmup_steps, core_v0.16.1 to d98e8a64)",
)
EXCERPT_FROM: Final = Limit(
    10,
    "iterations",
    "ours: trainers log every one or every tenth; a line that stands alone may speak for all "
    "before it",
)
FAR_ABOVE: Final = Limit(
    1.5,
    "times the median",
    "ours: no jitter of a steady step, but a checkpoint, a restart or a fault",
)

Reason = Literal["first", "graph_warm_up", "graph_capture", "profiled", "checkpoint", "far_above"]


@frozen
class LeftOut:
    """An iteration that is no steady one, and why."""

    iteration: Iteration
    reason: Reason


@frozen
class SteadyStep:
    """The length of a steady step, in ns, over the iterations used. `spread_ns`: longest less
    shortest.
    """

    used: Iterations
    left_out: tuple[LeftOut, ...]
    median_ns: int
    mean_ns: int
    spread_ns: int

    @property
    def with_far_above(self) -> Iterations:
        """The used ones and those far above them, in order: a mean that leaves out pauses is no
        mean.
        """
        far = [out.iteration for out in self.left_out if out.reason == "far_above"]
        return tuple(sorted((*self.used, *far), key=lambda iteration: iteration.line))

    @property
    def count(self) -> int:
        return len(self.used)

    @property
    def left_out_by_reason(self) -> dict[str, int]:
        return dict(sorted(Counter(out.reason for out in self.left_out).items()))


def steady_step(log: TrainingLog | None) -> SteadyStep | None:
    """The steady step; None where there is no log, or it holds no steady iteration."""
    if not log:
        return None
    judged = [*zip(log.iterations, _reasons(log), strict=True)]
    kept_ns = [iteration.length_ns for iteration, reason in judged if reason is None]
    if not kept_ns:
        return None
    longest_ns = median(kept_ns) * FAR_ABOVE.value
    checkpoints = _lines(log, "checkpoint")
    used = []
    left_out = []
    before = 0
    for iteration, reason in judged:
        if reason is None and iteration.length_ns > longest_ns:
            reason = "checkpoint" if _between(checkpoints, before, iteration.line) else "far_above"
        if reason is None:
            used.append(iteration)
        else:
            left_out.append(LeftOut(iteration, reason))
        before = iteration.line
    lengths_ns = [iteration.length_ns for iteration in used]
    return SteadyStep(
        used=tuple(used),
        left_out=tuple(left_out),
        median_ns=round(median(lengths_ns)),
        mean_ns=round(mean(lengths_ns)),
        spread_ns=max(lengths_ns) - min(lengths_ns),
    )


def perturbation_frac(profiled_step_ns: int, steady: SteadyStep) -> float:
    """How much longer a profiled step is than a steady one, as part of the steady one."""
    return profiled_step_ns / steady.median_ns - 1.0


def _reasons(log: TrainingLog) -> Iterator[Reason | None]:
    """Why each iteration is left out before lengths are compared."""
    settings = log.settings or Settings()
    warm_up = _graph_warm_up(settings)
    profiled = _profiled_iterations(settings)
    captures = _lines(log, "graph-capture-begins", "graph-captured", "graph-built")
    begun, ended = _lines(log, "profiler-begins"), _lines(log, "profiler-ends")
    start, before, before_line = 0, 0, 0
    for place, iteration in enumerate(log.iterations):
        restarted = place == 0 or iteration.index <= before
        if restarted:
            start = before = iteration.index - _covered(log.iterations[place : place + 3])
        if place == 0 and _is_excerpt(log):
            start, restarted = before - FIRST.whole - warm_up, False
        line = iteration.line
        recorded = bisect_left(begun, line) > bisect_left(ended, before_line)
        if _between(captures, before_line, line):
            yield "graph_capture"
        elif restarted or before < start + FIRST.value:
            yield "first"
        elif before < start + warm_up:
            yield "graph_warm_up"
        elif recorded or (profiled and before < profiled[1] and iteration.index > profiled[0]):
            yield "profiled"
        else:
            yield None
        before, before_line = iteration.index, line


def _is_excerpt(log: TrainingLog) -> bool:
    """Whether it begins in the middle of a run: nothing of a start is in it, and its numbers are
    far in.
    """
    if log.settings or log.versions or log.theoretical or log.first("training-begins"):
        return False
    if log.planned_iterations is None and log.line_count == len(log.iterations) <= FIRST.value:
        return True  # some lines and nothing else were copied
    before = log.iterations[0].index - _covered(log.iterations[:3])
    return before >= (FIRST.value if len(log.iterations) > 1 else EXCERPT_FROM.value)


def _covered(first_lines: Sequence[Iteration]) -> int:
    """How many iterations the first line of a start stands for: all of an interval, or one.

    Megatron-LM from core_v0.18 on logs the very first iteration apart, whatever the interval.
    """
    indexes = [iteration.index for iteration in first_lines]
    interval = indexes[-1] - indexes[-2] if len(indexes) > 1 else 1
    if interval > 0 and indexes[0] % interval == 0:
        return interval
    return 1


def _graph_warm_up(settings: Settings) -> int:
    """Iterations before graphs replay, the capture included; 0 where graphs are not known to be
    on.
    """
    if settings.value("cuda_graph_impl") in (None, "none"):
        return 0
    steps = settings.value("cuda_graph_warmup_steps")
    return (steps if isinstance(steps, int) else FIRST.whole) + 1


def _profiled_iterations(settings: Settings) -> tuple[int, int] | None:
    """(last before, last) of the iterations a profiler is set to record; None where none is known
    to be.
    """
    profilers = ("profiling.use_nsys_profiler", "profiling.use_pytorch_profiler")
    start = settings.value("profiling.profile_step_start")
    end = settings.value("profiling.profile_step_end")
    on = True in map(settings.value, profilers)
    if on and isinstance(start, int) and isinstance(end, int):
        return start, end
    return None


def _lines(log: TrainingLog, *ids: str) -> list[int]:
    return [message.line for message in log.those(*ids)]


def _between(lines: list[int], after: int, before: int) -> bool:
    return bisect_right(lines, after) < bisect_left(lines, before)
