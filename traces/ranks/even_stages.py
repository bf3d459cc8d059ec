"""A pipeline in which every stage has the mean of the layers."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from traces.columns import BoolArray, FloatArray, IntArray
from traces.groups import group_of
from traces.limits import Limit
from traces.names.kinds import COMM_KINDS
from traces.ranks import parts
from traces.ranks.alike import Alike
from traces.ranks.chains import NO_ROW, Chains
from traces.ranks.match import Matched
from traces.ranks.stages import messages_of
from traces.ranks.usual import families_of

_RISES: Final = Limit(
    0.5,
    "of the stretches of a kind",
    "ours: of what is in every layer all come with layers, of what is in every stage none",
)
_BESIDE: Final = tuple(COMM_KINDS.index(kind) for kind in ("dp_reduce_scatter", "dp_all_gather"))
"""Kinds that run beside the work of layers, so that work before them is counted already."""


def even_stages(matched: Matched, chains: Chains, alike: Sequence[Alike]) -> tuple[IntArray, IntArray]:
    """Own work and transfers of each participation then, shape (p,) each; alike ranks are those of a stage.

    No collective comes or goes: what there is in a stage's layers takes as long as all would. The rest stays:
    messages, embedding, loss, optimizer.
    """
    layers = np.zeros(int(matched.place.max(initial=-1)) + 1)
    for group in alike:
        layers[list(group.places)] = group.layers
    apart = np.where(layers > 0, layers - layers[layers > 0].mean(), 0.0)
    if not apart.any():
        return chains.own_ns, chains.moving_ns
    has, within = chains.after != NO_ROW, ~_across(matched, layers)
    kind = _stretches(matched, chains)
    in_layers = has & within & _rising(matched.place, kind, layers, apart)[kind]
    counts = in_layers & ~np.isin(matched.kind, _BESIDE)
    if not counts.any():  # layers hold no collectives, so that their work lies before messages
        counts = in_layers = has
    took_ns = np.where(counts, chains.own_ns + np.maximum(chains.moving_ns, 0), 0)
    times = np.where(in_layers, _times(matched.place, took_ns, apart)[matched.place], 1.0)
    moving_ns = np.where(within, np.rint(chains.moving_ns * times), chains.moving_ns)
    return np.where(has, np.rint(chains.own_ns * times), chains.own_ns).astype(np.int64), moving_ns.astype(
        np.int64
    )


def _across(matched: Matched, layers: FloatArray) -> BoolArray:
    """Which participations are of messages, or of groups whose ranks have more layers and fewer."""
    of_row = layers[matched.place]
    several = parts.most(of_row, matched.first) > parts.least(of_row, matched.first)
    return parts.spread(several | messages_of(matched), matched.first)


def _stretches(matched: Matched, chains: Chains) -> IntArray:
    """A number for each participation, the same where what it is and what it comes after are of one kind."""
    size, messages = np.diff(matched.first), messages_of(matched).astype(np.int64)
    of_instance = group_of(families_of(matched), size, messages, matched.operation)
    what = of_instance.astype(np.int64)[matched.instance]
    return group_of(what, np.where(chains.after == NO_ROW, NO_ROW, what[chains.after])).astype(np.int64)


def _rising(place: IntArray, kind: IntArray, layers: FloatArray, apart: FloatArray) -> BoolArray:
    """Of which kinds most come with layers: so many more where a rank is `apart` from the mean layers."""
    ranks, kinds = len(apart), int(kind.max(initial=-1)) + 1
    count = np.bincount(place * kinds + kind, minlength=ranks * kinds).reshape(ranks, kinds)
    of_layers = apart @ count / (apart @ apart) * layers.sum()
    result: BoolArray = of_layers > _RISES.value * count.sum(axis=0)
    return result


def _times(place: IntArray, took_ns: IntArray, apart: FloatArray) -> FloatArray:
    """How many times as long the layers of each rank take then, shape (ranks,).

    What a layer takes is how steeply their time rises with the layers.
    """
    all_ns = parts.sums(took_ns, place, len(apart))
    a_layer_ns = apart @ all_ns / (apart @ apart)
    more = np.divide(-a_layer_ns * apart, all_ns, out=np.zeros(len(apart)), where=all_ns > 0)
    result: FloatArray = np.maximum(1 + more, 0.0)
    return result
