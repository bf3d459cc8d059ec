"""Kernels of two ranks: which are slower, more, new, or launched with another grid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heuristics.comparison.difference.kernels import compare_kernels
from heuristics.result.compared import KernelDelta
from tests.doubles import comparison as doubles
from traces.sections.rank import Rank
from traces.sections.tables import Kernel

GRID = (100, 1, 1)
OTHER = (64, 1, 1)


def rank(*kernels: Kernel, steps: int = 2, left_out: int = 0) -> Rank:
    return doubles.rank(lengths_ns=(1000,) * steps, kernels=kernels, left_out=left_out)


def kernel(
    name: str = "nvjet",
    count: int = 20,
    each_ns: int = 100,
    std_ns: int = 0,
    grid: tuple[int, int, int] | None = GRID,
    key: str = "compute.gemm",
) -> Kernel:
    return Kernel(name, grid, key, count, count * each_ns, std_ns)


def changes(base: Rank, new: Rank) -> list[tuple[str, str, int]]:
    return [(one.name, one.change, one.delta_ns) for one in compare_kernels(base, new)]


def test_a_kernel_that_takes_longer_is_slower() -> None:
    found = compare_kernels(rank(kernel()), rank(kernel(each_ns=130)))
    assert found == (
        KernelDelta("nvjet", "compute.gemm", "slower", 300, GRID, GRID, 10.0, 10.0, 100, 130),
    )  # fmt: skip
    assert changes(rank(kernel(each_ns=130)), rank(kernel())) == [("nvjet", "faster", -300)]


def test_what_its_scatter_explains_is_the_same() -> None:
    base, new = rank(kernel(std_ns=20, key="comm.cp")), rank(kernel(std_ns=20, each_ns=115, key="comm.cp"))
    assert changes(base, new) == []
    calm = rank(kernel(std_ns=5, key="comm.cp"))
    assert changes(calm, rank(kernel(std_ns=5, each_ns=115, key="comm.cp"))) == [("nvjet", "slower", 150)]


def test_a_gemm_of_several_sizes_is_slower_though_it_scatters() -> None:
    base, new = rank(kernel(std_ns=100)), rank(kernel(std_ns=100, each_ns=115))
    assert changes(base, new) == [("nvjet", "slower", 150)]


def test_a_kernel_that_runs_more_often_is_more_whatever_its_mean_does() -> None:
    assert changes(rank(kernel(count=20)), rank(kernel(count=30))) == [("nvjet", "more", 500)]
    assert changes(rank(kernel(count=20)), rank(kernel(count=40, each_ns=90))) == [("nvjet", "more", 800)]
    assert changes(rank(kernel(count=20)), rank(kernel(count=10))) == [("nvjet", "fewer", -500)]


def test_one_kernel_at_the_border_of_the_windows_is_none_more() -> None:
    assert changes(rank(kernel(count=20)), rank(kernel(count=21))) == []


def test_kernels_of_one_side_are_new_or_gone() -> None:
    base, new = rank(kernel("tile_a")), rank(kernel("tile_b", each_ns=120))
    assert changes(base, new) == [("tile_b", "new", 1200), ("tile_a", "gone", -1000)]


def test_a_name_with_another_grid_is_told_as_that() -> None:
    found = compare_kernels(rank(kernel()), rank(kernel(grid=OTHER, each_ns=170)))
    assert found is not None
    (one,) = found
    assert (one.change, one.base_grid, one.new_grid, one.delta_ns) == ("grid", GRID, OTHER, 700)


def test_of_several_grids_those_with_the_most_work_are_one_pair() -> None:
    base = rank(kernel(grid=(1, 1, 1), each_ns=500), kernel(grid=(2, 1, 1), each_ns=50), kernel())
    new = rank(kernel(grid=(8, 1, 1), each_ns=60), kernel(grid=(9, 1, 1), each_ns=400), kernel())
    found = compare_kernels(base, new)
    assert found is not None
    assert [(one.base_grid, one.new_grid, one.delta_ns) for one in found] == [
        ((1, 1, 1), (9, 1, 1), -1000),
        ((2, 1, 1), (8, 1, 1), 100),
    ]


def test_grids_that_change_by_themselves_are_one_kernel() -> None:
    """As many grids as kernels: they follow the tokens that a step routes here."""
    base = rank(*(kernel("permute", 1, 100, grid=(size, 1, 1)) for size in range(1, 9)))
    same = rank(*(kernel("permute", 1, 100, grid=(size, 1, 1)) for size in range(11, 19)))
    slower = rank(*(kernel("permute", 1, 150, grid=(size, 1, 1)) for size in range(11, 19)))
    assert changes(base, same) == []
    found = compare_kernels(base, slower)
    assert found is not None
    (one,) = found
    assert (one.change, one.base_grid, one.new_grid, one.base_count, one.delta_ns) == (
        "slower", None, None, 4.0, 200,
    )  # fmt: skip


def test_a_side_without_grids_is_compared_by_name() -> None:
    base = rank(kernel(grid=None, count=40))
    assert changes(base, rank(kernel(), kernel(grid=OTHER))) == []


def test_a_kernel_that_one_side_could_not_resolve_is_neither_new_nor_gone() -> None:
    base = rank(kernel("nccl", key="comm.ep_dispatch"), kernel("nccl", key="comm.ep_combine"))
    new = rank(kernel("nccl", count=40, each_ns=150, key="comm.sendrecv_unresolved"))
    found = compare_kernels(base, new)
    assert found is not None
    assert [(one.key, one.change, one.delta_ns) for one in found] == [("comm", "slower", 1000)]


def test_more_kernels_that_could_not_be_resolved_are_new() -> None:
    base = rank(kernel("nccl", key="comm.dp_reduce_scatter"))
    new = rank(kernel("nccl", key="comm.dp_reduce_scatter"), kernel("nccl", key="comm.other_comm"))
    assert changes(base, new) == [("nccl", "new", 1000)]


def test_a_kernel_below_the_end_of_the_other_list_is_not_called_new() -> None:
    base = rank(kernel(each_ns=50), left_out=3)
    new = rank(kernel(each_ns=50), kernel("small", each_ns=50), kernel("large", each_ns=80))
    assert changes(base, new) == [("large", "new", 800)]
    assert changes(new, base) == [("large", "gone", -800)]


kernels = st.builds(
    kernel,
    name=st.sampled_from(("a", "b")),
    count=st.integers(1, 50),
    each_ns=st.integers(1, 10**9),
    std_ns=st.integers(0, 10**6),
    grid=st.sampled_from((GRID, OTHER, (7, 7, 7), None)),
    key=st.sampled_from(("comm.cp", "comm.other_comm", "compute.gemm")),
)
ranks = st.builds(
    lambda found, steps, left: rank(*found, steps=steps, left_out=left),
    st.lists(kernels, max_size=6, unique_by=lambda one: (one.name, one.grid, one.key)),
    st.integers(1, 20),
    st.integers(0, 1),
)
OPPOSITE = {"slower": "faster", "more": "fewer", "new": "gone", "grid": "grid"}
OPPOSITE |= {value: key for key, value in OPPOSITE.items()}


@given(ranks, ranks)
def test_swapped_sides_mirror_the_table(base: Rank, new: Rank) -> None:
    found, swapped = compare_kernels(base, new), compare_kernels(new, base)
    assert found is not None
    assert swapped is not None
    assert [
        (one.name, one.key, OPPOSITE[one.change], -one.delta_ns, one.new_grid, one.base_grid,
         one.new_count, one.base_count, one.new_each_ns, one.base_each_ns)
        for one in found
    ] == [
        (one.name, one.key, one.change, one.delta_ns, one.base_grid, one.new_grid,
         one.base_count, one.new_count, one.base_each_ns, one.new_each_ns)
        for one in swapped
    ]  # fmt: skip


@given(ranks)
def test_a_rank_against_itself_has_no_differing_kernel(one: Rank) -> None:
    assert compare_kernels(one, one) == ()


def test_kernels_are_not_gone_where_the_other_side_recorded_its_graphs_whole() -> None:
    base = doubles.rank(doubles.row("compute.gemm", 10, 10), kernels=(doubles.kernel("gemm", 100),))
    whole = doubles.rank(doubles.row("compute.graph_replay", 10, 10), kernels=(doubles.kernel("cast", 9),))
    assert compare_kernels(base, whole) == compare_kernels(whole, base) == ()
