"""Sequences as loops: what is repeated is kept once, and nothing is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from traces.measure.folding import fold


def test_alike_neighbours_are_one_run() -> None:
    folded = fold(np.array([3, 3, 3, 5]), 10)
    assert folded is not None
    assert (folded.of.tolist(), folded.length.tolist(), folded.loops) == ([3, 5], [3, 1], ())
    assert folded.run.tolist() == [0, 0, 0, 1]


def test_layers_are_one_loop_and_microbatches_a_loop_around_it() -> None:
    layer = [1, 2, 2]
    folded = fold(np.array([9, *([*layer * 4, 7] * 3)]), 10)
    assert folded is not None
    assert folded.of.tolist() == [9, 1, 2, 7]
    assert folded.length.tolist() == [1, 1, 2, 1]
    assert folded.loops == ((1, 3, 3), (1, 2, 4))


def test_a_sequence_of_more_runs_than_may_be_kept_is_none() -> None:
    assert fold(np.arange(11), 10) is None
    assert fold(np.arange(10), 10) is not None


def test_nothing_has_no_runs() -> None:
    folded = fold(np.array([], dtype=np.int64), 10)
    assert folded is not None
    assert len(folded.of) == 0


LAYERS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(1, 5)), max_size=6
)
