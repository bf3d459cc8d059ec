"""Which ranks are of one pipeline stage, by the groups that they communicate in."""

from typing import Final

import numpy as np

from traces.columns import BoolArray, IntArray
from traces.names.kinds import COMM_KINDS
from traces.ranks import parts
from traces.ranks.links import together
from traces.ranks.match import Matched

_PIPELINE: Final = COMM_KINDS.index("pp_p2p")


def messages_of(matched: Matched) -> BoolArray:
    """Which instances are messages of the pipeline, shape (n,)."""
    most, least = (fold(matched.kind, matched.first) for fold in (parts.most, parts.least))
    result: BoolArray = (most == _PIPELINE) & (least == _PIPELINE)
    return result


def stages_of(matched: Matched, count: int) -> IntArray:
    """A number for each place, the same for ranks of one stage.

    Stages meet in messages of the pipeline, and in groups of all ranks; all other groups lie within one.
    Without such messages all is one stage.
    """
    messages = messages_of(matched)
    if not messages.any():
        return np.zeros(count, dtype=np.int64)
    return together(matched, ~messages & (np.diff(matched.first) < count), count)
