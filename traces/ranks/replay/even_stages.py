"""A pipeline in which every stage has the mean of the layers: what each rank then does and
moves.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    count_from_0,
    distinct,
    ints,
    summed,
    zeros,
)
from traces.groups import group_of
from traces.limits import MOST
from traces.ranks.matching.match import Matched
from traces.ranks.replay.beneath import BESIDE
from traces.ranks.replay.chains import Chains, families_of, members_of
from traces.ranks.rows import parts
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.summaries.summary import UNKNOWN
from traces.ranks.waiting.pipelines import messages_of
from traces.ranks.waiting.side_by_side import LikeGroups


def even_stages(
    matched: Matched, chains: Chains, alike: LikeGroups, microbatches: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Own work and transfers of each participation then, shape (p,) each; alike ranks are those of
    a stage. `microbatches`: how many a step may have.

    No collective comes or goes: what there is in a stage's layers takes as long as all would. The
    rest stays: messages, embedding, loss, optimizer.
    """
    layers = zeros(matched.ranks)
    for group in alike:
        layers[list(group.places)] = group.layers
    known = layers > 0
    if not known.any() or (layers[known] == layers[known][0]).all():
        return chains.own_ns, chains.moving_ns
    apart = np.where(known, layers - layers[known].mean(), 0.0)
    has, within = chains.after != NO_ROW, ~_across(matched, layers)
    kind = _stretches(matched, chains)
    rising, shared = _rising(matched.place, kind, layers, apart)
    beside = np.isin(matched.kind, BESIDE)
    in_layers = has & within & rising[kind] & (shared[kind] | (within & ~beside)[chains.after])
    counts = in_layers & ~beside
    if not counts.any():  # layers hold no collectives, so that their work lies before messages
        counts = in_layers = has
    took_ns = np.where(counts, chains.own_ns + np.maximum(chains.moving_ns, 0), 0)
    times = np.where(
        in_layers,
        _times(matched.place, took_ns, apart, _to_come(layers, microbatches))[matched.place],
        1.0,
    )
    moving_ns = np.where(within, np.rint(chains.moving_ns * times), chains.moving_ns)
    return ints(np.where(has, np.rint(chains.own_ns * times), chains.own_ns)), ints(moving_ns)


def microbatches_of_two(matched: Matched, step: IntArray) -> tuple[int, ...]:
    """How many a step may have where ranks of two stages exchange messages, each with one other;
    else none.

    `step`: of each participation, shape (p,), as its rank recorded it. One kernel for each call of
    the schedule, which has one more than microbatches, or one for each way: that their number does
    not tell.
    """
    rows = np.flatnonzero(messages_of(matched)[matched.instance] & (step != UNKNOWN))
    peers = distinct(group_of(matched.place[rows], matched.group[matched.instance[rows]]))
    if not len(rows) or len(peers) > len(distinct(matched.place[rows])):
        return ()
    number = int(np.median(np.bincount(group_of(matched.place[rows], step[rows]))))
    candidates = (number - 1, number // 2 if number % 2 == 0 else 0)
    return tuple(candidate for candidate in candidates if candidate > 0)


def _across(matched: Matched, layers: IntArray) -> BoolArray:
    """Which participations are of messages, or of groups whose ranks have more layers and fewer."""
    several = parts.varies(layers[matched.place], matched.first)
    return parts.spread(several | messages_of(matched), matched.first)


def _stretches(matched: Matched, chains: Chains) -> IntArray:
    """A number for each participation, the same where what it is and what it comes after are of one
    kind.
    """
    messages = ints(messages_of(matched))
    of_instance = group_of(families_of(matched), members_of(matched), messages, matched.operation)
    kind = ints(of_instance)[matched.instance]
    return ints(group_of(kind, np.where(chains.after == NO_ROW, NO_ROW, kind[chains.after])))


def _rising(
    place: IntArray, kind: IntArray, layers: IntArray, apart: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """Of which kinds most come with layers: so many more where a rank is `apart` from the mean
    layers.

    And which are on ranks with fewer as well. Others are between two layers of a rank, or at an end
    of the pipeline, where what comes before is no layer's.
    """
    ranks, kinds = len(apart), count_from_0(kind)
    count = np.bincount(place * kinds + kind, minlength=ranks * kinds).reshape(ranks, kinds)
    of_layers = apart @ count / (apart @ apart) * layers.sum()
    return of_layers > MOST.value * count.sum(axis=0), count[apart < 0].sum(axis=0) > 0


_A_LAYER: Final = 2
"""Kernels of attention that a layer has at least in a microbatch: one forward, one backward."""


def _to_come(layers: IntArray, microbatches: Sequence[int]) -> IntArray:
    """What each rank's layers then are more or fewer, in their unit: kernels, so many a layer and
    microbatch.

    The mean of all where the layers can be shared out. Where they cannot, no layout is even, and
    what some have beyond the others is taken away.
    """
    known = layers > 0
    all_kernels, ranks = summed(layers[known]), summed(known)
    most = int(np.gcd.reduce(layers[known]))  # of a layer, where none of it is in all counts
    units = [most]
    for count in microbatches:
        units += [unit for unit in range(_A_LAYER * count, most, count) if most % unit == 0]
    if any(all_kernels % (ranks * unit) == 0 for unit in units):
        return np.where(known, all_kernels // ranks - layers, 0)
    shared = all_kernels // (ranks * most) * most
    return np.where(known, np.minimum(layers, shared) - layers, 0)


def _times(place: IntArray, took_ns: IntArray, apart: FloatArray, more: IntArray) -> FloatArray:
    """How many times as long the layers of each rank take with so many `more` of them, shape
    (ranks,).
    """
    all_ns = parts.sums(took_ns, place, len(apart))
    a_layer_ns = apart @ all_ns / (apart @ apart)
    longer = parts.over(a_layer_ns * more, all_ns, 0.0)
    return np.maximum(1 + longer, 0.0)
