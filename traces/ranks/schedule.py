"""How a step runs through the pipeline, by its messages: microbatches, virtual stages, and what each brings.

Megatron-Core runs some microbatches forward, then one forward and one backward in turn, then what is left
backward (megatron/core/pipeline_parallel/schedules.py: `get_pp_rank_microbatches` counts the first). In turn,
one call sends to a neighbour and receives from it, and NCCL makes one kernel of both. With virtual stages the
last stage sends to the first; between two stages that needs messages that only send or only receive
(megatron/training/arguments.py).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray, distinct
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.ranks import parts
from traces.ranks.pipelines import Pipelines
from traces.ranks.summary import UNKNOWN

_CURE: Final = "record NCCL's ranges (--trace=cuda,nvtx, NCCL 2.8.3 or later) of every rank of a pipeline"
_UNTOLD: Final = gap("the messages do not show which of them bring gradients", _CURE)
_VARY: Final = gap("the number of messages differs from step to step", "record whole steps")
_NO_FIT: Final = gap("the messages fit no schedule that is known here", _CURE)
_OF_TWO: Final = gap(
    "two stages exchange the same messages with virtual stages and without", "record NCCL's ranges"
)


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages of all ranks, shape (k,), in order of place, step and start.

    `peer` is the other's stage, `UNKNOWN` where there are several; `sends` and `receives` are `UNKNOWN` where
    nothing tells. `first`: where the messages of each rank and step begin, and the end of the last.
    """

    stage: IntArray
    peer: IntArray
    step: IntArray
    sends: IntArray
    receives: IntArray
    first: IntArray
    is_shape: BoolArray
    """Which are too small for data: they tell the shape of what follows."""


SHAPE: Final = Limit(
    1024,
    "bytes",
    "ours: before tensors of varying length Megatron-Core sends their shape, three 64-bit numbers "
    "(megatron/core/pipeline_parallel/p2p_communication.py); activations are many times larger",
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """`chunks`: virtual stages of a rank, 1 without. Of each message, shape (k,), whether it brings input
    (`fills`), takes output on (`passes`) or brings a gradient (`returns`); None where nothing tells.
    """

    microbatches: int
    chunks: int
    brings: tuple[BoolArray, BoolArray, BoolArray] | None


def schedule_of(sent: Sent, pipelines: Pipelines) -> Schedule | Missing:
    """Count the microbatches, by directions where these are recorded, else by the number of messages."""
    if (sent.peer == UNKNOWN).any():
        return _UNTOLD
    count = pipelines.count
    before = sent.peer == (sent.stage - 1) % count if count > 2 else sent.peer < sent.stage
    if (sent.sends == UNKNOWN).any():
        return _by_number(sent, before, count)
    brings = before & (sent.receives > 0), ~before & (sent.sends > 0), ~before & (sent.receives > 0)
    inputs = np.where(before & ~sent.is_shape, sent.receives, 0)
    got = [_per_step(sent, inputs, stage) for stage in (0, 1)]
    if None in got:
        return _VARY
    of_first, of_second = (number or 0 for number in got)
    if count == 2:
        batched = ((sent.sends > 0) & (sent.receives > 0)).any() or of_second == 1
        return Schedule(of_second, 1, brings) if batched else _OF_TWO
    microbatches = of_second - of_first
    if microbatches < 1 or of_second % microbatches:
        return _NO_FIT
    return Schedule(microbatches, of_second // microbatches, brings)


def _per_step(sent: Sent, amount: IntArray, stage: int) -> int | None:
    """Of each rank of a stage and each step the sum, which is one and the same; else None."""
    sums = parts.total(amount, sent.first)[sent.stage[sent.first[:-1]] == stage]
    several = distinct(sums).tolist()
    return several[0] if len(several) == 1 else None


def _by_number(sent: Sent, before: BoolArray, count: int) -> Schedule | Missing:
    """One kernel for each call of the schedule without virtual stages, or one for each way of it."""
    wraps = np.abs(sent.peer - sent.stage) == count - 1
    if count == 2:
        return _OF_TWO
    if wraps.any():
        return _UNTOLD
    behind = [_per_step(sent, (~before).astype(np.int64), stage) for stage in range(count - 1)]
    if None in behind:
        return _VARY
    numbers = [number or 0 for number in behind]
    microbatches = numbers[-1] - 1
    if microbatches > 0 and all(
        number == microbatches + min(count - 1 - stage, microbatches) for stage, number in enumerate(numbers)
    ):
        return Schedule(microbatches, 1, _in_turn(sent, before, count, microbatches))
    if len(distinct(np.array(numbers))) == 1 and not numbers[0] % 2:
        return Schedule(numbers[0] // 2, 1, None)
    return _NO_FIT


def _in_turn(
    sent: Sent, before: BoolArray, count: int, microbatches: int
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """What each message brings, by its turn among those with the same neighbour."""
    brings = tuple(np.zeros(len(sent.stage), dtype=np.bool_) for _ in range(3))
    fills, passes, returns = brings
    for begin, end in pairwise(sent.first.tolist()):
        warm = min(count - 1 - int(sent.stage[begin]), microbatches)
        upstream = begin + np.flatnonzero(before[begin:end])
        downstream = begin + np.flatnonzero(~before[begin:end])
        fills[upstream[:microbatches]] = True
        passes[downstream[:microbatches]] = True
        returns[downstream[warm:]] = True
    return fills, passes, returns


def phases_of(sent: Sent, schedule: Schedule, pipelines: Pipelines) -> IntArray | Missing:
    """The place in `PHASES` of each message, shape (k,).

    Warm-up is until the first gradient is there (on the last stage, which makes it: the first input),
    cool-down after the last output was passed on (there: after the last input).
    """
    if schedule.brings is None:
        return _UNTOLD
    fills, passes, returns = schedule.brings
    is_last = sent.stage == pipelines.count - 1
    begins, ends = np.where(is_last, fills, returns), np.where(is_last, fills, passes)
    turn = np.arange(len(sent.stage))
    warm_until = parts.least(np.where(begins, turn, len(turn)), sent.first)
    if (warm_until == len(turn)).any():
        return _NO_FIT
    steady_until = np.maximum(warm_until, parts.most(np.where(ends, turn, -1), sent.first))
    warm, steady = (turn <= parts.spread(until, sent.first) for until in (warm_until, steady_until))
    return np.where(warm, 0, np.where(steady, 1, 2))


PHASES: Final = ("warm_up", "steady", "cool_down")


def bubble_frac(stages: int, microbatches: int, chunks: int) -> float:
    """The part of a pipeline's time in which a stage waits, with equal stages and free messages.

    (p - 1) / (v m + p - 1), of stages, microbatches and virtual stages: Narayanan and others, Efficient
    Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021 (arXiv 2104.04473, section
    2.2), which gives it as a part of the time without it, (p - 1) / (v m).
    """
    return (stages - 1) / (chunks * microbatches + stages - 1)


__all__ = ["PHASES", "Schedule", "Sent", "bubble_frac", "phases_of", "schedule_of"]
