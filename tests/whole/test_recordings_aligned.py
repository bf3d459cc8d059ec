"""Real recordings aligned: what a person sees by reading both sequences beside each other.

Between resnet50 with no and with four workers, cuDNN's search chose other algorithms: three convolutions of
Winograd (two kernels each) are done without fusing (four kernels each, one of them a product), and backward
of the weights by another engine. The three runs of hackathon_mnist are one program.
"""

from __future__ import annotations

from pathlib import Path

from heuristics.comparison.difference.aligned import exchanges
from heuristics.result.compared import Exchanges
from tests.doubles.sides import ranks_of
from traces.missing import Missing
from traces.sections.rank import Rank
from traces.sections.tables import Sequence

MNIST = tuple(f"hackathon_mnist_{name}.sqlite" for name in ("0_baseline", "1_nvtx", "2_workers"))


def aligned(base: Rank, new: Rank) -> Exchanges:
    found = exchanges(base, new)
    assert not isinstance(found, Missing)
    return found


def sequence_of(rank: Rank) -> Sequence:
    assert isinstance(rank.sequence, Sequence)
    return rank.sequence


def test_winograd_without_fusing_stands_where_fused_winograd_stood(recordings: Path) -> None:
    (base,), (new,) = (
        ranks_of(recordings / "real" / f"resnet50_workers{n}.pt.trace.json.gz") for n in (0, 4)
    )
    found = aligned(base, new)
    (row,) = [one for one in found.rows if any("generateWinogradTiles" in each.name for each in one.base)]
    assert [each.count for each in row.base] == [3, 3]
    assert [each.count for each in row.new] == [3, 3, 3, 3]
    assert {each.key for each in row.new} == {"compute.convolution", "compute.gemm"}
    assert (
        found.same.base_count
        == found.same.new_count
        > 0.9 * sum(kernel.count for kernel in base.kernel_table.rows) / len(base.lengths_ns)
    )
    for side, rank in (("base_ns", base), ("new_ns", new)):
        parts = (*found.rows, found.same, found.left_out)
        assert sum(getattr(part, side) for part in parts) == sum(sequence_of(rank).work_ns)


def test_one_program_does_nothing_by_other_kernels(recordings: Path) -> None:
    first, second, third = (ranks_of(recordings / "real" / name)[0] for name in MNIST)
    assert aligned(first, second).rows == ()
    assert [row.key for row in aligned(second, third).rows] in ([], ["copy.memcpy_d2h"])


def test_layers_are_one_loop_and_the_work_is_that_of_the_lanes(
    recordings: Path,
) -> None:
    (rank,) = ranks_of(recordings / "real" / "a100_llm_2_7B_clean.sqlite")
    found = sequence_of(rank)
    assert (found.loops.times[0], found.loops.run_count[0]) == (32, 37)
    assert sum(found.work_ns) == sum(sum(lane.length_ns) for lane in rank.timeline.lanes)


def test_whole_replays_are_not_held_against_kernels(recordings: Path) -> None:
    sides = (
        ranks_of(recordings / "real" / f"a100_llm_2_7B_{name}.sqlite")[0] for name in ("clean", "cudagraph")
    )
    assert isinstance(exchanges(*sides), Missing)
