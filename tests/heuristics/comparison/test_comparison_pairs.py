"""Which rank is held against which, and that one rank does not stand for all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from heuristics.comparison.comparison import compare
from heuristics.comparison.gate import Asked
from heuristics.comparison.ranks import pair_ranks
from tests.doubles.comparison import rank, result, row
from traces.errors import EmptySelection
from traces.missing import Missing
from traces.sections.rank import Rank

MS = 1_000_000


def of(number: int | None, device: int, *lengths_ms: int) -> Rank:
    lengths_ns = tuple(length * MS for length in lengths_ms)
    return rank(lengths_ns=lengths_ns, rank=number, device=device, ledger=None)


def test_a_process_with_two_gpus_has_one_number_twice_and_each_gpu_its_own_pair() -> None:
    both = replace(result(), ranks=(of(0, 0, 10, 10), of(0, 1, 20, 20)))
    turned = replace(both, ranks=both.ranks[::-1])
    found = [(pair.base.device, pair.new.device, pair.by) for pair in pair_ranks(both, turned, None, None)]
    assert found == [(0, 0, "rank"), (1, 1, "rank")]


def test_no_change_of_the_first_rank_is_none_of_the_run_where_another_changed() -> None:
    base = replace(result(), ranks=(of(0, 0, 10, 10), of(1, 1, 10, 10)))
    new = replace(base, ranks=(of(0, 0, 10, 10), of(1, 1, 13, 13)))
    judged = compare(base, new)
    assert (compare(base, base).verdict, judged.verdict) == ("no_change", "undecided")
    assert "pair 2 of 2 ranks (GPU 1) differs by +3.00 ms, +30 %" in judged.because[0]
    gate = compare(base, new, gate=Asked(0.03)).gate
    assert gate is not None
    assert gate.state != "passed"


@pytest.mark.parametrize(
    ("new_us", "verdict"), [(10_100, "no_change"), (10_101, "undecided"), (9_900, "undecided")]
)
def test_another_rank_contradicts_from_more_than_a_hundredth_of_the_shorter_step(
    new_us: int, verdict: str
) -> None:
    base = replace(result(), ranks=(of(0, 0, 10, 10), of(1, 1, 10, 10)))
    other = rank(lengths_ns=(new_us * 1_000,) * 2, rank=1, device=1, ledger=None)
    assert compare(base, replace(base, ranks=(base.ranks[0], other))).verdict == verdict


def test_a_window_is_told_without_steps_and_a_gpu_that_is_chosen_is_compared() -> None:
    window = result(rank(row("compute.gemm", 900), source="none"))
    found = compare(window, result(rank(row("compute.gemm", 5, 10, 3))))
    assert (found.base.steps.count, isinstance(found.base.steps.mean_ns, Missing)) == (0, True)
    steps = found.new.steps
    assert (steps.count, steps.mean_ns, steps.median_ns) == (3, 6, 5)
    assert (steps.min_ns, steps.max_ns) == (3, 10)
    two = replace(result(), ranks=(of(0, 0, 10, 10), of(1, 1, 20, 20)))
    pairs = pair_ranks(two, two, 1, None)
    assert [(pair.base.device, pair.new.device, pair.by) for pair in pairs] == [(1, 0, "chosen")]
    with pytest.raises(EmptySelection, match=r"new has no GPU 7; it has 0, 1. Give --new-gpu 0"):
        pair_ranks(two, two, 0, 7)


def test_ranks_without_numbers_or_groups_are_paired_in_their_order() -> None:
    two = replace(result(), ranks=(of(None, 3, 10, 10), of(None, 4, 20, 20)))
    assert [(pair.base.device, pair.by) for pair in pair_ranks(two, two, None, None)] == [
        (3, "order"),
        (4, "order"),
    ]
