"""Kernels of two ranks: which are slower, more, new, or launched with another grid."""

from __future__ import annotations

import pytest

from heuristics.comparison.difference.kernels import Kernels, _sum, compare_kernels
from heuristics.result.compared import KernelDelta
from tests.doubles import comparison as doubles
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.tables import Kernel

GRID, OTHER = (100, 1, 1), (64, 1, 1)


def kernel(
    name: str = "nvjet",
    count: int = 20,
    each_ns: int = 100,
    std_ns: int = 0,
    grid: tuple[int, int, int] | None = GRID,
    key: str = "compute.gemm",
) -> Kernel:
    return Kernel(name, grid, key, count, count * each_ns, std_ns)


def rank(*kernels: Kernel, steps: int = 2, left_out: int = 0) -> Rank:
    return doubles.rank(lengths_ns=(1000,) * steps, kernels=kernels, left_out=left_out)


def side(text: str) -> Rank:
    """Two steps: `nvjet 20x100 std=5 grid=64 key=comm.cp; left_out=3`, kernels by name, count and ns each."""
    kernels, left_out = [], 0
    for one in text.split("; "):
        name, *more = one.split()
        about = dict(part.split("=") for part in (name, *more) if "=" in part)
        left_out += int(about.pop("left_out", 0))
        if more:
            count, each_ns = map(int, more[0].split("x"))
            grid = None if about.get("grid") == "-" else (int(about.get("grid", 100)), 1, 1)
            key, std_ns = about.get("key", "compute.gemm"), int(about.get("std", 0))
            kernels.append(kernel(name, count, each_ns, std_ns, grid, key))
    return rank(*kernels, left_out=left_out)


NINE = "; ".join(f"other{one} 20x100" for one in "abcdefghi")
OPPOSITE = {"slower": "faster", "more": "fewer", "new": "gone", "grid": "grid"}
OPPOSITE |= {value: key for key, value in OPPOSITE.items()}


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        ("nvjet 20x100", "nvjet 20x130", "nvjet slower 300"),
        # what its scatter explains is the same, but for a GEMM of several sizes
        ("p2p 20x100 std=30 key=comm.cp", "p2p 20x115 std=30 key=comm.cp", ""),
        ("p2p 20x100 std=5 key=comm.cp", "p2p 20x115 std=5 key=comm.cp", "p2p slower 150"),
        ("nvjet 20x100 std=100", "nvjet 20x111 std=100", "nvjet slower 110"),
        ("nvjet 20x100 std=100", "nvjet 20x110 std=100", ""), ("nvjet 20x100", "nvjet 20x101", ""),
        ("nvjet 1x1000 std=5", "nvjet 1x1500 std=5", "nvjet slower 250"),
        # of ten kernels one may move by chance
        ("p2p 20x100 std=30 key=comm.cp", "p2p 20x122 std=30 key=comm.cp", "p2p slower 220"),
        (f"p2p 20x100 std=30 key=comm.cp; {NINE}", f"p2p 20x122 std=30 key=comm.cp; {NINE}", ""),
        # more often, whatever its mean does; one at the border of the windows is none more
        ("nvjet 20x100", "nvjet 30x100", "nvjet more 500"), ("nvjet 20x100", "nvjet 40x90", "nvjet more 800"),
        ("nvjet 20x100", "nvjet 40x200", "nvjet slower 3000"), ("nvjet 20x100", "nvjet 21x100", ""),
        ("nvjet 20x100", "nvjet 22x100", "nvjet more 100"),
        # on one side alone
        ("tile_a 20x100", "tile_b 20x120", "tile_b new 1200, tile_a gone -1000"),
        ("nvjet 20x100", "nvjet 20x170 grid=64", "nvjet grid 700"),
        ("nvjet 20x100", "nvjet 20x100; tiny 2x1", "tiny new 1"),
        ("nvjet 40x100 grid=-", "nvjet 20x100; nvjet 20x100 grid=64", ""),
        # one of a grid however seldom, and two grids, each once a step
        ("rare 1x100", "rare 1x300 grid=64", "rare grid 100"),
        ("few 1x100 grid=1; few 1x100 grid=2", "few 1x100 grid=3; few 1x100 grid=4", ""),
        ("gemm 2x100 grid=1; gemm 2x100 grid=2", "gemm 2x100 grid=1; gemm 2x900 grid=3", "gemm grid 800"),
        # what one side could not resolve is neither new nor gone, but for more of it
        ("nccl 20x100 key=comm.ep_dispatch; nccl 20x100 key=comm.ep_combine",
         "nccl 40x150 key=comm.sendrecv_unresolved", "nccl slower 1000"),
        ("nccl 20x100 key=comm.ep_dispatch; nccl 20x100 key=comm.ep_combine grid=64",
         "nccl 20x100 key=comm.ep_a2a; nccl 20x100 key=comm.ep_a2a grid=32", "nccl grid 0"),
        ("nccl 20x100 key=comm.ep_dispatch grid=-; nccl 20x100 key=comm.ep_combine",
         "nccl 40x150 key=comm.sendrecv_unresolved", "nccl slower 1000"),
        ("nccl 20x100 key=comm.dp_all_gather",
         "nccl 20x100 key=comm.dp_all_gather; nccl 20x100 key=comm.other_comm", "nccl new 1000"),
        ("nccl 20x100 key=comm.sendrecv_unresolved; nccl 20x100 key=comm.ep_dispatch",
         "nccl 10x100 key=comm.sendrecv_unresolved; nccl 30x100 key=comm.ep_dispatch",
         "nccl more 500, nccl fewer -500"),
        ("nvjet 20x100; nccl 20x100 key=comm.sendrecv_unresolved; nccl 20x50 key=comm.ep_dispatch",
         "nvjet 20x100", "nccl gone -1000, nccl gone -500"),
        # below the end of the other list it may be there
        ("big 20x90; low 20x50; left_out=3", "big 20x90; low 20x50; small 20x50; large 20x80",
         "large new 800"),
    ],
)  # fmt: skip
def test_kernels_are_slower_more_new_or_of_another_grid(base: str, new: str, expected: str) -> None:
    found, back = compare_kernels(side(base), side(new)), compare_kernels(side(new), side(base))
    assert ", ".join(f"{one.name} {one.change} {one.delta_ns}" for one in found) == expected
    mirrored = [(one.name, OPPOSITE[one.change], -one.delta_ns) for one in back]
    assert [(one.name, one.change, one.delta_ns) for one in found] == mirrored


def test_one_kernel_at_the_border_of_the_shorter_recording_is_none_more() -> None:
    assert compare_kernels(rank(kernel(count=20)), rank(kernel(count=42), steps=4)) == ()
    assert compare_kernels(rank(), rank()) == ()


def test_a_difference_has_both_sides_by_the_step() -> None:
    found = compare_kernels(side("nvjet 20x100"), side("nvjet 20x130"))
    expected = ("nvjet", "compute.gemm", "slower", 300, GRID, GRID, 10.0, 10.0, 100, 130)
    assert found == (KernelDelta(*expected),)  # type: ignore[arg-type]


def test_of_several_grids_those_with_the_most_work_are_one_pair() -> None:
    base = side("nvjet 20x200 grid=5; nvjet 20x300 grid=2; nvjet 20x100 grid=8; nvjet 20x100")
    found = compare_kernels(base, side("nvjet 20x100 grid=3; nvjet 20x200 grid=9; nvjet 20x100"))
    grids = [(known(one.base_grid), known(one.new_grid)) for one in found]
    assert grids == [((8, 1, 1), None), ((2, 1, 1), (9, 1, 1)), ((5, 1, 1), (3, 1, 1))]
    assert {one.delta_ns for one in found} == {-1000}


def test_grids_that_change_by_themselves_are_one_kernel() -> None:
    """As many grids as kernels: they follow the tokens that a step routes here."""
    base, same, slower = ("; ".join(f"permute 1x{each} grid={size}" for size in range(first, first + 8))
        for first, each in ((1, 100), (11, 100), (11, 150)))  # fmt: skip
    assert compare_kernels(side(base), side(same)) == ()
    assert compare_kernels(side(base), side(f"{slower}; left_out=3")) == ()  # some may be among those
    (one,) = compare_kernels(side(base), side(slower))
    assert (one.change, one.base_grid, one.new_grid) == ("slower", None, None)
    assert (one.base_count, one.delta_ns) == (4.0, 200)


def test_kernels_of_several_grids_scatter_within_each_and_between_them() -> None:
    """Of a mean of 175 ns one is 75 off, and three are 25 off and 20 apart: 75^2 + 3 (25^2 + 20^2) over 4."""
    rows = [
        Kernels("permute", "compute.permute", GRID, *figures, 2) for figures in ((1, 100, 0), (3, 600, 20))
    ]
    whole = _sum(rows)
    assert (whole.count, whole.work_ns, round(whole.std_ns**2)) == (4, 700, 2_175)


def test_kernels_are_not_gone_where_the_other_side_recorded_its_graphs_whole() -> None:
    base = doubles.rank(doubles.row("compute.gemm", 10, 10), kernels=(doubles.kernel("gemm", 100),))
    whole = doubles.rank(doubles.row("compute.graph_replay", 10, 10), kernels=(doubles.kernel("cast", 9),))
    assert compare_kernels(base, whole) == compare_kernels(whole, base) == ()
