"""What each handicap costs: one hand-built recording per rule, in round numbers."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.simulate.recording import Row
from tests.by_hand.run import Run
from tests.recordings.replay import US, begun, costs_of, subject_of, us
from traces.account.account import measure_account
from traces.account.device import find_queueing
from traces.missing import Missing
from traces.replay.changes.costs import measure_costs
from traces.steps.found import one_window

# communication


def test_communication_behind_a_later_host_costs_only_the_difference() -> None:
    run = begun()
    run.work("send_recv", 100, 160, launch=10)
    run.work("gemm", 160, 200, launch=145)
    # launches arrive after 10 at the latest, so the host would let the GEMM begin at 155
    assert costs_of(run, (100, 200)).communication.ns == 5 * US


def test_communication_is_priced_by_kind() -> None:
    run = begun()
    run.work("send_recv", 100, 130, launch=10)
    run.work("all_gather", 130, 150, launch=13)
    run.work("gemm", 150, 200, launch=16)
    cost = costs_of(run, (100, 200)).communication
    assert cost.ns == 50 * US
    assert dict(cost.by_kind_ns) == {"sendrecv_unresolved": 30 * US, "other_comm": 20 * US}


def test_kinds_side_by_side_give_nothing_alone() -> None:
    run = begun()
    run.wait(7, by=20, recorded=-7, waits=-5)
    run.wait(7, by=21, recorded=-3, waits=-1)
    run.work("send_recv", 100, 150, launch=10, stream=20)
    run.work("all_gather", 100, 150, launch=13, stream=21)
    run.wait(20, by=7, recorded=16, waits=18)
    run.wait(21, by=7, recorded=20, waits=22)
    run.work("gemm", 150, 200, launch=24)
    cost = costs_of(run, (100, 200)).communication
    assert (cost.ns, dict(cost.by_kind_ns)) == (50 * US, {})


# the host


def starved() -> Run:
    """Nothing is called from -8 to 180; the second kernel starts at 190."""
    run = begun()
    run.work("gemm", 190, 290, launch=(180, 190))
    return run


def test_a_gap_in_which_the_host_was_late_costs_its_length() -> None:
    cost = costs_of(starved(), (0, 290)).host_overhead
    assert cost.ns == 90 * US
    # without Python the launch begins at -8 and returns at 2, so the GPU is the limit
    assert cost.by_kind_ns["python"] == 90 * US


def test_a_small_copy_that_only_feeds_a_sync_goes() -> None:
    run = begun()
    run.work("d2h", 100, 110, launch=10, size_bytes=256)
    run.call("sync", 14, 118)
    run.work("gemm", 130, 200, launch=120)
    cost = costs_of(run, (0, 200)).host_overhead
    # the host still waits for the kernel that ends at 100
    assert cost.ns == 30 * US
    assert cost.by_kind_ns["token_count_sync"] == 20 * US  # with the cold start of 2


def test_a_large_copy_that_a_sync_waits_for_stays() -> None:
    run = begun()
    run.work("d2h", 100, 110, launch=10, size_bytes=1 << 20)
    run.call("sync", 14, 118)
    run.work("gemm", 130, 200, launch=120)
    cost = costs_of(run, (0, 200)).host_overhead
    assert cost.ns == 20 * US
    assert "token_count_sync" not in cost.by_kind_ns


@pytest.mark.parametrize("cause", ["os_wait", "python", "gc", "checkpoint"])
def test_after_its_cold_start_a_sync_is_no_cause_in_account_and_wall_alike(cause: str) -> None:
    run = begun()
    run.call("sync", 10, 110)  # returns 10 after its work
    run.work("gemm", 5_180, 5_280, launch=(5_170, 5_175))
    if cause == "os_wait":
        gid = run.recording.global_id(1000, 1000)
        row: Row = {"start": us(115), "end": us(5_170), "globalTid": gid, "nameId": "pthread_cond_wait"}
        run.recording.rows["OSRT_API"] = [row]
    elif cause != "python":
        run.range(cause, 160, 5_170)
    wall = Counter(costs_of(run, (0, 5_280)).host_overhead.by_kind_ns)
    told = run.account()
    assert (told["launch_starved.sync"], told[f"launch_starved.{cause}"]) == (60, 5_010)  # 10 called, 50 cold
    wall["python"] += wall.pop("long_python_pauses", 0)
    assert (wall["sync"], wall[cause]) == (60 * US, 5_010 * US)


def test_compilation_and_an_optimizer_on_the_cpu_have_their_own_prices() -> None:
    run = begun()
    run.work("norm_backward", 80, 90, launch=70)
    for at in (92, 102):
        run.work("d2h", at, at + 9, launch=(at - 2, at + 8))
    for at in (160, 165):
        run.work("h2d", at + 1, at + 4, launch=(at, at + 5))
    run.range("CompiledKernel::compile", 180, 220)
    run.work("gemm", 240, 300, launch=230)
    kinds = costs_of(run, (0, 300)).host_overhead.by_kind_ns
    assert (kinds["cpu_optimizer"], kinds["lazy_init"]) == (50 * US, 40 * US)


def test_the_host_costs_no_more_than_the_account_lays_on_it() -> None:
    run = begun()
    run.work("send_recv", 160, 260, launch=(150, 155), stream=20)
    run.wait(20, by=7, recorded=156, waits=158)
    run.work("gemm", 260, 300, launch=(160, 165))
    # with no host the exchange would lie under the first kernel, 160 earlier; the account has 100 to 165 as
    # starved, of which the last 5 lay under the exchange and count twice
    cost = costs_of(run, (0, 300)).host_overhead
    assert cost.ns == 70 * US
    assert max(cost.by_kind_ns.values()) <= cost.ns


def test_a_host_below_a_wall_of_which_the_account_lays_less_on_it_is_no_first_thing_to_mend() -> None:
    run = begun()
    run.work("send_recv", 160, 260, launch=(150, 155), stream=20)
    run.wait(20, by=7, recorded=156, waits=158)
    run.work("gemm", 260, 1_550, launch=(160, 165))
    # 150 of 1,550 is below a tenth, and the account lays 80 less on the host, which is above a twentieth
    costs = costs_of(run, (0, 1_550))
    assert costs.host_overhead.ns == 70 * US
    assert "host_overhead" not in costs.without


# memory


def test_a_named_pause_between_offload_copies_stays() -> None:
    run = begun()
    run.work("gemm", 5, 10, launch=0)
    run.work("d2h", 10, 20, launch=4)
    run.range("gc", 6, 106)
    run.work("h2d", 110, 130, launch=108)
    run.work("gemm", 130, 150, launch=112)
    # without the copies the last launch ends 100 of the range and 4 of its own after the first, at 106
    cost = costs_of(run, (0, 150), offloaded=[2, 3]).memory
    assert (cost.ns, dict(cost.by_kind_ns)) == (24 * US, {"offload": 24 * US})


def test_copies_of_what_lives_on_the_host_take_no_time() -> None:
    run = begun()
    run.work("h2d", 100, 150, launch=10)
    run.work("gemm", 150, 170, launch=13)
    run.work("h2d", 170, 180, launch=16)
    run.work("gemm", 180, 200, launch=19)
    cost = costs_of(run, (100, 200), resident=[1, 3], offloaded=[3]).memory
    # each alone: 50 + 10 of what lives on the host, 10 of offload, which is one of them
    assert (cost.ns, dict(cost.by_kind_ns)) == (60 * US, {"host_resident": 60 * US, "offload": 10 * US})


def allocating(freed_at: tuple[int, ...], steps: tuple[int, ...] = (100, 200)) -> Run:
    """Steps of 100 us: memory is taken for 30 us, in some given back for 10 before, once or more often."""
    run = begun()
    for at in steps:
        for place in range(count := freed_at.count(at)):
            run.call("free", at + 10 // count * place, at + 10 // count * (place + 1))
        run.call("malloc", at + 10, at + 40)
        run.work("gemm", at + 60, at + 100, launch=(at + 50, at + 55))
    return run


@pytest.mark.parametrize(("frees", "first_us"), [(1, 40), (2, 40), (5, 0)])
def test_a_first_step_that_gives_memory_back_half_as_often_as_the_next_fills_no_cache(
    frees: int, first_us: int
) -> None:
    """One free in the first step; the cache is full from the first free on."""
    found = costs_of(allocating(freed_at=(100, *[200] * frees)), (100, 200), (200, 300))
    assert found.memory.step_ns == (first_us * US, 40 * US)


def test_a_cache_that_is_full_in_the_first_step_may_be_short_in_few_of_the_others() -> None:
    """One free in the first step, a third of one in a mean other."""
    steps = (100, 200, 300, 400)
    run = allocating((100, 300), steps)
    found = costs_of(run, *((at, at + 100) for at in steps))
    assert found.memory.step_ns == (40 * US, 30 * US, 40 * US, 30 * US)


# compute


def test_a_gemm_without_tensor_cores_takes_the_tf32_share_of_what_its_grid_takes() -> None:
    run = begun()
    run.work("gemm", 100, 200, launch=10, blocks=66)
    run.work("gemm", 200, 300, launch=13, blocks=132)
    cost = costs_of(run, (100, 300), sm_count=132, simt=[1, 2], tensor_frac=0.125).compute
    assert cost is not None
    # 100 -> 100 / 2 / 8 = 6.25 and 100 -> 12.5; alone: the grid of the first 50, tensor cores twice 87.5
    assert (cost.ns, dict(cost.by_kind_ns)) == (181_250, {"gemm": 50 * US, "no_tensor_cores": 175 * US})


# steps and proofs


def test_each_step_has_its_own_cost() -> None:
    run = begun()
    for at, exchange in ((100, 20), (200, 50)):
        run.work("send_recv", at, at + exchange, launch=(at - 90, at - 88))
        run.work("gemm", at + exchange, at + 100, launch=(at - 86, at - 84))
    cost = costs_of(run, (100, 200), (200, 300)).communication
    assert cost.step_ns == (20 * US, 50 * US)
    assert cost.ns == 70 * US


def test_a_window_without_steps_has_no_cost_per_step() -> None:
    run = starved()
    rank = run.rank()
    window = one_window("none", "", 0, us(290))
    queueing = find_queueing(rank)
    account = measure_account(rank, window.windows, queueing)
    found = measure_costs(subject_of(rank, window), account, queueing)
    assert not isinstance(found, Missing)
    assert (found.host_overhead.ns, found.host_overhead.step_ns) == (90 * US, ())


def test_a_window_that_all_constraints_explain_misses_nothing_and_shrinks_with_its_work() -> None:
    run = begun()
    run.work("gemm", 100, 200, launch=10)
    run.work("gemm", 200, 300, launch=13)
    found = costs_of(run, (100, 300))
    assert (found.proofs.residual_free_error_frac, found.proofs.unexplained_frac) == (0, 0)
    assert found.proofs.elastic_frac == 0.5
    assert (found.refused, found.at_least) == (None, None)


def launched_in_time(lasts: int, ahead: int) -> Run:
    """Four kernels in 400, each launched so long before its start by a host that makes no other call."""
    run = begun()
    for at in range(100, 500, 100):
        run.work("gemm", at, at + lasts, launch=at - ahead)
    return run


def test_a_host_that_never_goes_on_as_work_ends_is_the_next_limit_and_nothing_is_doubted() -> None:
    """Its pauses end 92 after the end of one kernel and 8 before that of the next: none can be waiting."""
    found = costs_of(launched_in_time(100, ahead=8), (100, 500))
    assert found.proofs.elastic_frac < 0.4
    assert (found.proofs.unseen_frac, found.at_least) == (0, None)


def test_a_host_that_goes_on_just_as_each_kernel_ends_may_be_waiting_for_it() -> None:
    """Three pauses of 98 end 3 after a kernel of 92; the window begins 3 into the first of them."""
    found = costs_of(launched_in_time(92, ahead=5), (100, 500))
    assert found.proofs.elastic_frac < 0.4
    assert found.proofs.unseen_frac == (95 + 98 + 98) / 400
    assert found.at_least is not None


def test_without_an_account_there_is_no_replay() -> None:
    rank = starved().rank()
    window = one_window("none", "", 0, us(290))
    missing = Missing("absent_ns", "clocks are apart", "record again")
    assert measure_costs(subject_of(rank, window), missing, find_queueing(rank)) == Missing(
        "replay", "clocks are apart", "record again"
    )


def test_half_of_the_work_across_a_border_is_half_of_it_in_the_replay() -> None:
    run = begun()
    run.work("gemm", 100, 300, launch=10, blocks=50)
    run.work("gemm", 300, 400, launch=13, blocks=200)
    found = costs_of(run, (200, 400), sm_count=100)
    assert found.compute is not None
    assert found.compute.ns == 50 * US  # half of what filling it saves
