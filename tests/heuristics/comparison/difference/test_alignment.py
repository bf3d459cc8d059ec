"""Two sequences aligned: the best of all ways, found a second time by trying them all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heuristics.comparison.difference.alignment import OPENED, Block, align

KINDS = 3
PLACES = st.lists(st.integers(0, KINDS - 1), max_size=6)
SCORES = st.lists(st.sampled_from((0, 0, 1, 2, 3, 6)), min_size=KINDS**2, max_size=KINDS**2)


def _best(base: Sequence[int], new: Sequence[int], scores: list[list[int]]) -> int:
    """The highest score of all alignments, by trying them all."""

    @cache
    def rest(row: int, column: int, is_open: bool) -> int:
        if row == len(base) and column == len(new):
            return 0
        found = []
        if row < len(base) and column < len(new) and (worth := scores[base[row]][new[column]]):
            found.append(worth + rest(row + 1, column + 1, False))
        cost = 0 if is_open else int(OPENED.value)
        if row < len(base):
            found.append(rest(row + 1, column, True) - cost)
        if column < len(new):
            found.append(rest(row, column + 1, True) - cost)
        return max(found)

    return rest(0, 0, False)


def _score(base: Sequence[int], new: Sequence[int], scores: list[list[int]], blocks: list[Block]) -> int:
    """What blocks are worth, by the definition: pairs, less what each stretch between them costs."""
    total = 0
    for rows, columns in blocks:
        is_pair = len(rows) == 1 == len(columns)
        worth = scores[base[rows[0]]][new[columns[0]]] if is_pair else 0
        total += worth or -int(OPENED.value)
    return total


@given(PLACES, PLACES, SCORES)
def test_no_way_scores_higher_and_every_place_is_in_one_block(
    base: list[int], new: list[int], flat: list[int]
) -> None:
    scores = [flat[KINDS * at : KINDS * (at + 1)] for at in range(KINDS)]
    blocks = list(align(base, new, np.array(scores, dtype=np.int32)))
    assert [row for rows, _ in blocks for row in rows] == list(range(len(base)))
    assert [column for _, columns in blocks for column in columns] == list(range(len(new)))
    assert _score(base, new, scores, blocks) == _best(base, new, scores)


def test_of_two_ways_of_one_score_the_one_that_ends_with_a_pair_counts() -> None:
    scores = np.array([[2, 2, 0], [0, 0, 3]], dtype=np.int32)  # what is worth most is paired beforehand
    assert list(align([0], [0, 1], scores)) == [(range(0), range(1)), (range(1), range(1, 2))]


def test_what_stands_between_pairs_stands_together() -> None:
    """Two products around an attention of three kernels, the outer ones of which are products too."""
    scores = np.array([[3, 0], [0, 0]], dtype=np.int32)
    found = list(align([0, 0, 1, 0, 0], [0, 1, 0], scores))
    assert found == [(range(0, 1), range(0, 1)), (range(1, 4), range(1, 2)), (range(4, 5), range(2, 3))]


def test_a_pair_is_worth_a_stretch_before_and_one_after_it() -> None:
    """6 less 2 is more than 1 and 2; where another pair follows, those two are more than 3 less 2."""
    found = list(align([0, 1], [0, 1], np.array([[1, 6], [0, 2]], dtype=np.int32)))
    assert found == [(range(0), range(1)), (range(1), range(1, 2)), (range(1, 2), range(2, 2))]
    scores = np.array([[1, 3, 6, 0], [0, 2, 0, 0], [0, 0, 5, 7]], dtype=np.int32)
    one_by_one = [range(place, place + 1) for place in range(3)]
    assert list(align([0, 1, 2], [0, 1, 2], scores)) == list(zip(one_by_one, one_by_one, strict=True))
