"""Columns of all summaries, one after the other, and where the collectives of each stand in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.ranks.summary import UNKNOWN, RankSummary, Table


def joined(tables: Sequence[Table], name: str) -> IntArray:
    """A column of several tables, one after the other."""
    several = [getattr(table, name) for table in tables]
    return np.concatenate(several) if several else np.empty(0, np.int64)


def of_instances(summaries: Sequence[RankSummary], name: str) -> IntArray:
    """A column of the collectives of all summaries."""
    return joined([summary.instances for summary in summaries], name)


def of_messages(summaries: Sequence[RankSummary], name: str) -> IntArray:
    """What calls say of the same collectives, `UNKNOWN` for ranks of which none is recorded."""
    return np.concatenate(
        [
            getattr(one.messages, name)
            if len(one.messages)
            else np.full(len(one.instances), UNKNOWN, dtype=np.int64)
            for one in summaries
        ]
    )


def place_of(summaries: Sequence[RankSummary]) -> IntArray:
    """The place of the summary of each collective."""
    return np.repeat(np.arange(len(summaries)), _lengths(summaries))


def rows_of(summaries: Sequence[RankSummary], place: IntArray, row: IntArray) -> IntArray:
    """Where collectives stand among all, by the place of their summary and their row in it."""
    lengths = _lengths(summaries)
    result: IntArray = (np.cumsum(lengths) - lengths)[place] + row
    return result


def in_steps(summaries: Sequence[RankSummary]) -> BoolArray:
    """Which collectives are in used steps; of a recording without steps all are."""
    has_steps = np.array([len(one.steps) > 0 for one in summaries], dtype=np.bool_)
    result: BoolArray = (of_instances(summaries, "step") != UNKNOWN) | ~has_steps[place_of(summaries)]
    return result


def _lengths(summaries: Sequence[RankSummary]) -> IntArray:
    return np.array([len(one.instances) for one in summaries], dtype=np.int64)
