"""Which stage of a pipeline each rank is, by groups and messages; and how a step runs through the
stages.

Megatron-Core runs some microbatches forward, then one forward and one backward in turn, then what
is left backward (megatron/core/pipeline_parallel/schedules.py: `get_pp_rank_microbatches` counts
the first). In turn, one call sends to a neighbour and receives from it, and NCCL makes one kernel
of both. With virtual stages the last stage sends to the first; between two stages that needs
messages that only send or only receive (megatron/training/arguments.py).
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Final

import numpy as np

from traces.arrays import BoolArray, IntArray, codes_of, distinct, ints, none_of, zeros
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import Missing, gap
from traces.names.kernels import COMM_KINDS
from traces.ranks.matching.communicators import groups_of
from traces.ranks.matching.gathered import Pair
from traces.ranks.matching.match import Matched, together
from traces.ranks.rows import parts
from traces.ranks.summaries.summary import UNKNOWN, RankSummary, Summaries


def messages_of(matched: Matched) -> BoolArray:
    """Which instances are messages of the pipeline, shape (n,)."""
    return parts.least(matched.kind == COMM_KINDS.index("pp_p2p"), matched.first)


def stages_of(matched: Matched) -> IntArray:
    """A number for each place, the same for ranks of one stage.

    Stages meet in messages of the pipeline, and in groups of all ranks; all other groups lie within
    one. Without such messages all is one stage.
    """
    messages = messages_of(matched)
    if not messages.any():
        return zeros(matched.ranks)
    return together(matched, ~messages & (matched.sizes < matched.ranks))


_CURE_OF_STAGES: Final = (
    "record every rank of a pipeline, with NCCL 2.25 or later and --trace=cuda,nvtx"
)
UNRESOLVED: Final = gap("messages of unknown purpose may be those of a pipeline", _CURE_OF_STAGES)
_NO_ENDS: Final = gap("the messages do not show which stage is the first", _CURE_OF_STAGES)
_UNEVEN: Final = gap(
    "the messages do not join the ranks to pipelines of one length", _CURE_OF_STAGES
)


@frozen
class Pipelines:
    """`stage`: of each place, from 0, `UNKNOWN` of ranks without messages; `count` stages."""

    stage: IntArray
    count: int


def pipelines_of(
    summaries: Summaries, matched: Matched, messages: BoolArray
) -> Pipelines | Missing:
    """Order the ranks. `messages`: which instances are messages of the pipeline, shape (n,).

    Which of two comes first is by their places in the communicator, which frameworks number by
    stage, else by who runs the embedding or the loss, else by rank number.
    """
    if matched.by_order[messages].any():
        return gap(
            "no communicator is recorded beside the messages, so who sends to whom is not certain",
            _CURE_OF_STAGES,
        )
    votes = _votes(summaries, matched, messages)
    edges = [(low, high) if vote >= 0 else (high, low) for (low, high), vote in votes.items()]
    stage = _by_longest_way(edges) if all(votes.values()) else _by_ends(edges, summaries)
    if isinstance(stage, Missing):
        return stage
    count = max(stage.values()) + 1
    number = np.full(len(summaries), UNKNOWN)
    number[list(stage)] = list(stage.values())
    of_each = np.bincount(number[number != UNKNOWN], minlength=count)
    far = np.abs(np.diff(number[np.array(edges)]))
    if np.ptp(of_each) or not np.isin(far, (1, count - 1)).all():
        return _UNEVEN
    return Pipelines(number, count)


def _votes(summaries: Summaries, matched: Matched, messages: BoolArray) -> dict[Pair, int]:
    """Pairs of places that exchange messages: above 0 the first is the earlier stage, 0 if
    unknown.
    """
    groups = groups_of(summaries)
    votes = defaultdict[Pair, int](int)
    rows = np.flatnonzero(messages[matched.instance])
    group = matched.recorded.rows.group[matched.at[rows]]  # by its number in the rank's own summary
    first = np.searchsorted(rows, matched.first[:-1][messages])
    size = np.diff(np.append(first, len(rows)))
    seen = np.stack((matched.place[rows], group))
    for count in np.unique(size).tolist():
        at = first[size == count][:, None] + np.arange(count)
        for meeting in np.unique(seen[:, at].transpose(1, 0, 2), axis=0):
            own = [groups[place][number].own for place, number in meeting.T.tolist()]
            _vote(votes, meeting[0].tolist(), own)
    return votes


def _vote(votes: dict[Pair, int], places: list[int], own: Sequence[int | None]) -> None:
    """One set of ranks that meet: those with neighbouring places in the communicator are
    neighbours.
    """
    placed = [
        (number, place) for number, place in zip(own, places, strict=True) if number is not None
    ]
    if len(placed) < len(places):
        if len(places) == 2:
            votes[min(places), max(places)] += 0
        return
    for (_, before), (_, after) in pairwise(sorted(placed)):
        votes[min(before, after), max(before, after)] += 1 if before < after else -1


def _by_longest_way(edges: Sequence[Pair]) -> dict[int, int] | Missing:
    """Stages where all directions are known: how many ranks come before, at most."""
    stage = dict.fromkeys(chain.from_iterable(edges), 0)
    for _ in stage:
        moved = False
        for before, after in edges:
            if stage[after] < stage[before] + 1:
                stage[after], moved = stage[before] + 1, True
        if not moved:
            return stage
    return _UNEVEN


def _by_ends(edges: Sequence[Pair], summaries: Summaries) -> dict[int, int] | Missing:
    beside = defaultdict[int, list[int]](list)
    for before, after in edges:
        beside[before].append(after)
        beside[after].append(before)
    if max(map(len, beside.values())) > 2:
        return _UNEVEN
    stage: dict[int, int] = {}
    for end in sorted(beside):
        if len(beside[end]) > 1 or end in stage:
            continue
        path = [end]
        while following := {*beside[path[-1]]}.difference(path[-2:]):  # one at most
            path += following
        turned = _first_is_last(summaries[path[0]], summaries[path[-1]])
        if turned is None:
            return _NO_ENDS
        stage |= codes_of(path[::-1] if turned else path)
    if len(stage) == len(beside):
        return stage
    return _NO_ENDS


def _first_is_last(first: RankSummary, second: RankSummary) -> bool | None:
    """Whether the first of two ends is the last stage; None where nothing tells."""
    for name, of_first in (("has_embedding", True), ("has_loss", False)):
        mine, theirs = getattr(first.fingerprint, name), getattr(second.fingerprint, name)
        if mine != theirs:
            return bool(theirs == of_first)
    if first.identity.rank is None or second.identity.rank is None:
        return None
    return first.identity.rank > second.identity.rank


_CURE_OF_SCHEDULE: Final = (
    "record NCCL's ranges (--trace=cuda,nvtx, NCCL 2.8.3 or later) of every rank of a pipeline"
)
_UNTOLD: Final = gap("the messages do not show which of them bring gradients", _CURE_OF_SCHEDULE)
_VARY: Final = gap("the number of messages differs from step to step", "record whole steps")
_NO_FIT: Final = gap("the messages fit no schedule that is known here", _CURE_OF_SCHEDULE)
_OF_TWO: Final = gap(
    "two stages exchange the same messages with virtual stages and without", "record NCCL's ranges"
)


@frozen
class Sent:
    """Messages of all ranks, shape (k,), in order of place, step and start.

    `peer` is the other's stage, `UNKNOWN` where there are several; `sends` and `receives` are
    `UNKNOWN` where nothing tells. `first`: where the messages of each rank and step begin, and the
    end of the last.
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


@frozen
class Schedule:
    """`chunks`: virtual stages of a rank, 1 without. Of each message, shape (k,), whether it brings
    input (`fills`), takes output on (`passes`) or brings a gradient (`returns`); None where nothing
    tells.
    """

    microbatches: int
    chunks: int
    brings: tuple[BoolArray, BoolArray, BoolArray] | None


def schedule_of(sent: Sent, pipelines: Pipelines) -> Schedule | Missing:
    """Count the microbatches, by directions where these are recorded, else by the number of
    messages.
    """
    if (sent.peer == UNKNOWN).any():
        return _UNTOLD
    count = pipelines.count
    # of two stages each is before and behind the other in the ring
    before = sent.peer == (sent.stage - 1) % count if count > 2 else sent.peer < sent.stage
    if (sent.sends == UNKNOWN).any():
        return _by_number(sent, before, count)
    brings = before & (sent.receives > 0), ~before & (sent.sends > 0), ~before & (sent.receives > 0)
    got = _per_step(sent, np.where(before & ~sent.is_shape, sent.receives, 0), 2)
    if got is None:
        return _VARY
    of_first, of_second = got
    if count == 2:
        if ((sent.sends > 0) & (sent.receives > 0)).any() or of_second == 1:
            return Schedule(of_second, 1, brings)
        return _OF_TWO
    microbatches = of_second - of_first  # of its first chunk the first stage gets no input
    if microbatches < 1 or of_second % microbatches:
        return _NO_FIT
    return Schedule(microbatches, of_second // microbatches, brings)


def _per_step(sent: Sent, amount: IntArray, count: int) -> list[int] | None:
    """Of the first `count` stages the sum of each rank and step, if that is one and the same."""
    sums, stage = parts.total(amount, sent.first), sent.stage[sent.first[:-1]]
    distinct_sums = distinct(sums[stage < count] * count + stage[stage < count])
    by_stage = zeros(count)
    by_stage[distinct_sums % count] = distinct_sums // count
    if np.array_equal(np.sort(distinct_sums % count), np.arange(count)):
        return by_stage.tolist()
    return None


def _by_number(sent: Sent, before: BoolArray, count: int) -> Schedule | Missing:
    """One kernel for each call of the schedule without virtual stages, or one for each way of
    it.
    """
    if count == 2:
        return _OF_TWO
    if (np.abs(sent.peer - sent.stage) == count - 1).any():
        return _UNTOLD
    numbers = _per_step(sent, ints(~before), count - 1)
    if numbers is None:
        return _VARY
    microbatches = numbers[-1] - 1
    warm = np.minimum(np.arange(count - 1, 0, -1), microbatches)
    if numbers == (microbatches + warm).tolist():
        return Schedule(microbatches, 1, _in_turn(sent, before, count, microbatches))
    number, *other_numbers = set(numbers)
    if not other_numbers and not number % 2:
        return Schedule(number // 2, 1, None)
    return _NO_FIT


def _in_turn(
    sent: Sent, before: BoolArray, count: int, microbatches: int
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """What each message brings, by its turn among those with the same neighbour."""
    fills, passes, returns = none_of((3, len(sent.stage)))
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

    Warm-up is until the first gradient is there (on the last stage, which makes it: the first
    input), cool-down after the last output was passed on (there: after the last input).
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
    warm = turn <= parts.spread(warm_until, sent.first)
    return np.where(warm, 0, np.where(turn <= parts.spread(steady_until, sent.first), 1, 2))


PHASES: Final = ("warm_up", "steady", "cool_down")


def bubble_frac(stages: int, microbatches: int, chunks: int) -> float:
    """The part of a pipeline's time in which a stage waits, with equal stages and free messages.

    (p - 1) / (v m + p - 1), of stages, microbatches and virtual stages: Narayanan and others,
    Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021 (arXiv
    2104.04473, section 2.2), which gives it as a part of the time without it, (p - 1) / (v m).
    """
    return (stages - 1) / (chunks * microbatches + stages - 1)
