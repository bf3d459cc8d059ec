"""Which rank is held against which, and that one rank does not stand for all."""

from __future__ import annotations

from msgspec.structs import replace

from heuristics.comparison.comparison import compare
from heuristics.comparison.gate import Asked
from heuristics.comparison.ranks import pair_ranks
from tests.doubles.comparison import rank, result
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
