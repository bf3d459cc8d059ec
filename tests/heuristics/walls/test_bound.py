"""Where the time goes: the largest of four, or an honest none; and the largest bucket."""

from __future__ import annotations

from heuristics.figures.figures import figures_of
from heuristics.judging.judgement import judge
from heuristics.walls import bound
from heuristics.walls.bound import Bound
from tests.doubles.opinions import NOBODY, account, budget, rank, with_memory
from traces.measurements import RankMeasurements
from traces.missing import Missing


def find_bound(ranks: list[RankMeasurements]) -> Bound:
    return bound.find_bound(figures_of(ranks))


def test_the_bound_is_the_largest_of_four_by_the_account() -> None:
    """Of 1000: compute 300, communication 400, host 100 + 50, memory 150; the copy is nobody's."""
    starved = {"python": 100, "allocator": 150, "profiler": 0}
    blocking = {"tp": 250, "ep_dispatch": 150, "memcpy_h2d": 0}
    found = find_bound([rank(budget=budget(300, 400), account=account(starved, blocking, 50))])
    assert found.bucket == "communication"
    assert found.because == (
        "time of the windows: communication 40 %, compute 30 %, memory 15 %, host overhead 15 %"
    )


def test_allocator_calls_are_memorys_and_stalls_are_nobodys() -> None:
    memory = find_bound([rank(budget=budget(400), account=account({"allocator": 550, "python": 50}))])
    open_ = find_bound([rank(budget=budget(400), account=account({"python": 50}))])
    assert memory.bucket == "memory"
    assert open_.bucket is None
    assert open_.because.startswith("55 % of the windows belongs to no wall; compute 40 %")


def test_much_start_up_is_left_out_of_what_is_bound() -> None:
    """Of 1000, start-up is 450: of the other 550 compute is 300, the host 250."""
    found = find_bound(
        [rank(budget=budget(300), account=account({"profiler": 400, "lazy_init": 50, "python": 250}))]
    )
    parts = "compute 55 %, host overhead 45 %, memory 0 %, communication 0 %"
    assert found.because == f"time of the windows: {parts}"


def test_the_bound_is_open_where_more_belongs_to_no_wall_than_to_any() -> None:
    """The rest of the 1000 ns is a copy or a stall of the GPU."""
    half, less = (find_bound([rank(budget=budget(ns))]) for ns in (500, 499))
    assert (half.bucket, half.cure) == ("compute", "")
    assert less.bucket is None
    assert less.cure
    assert judge([rank(budget=budget(499))]).verdict.bound == Missing("", less.because, less.cure)


def test_what_is_computed_again_is_memorys() -> None:
    for ns, parts in ((600, ("memory 60 %", "compute 40 %")), (1_000, ("memory 100 %", "compute 0 %"))):
        modules = {"gemm": ns, "ep_dispatch": 300}
        found = find_bound([with_memory(rank(), recompute_modules=modules, recompute_ns=ns + 300)])
        assert found.bucket == "memory"
        assert all(part in found.because for part in parts)


def test_exposed_copies_of_what_is_offloaded_or_lives_on_the_host_are_memorys() -> None:
    for copies in ("offload_exposed_ns", "host_resident_exposed_ns"):
        assert find_bound([with_memory(rank(budget=budget(400)), **{copies: 500})]).bucket == "memory"


def test_the_bound_adds_up_over_ranks() -> None:
    slow = rank(budget=budget(0, 1_000), account=account(blocking={"tp": 1_000}))
    assert find_bound([rank(), slow, slow]).bucket == "communication"
    assert find_bound([rank(), rank(), slow]).bucket == "compute"


def test_without_an_account_what_fills_over_half_of_all_ranks_is_the_bound() -> None:
    """Exposed communication is 900 and 300 of 2000 ns, compute 100 and 300; then compute is 100 and 1000."""
    parts = ((100, 900), (300, 300), (1_000, 0))
    waits, mixed, works = (rank(budget=budget(*one), account=NOBODY) for one in parts)
    assert find_bound([waits, mixed]).bucket == "communication"
    assert find_bound([works, waits]).bucket == "compute"


def test_ranks_of_whole_graph_replays_count_as_time_nobody_could_tell() -> None:
    whole = rank(unseen=NOBODY)
    assert find_bound([rank(), whole]).bucket is None
    assert find_bound([whole, rank()]).bucket is None
    assert find_bound([rank(), rank(), whole]).bucket == "compute"
    assert "--cuda-graph-trace=node" in find_bound([whole]).cure
