"""Which stage of a pipeline each rank is, by the messages between them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.missing import Missing, gap
from traces.ranks.match import Matched
from traces.ranks.pairs import groups_of
from traces.ranks.summary import UNKNOWN, RankSummary

_CURE: Final = "record every rank of a pipeline, with NCCL 2.25 or later and --trace=cuda,nvtx"
UNRESOLVED: Final = gap("messages of unknown purpose may be those of a pipeline", _CURE)
_NO_ENDS: Final = gap("the messages do not show which stage is the first", _CURE)
_BY_ORDER: Final = gap(
    "no communicator is recorded beside the messages, so who sends to whom is not certain", _CURE
)
_UNEVEN: Final = gap("the messages do not join the ranks to pipelines of one length", _CURE)


@dataclass(frozen=True, slots=True)
class Pipelines:
    """`stage`: of each place, from 0, `UNKNOWN` of ranks without messages; `count` stages."""

    stage: IntArray
    count: int


def pipelines_of(
    summaries: Sequence[RankSummary], matched: Matched, messages: BoolArray
) -> Pipelines | Missing:
    """Order the ranks. `messages`: which instances are messages of the pipeline, shape (n,).

    Which of two comes first is by their places in the communicator, which frameworks number by stage, else by
    who runs the embedding or the loss, else by rank number.
    """
    if matched.by_order[messages].any():
        return _BY_ORDER
    votes = _votes(summaries, matched, messages)
    known = all(votes.values())
    edges = [(one, other) if vote >= 0 else (other, one) for (one, other), vote in votes.items()]
    stage = _by_longest_way(edges) if known else _by_ends(edges, summaries)
    if isinstance(stage, Missing):
        return stage
    count = max(stage.values()) + 1
    number = np.full(len(summaries), UNKNOWN, dtype=np.int64)
    number[list(stage)] = list(stage.values())
    of_each = np.bincount(number[number != UNKNOWN], minlength=count)
    steps_by_one = all(abs(stage[one] - stage[other]) in (1, count - 1) for one, other in edges)
    if count < 2 or (of_each != of_each[0]).any() or not steps_by_one:
        return _UNEVEN
    return Pipelines(number, count)


def _votes(
    summaries: Sequence[RankSummary], matched: Matched, messages: BoolArray
) -> dict[tuple[int, int], int]:
    """Pairs of places that exchange messages: above 0 the first is the earlier stage, 0 if unknown."""
    groups = groups_of(summaries)
    votes: dict[tuple[int, int], int] = defaultdict(int)
    rows = np.flatnonzero(messages[matched.instance])
    group = matched.recorded.rows.group[matched.at[rows]]  # by its number in the rank's own summary
    first = np.searchsorted(rows, matched.first[:-1][messages])
    size = np.diff(np.append(first, len(rows)))
    seen = np.stack((matched.place[rows], group))
    for count in np.unique(size).tolist():
        at = first[size == count][:, None] + np.arange(count)
        for several in np.unique(seen[:, at].transpose(1, 0, 2), axis=0):
            own = [groups[place][number].own for place, number in several.T.tolist()]
            _vote(votes, several[0].tolist(), own)
    return votes


def _vote(votes: dict[tuple[int, int], int], places: list[int], own: Sequence[int | None]) -> None:
    """One set of ranks that meet: those with neighbouring places in the communicator are neighbours."""
    told = [(number, place) for number, place in zip(own, places, strict=True) if number is not None]
    if len(told) < len(places):
        if len(places) == 2:
            votes[min(places), max(places)] += 0
        return
    ordered = [place for _, place in sorted(told)]
    for one, other in pairwise(ordered):
        votes[min(one, other), max(one, other)] += 1 if one < other else -1


def _by_longest_way(edges: Sequence[tuple[int, int]]) -> dict[int, int] | Missing:
    """Stages where all directions are known: how many ranks come before, at most.

    With virtual stages the last one sends to the first, whose place is still the lowest.
    """
    stage = {place: 0 for edge in edges for place in edge}
    for _ in stage:
        moved = False
        for one, other in edges:
            if stage[other] < stage[one] + 1:
                stage[other], moved = stage[one] + 1, True
        if not moved:
            return stage
    return _UNEVEN


def _by_ends(edges: Sequence[tuple[int, int]], summaries: Sequence[RankSummary]) -> dict[int, int] | Missing:
    """Stages by walking from one end to the other."""
    beside: dict[int, list[int]] = defaultdict(list)
    for one, other in edges:
        beside[one].append(other)
        beside[other].append(one)
    if max(map(len, beside.values())) > 2:
        return _UNEVEN
    stage: dict[int, int] = {}
    ends = [place for place in beside if len(beside[place]) == 1]
    for end in sorted(ends):
        if end in stage:
            continue
        way = _way(end, beside)
        turned = _first_is_last(summaries[way[0]], summaries[way[-1]])
        if turned is None:
            return _NO_ENDS
        stage |= {place: number for number, place in enumerate(way[::-1] if turned else way)}
    return stage if len(stage) == len(beside) else _NO_ENDS


def _way(end: int, beside: Mapping[int, Sequence[int]]) -> list[int]:
    way = [end]
    while following := [place for place in beside[way[-1]] if place not in way[-2:]]:
        way.append(following[0])
    return way


def _first_is_last(one: RankSummary, other: RankSummary) -> bool | None:
    """Whether the first of two ends is the last stage; None where nothing tells."""
    for name, of_first in (("has_embedding", True), ("has_loss", False)):
        mine, theirs = getattr(one.fingerprint, name), getattr(other.fingerprint, name)
        if mine != theirs:
            return bool(theirs == of_first)
    if one.identity.rank is None or other.identity.rank is None:
        return None
    return one.identity.rank > other.identity.rank
