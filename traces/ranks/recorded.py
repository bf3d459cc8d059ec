"""Columns of all summaries, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks.summary import UNKNOWN, Instances, Messages, RankSummary


@dataclass(frozen=True, slots=True)
class Recorded:
    """The collectives of all summaries, shape (n,): `place` is that of the summary, `rows` as it has them."""

    place: IntArray
    rows: Instances


def recorded_of(summaries: Sequence[RankSummary]) -> Recorded:
    """The collectives, in the order of the summaries."""
    tables = [one.instances for one in summaries]
    place = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    return Recorded(place, Instances.joined(*tables))


def of_messages(summaries: Sequence[RankSummary], name: str) -> IntArray:
    """What calls say of the same collectives, `UNKNOWN` for ranks of which none is recorded."""
    lengths = np.array([len(one.instances) for one in summaries], dtype=np.int64)
    column = np.full(int(lengths.sum()), UNKNOWN)
    told = np.array([len(one.messages) > 0 for one in summaries], dtype=np.bool_)
    if told.any():
        column[np.repeat(told, lengths)] = getattr(
            Messages.joined(*(one.messages for one in summaries)), name
        )
    return column


def in_steps(summaries: Sequence[RankSummary], recorded: Recorded) -> BoolArray:
    """Which collectives are in used steps; of a recording without steps all are."""
    has_steps = np.array([len(one.steps) > 0 for one in summaries], dtype=np.bool_)
    return (recorded.rows.step != UNKNOWN) | ~has_steps[recorded.place]
