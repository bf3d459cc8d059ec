"""The outcome of each wall: a finding, clear, or unmeasurable, and never clear for want of looking."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from msgspec import UNSET, structs

import heuristics
from bench.simulate.recording import Recording
from heuristics.result.judged import Wall
from heuristics.run.run import WALL_IDS
from heuristics.walls import JUDGES
from heuristics.walls.memory import does_not_fit
from tests.doubles.opinions import (
    JUDGE,
    KERNEL,
    NOBODY,
    account,
    budget,
    cost,
    costing,
    costs,
    evidence,
    judge_communication,
    judge_compute,
    judge_host,
    judge_memory,
    measured,
    rank,
    seen,
    walls_of,
    with_memory,
)
from traces.limits import Limit
from traces.missing import Missing, known
from traces.sections.rank import TensorCores
from traces.sections.tables import WallId

Export = Callable[..., Path]
DOUBT = Missing("replay", "what the host waits for is not understood", "record more")
US = 1_000

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_tenth_of_the_window_is_a_finding_and_less_is_clear(wall: WallId) -> None:
    found, clear = JUDGE[wall]([costing(wall, 100)]), JUDGE[wall]([costing(wall, 99)])
    assert (found.id, found.outcome, found.cost_ns, found.cost_frac) == (wall, "finding", 100, 0.1)
    assert (clear.id, clear.outcome, clear.cost_ns, clear.cost_frac) == (wall, "clear", 99, 0.099)


@pytest.mark.parametrize("wall", WALL_IDS)
def test_the_cost_is_the_first_evidence_beside_its_limit(wall: WallId) -> None:
    first = JUDGE[wall]([costing(wall, 120)]).evidence[0]
    assert (first.measure, first.value, first.limit, first.rank) == ("cost_frac", 0.12, 0.1, 0)
    assert first.because.startswith("ours")


@pytest.mark.parametrize("wall", WALL_IDS)
def test_only_its_own_handicap_counts(wall: WallId) -> None:
    others = costs(**{other: 500 for other in WALL_IDS if other != wall})  # type: ignore[arg-type]
    found = JUDGE[wall]([rank(others)])
    assert (found.outcome, found.cost_ns) == ("clear", 0)


@pytest.mark.parametrize("wall", WALL_IDS)
def test_without_an_account_a_wall_is_unmeasurable_with_its_reason(wall: WallId) -> None:
    found = JUDGE[wall]([rank(Missing("replay", "clock offset: 3 ms", "record again"))])
    assert (found.outcome, known(found.cost_ns), known(found.cost_frac)) == ("unmeasurable", None, None)
    assert (found.missing, found.cure) == (("clock offset: 3 ms",), "record again")


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_refused_replay_prices_nothing(wall: WallId) -> None:
    found = JUDGE[wall]([costing(wall, 900, refused=Missing("replay", "misses by 40%", "record events"))])
    assert (found.outcome, known(found.cost_ns)) == ("unmeasurable", None)
    assert (found.missing, found.cure) == (("misses by 40%",), "record events")


@pytest.mark.parametrize("wall", WALL_IDS)
def test_a_cost_that_may_be_more_is_a_finding_or_unmeasurable_and_never_clear(wall: WallId) -> None:
    large, small = (JUDGE[wall]([costing(wall, ns, at_least=DOUBT)]) for ns in (100, 99))
    assert (large.outcome, large.cost_ns) == ("finding", 100)
    assert (small.outcome, known(small.cost_ns), small.missing) == ("unmeasurable", None, (DOUBT.reason,))


def test_without_launch_shapes_only_compute_is_unmeasurable() -> None:
    walls = walls_of([rank(costs(compute=None))])
    assert [wall.outcome for wall in walls] == ["clear", "clear", "clear", "unmeasurable"]
    assert "launch shapes" in walls[3].missing[0]
    assert "kernel table" in walls[3].cure


def test_without_the_number_of_sms_compute_is_unmeasurable() -> None:
    found = judge_compute([rank(costs(compute=None), sm=structs.replace(rank().sm, sm_count=NOBODY))])
    assert found.outcome == "unmeasurable"
    assert "number of SMs" in found.missing[0]
    assert "GPU table" in found.cure


def test_where_kernels_cannot_be_told_apart_only_communication_is_unmeasurable() -> None:
    walls = walls_of([rank(costs(communication=500), unseen=NOBODY)])
    assert [wall.outcome for wall in walls] == ["clear", "unmeasurable", "clear", "clear"]
    assert known(walls[1].cost_ns) is None
    assert walls[1].evidence == ()
    assert "--cuda-graph-trace=node" in walls[1].cure


def test_the_walls_come_in_the_order_of_the_workflow() -> None:
    assert tuple(wall.id for wall in walls_of([rank()])) == WALL_IDS


def test_ranks_add_up_over_their_windows_and_the_worst_is_named() -> None:
    ranks = [costing("communication", 0), costing("communication", 300)]
    found = judge_communication(ranks)
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 300, 0.15)
    assert found.evidence[0].rank == 1


def test_kinds_of_several_ranks_add_up() -> None:
    ranks = [
        rank(costs(communication=cost(200, {"tp": 120, "cp": 80}))),
        rank(costs(communication=cost(100, {"tp": 100}))),
    ]
    assert judge_communication(ranks).cost_by_kind_ns == {"tp": 220, "cp": 80}


def test_exposed_blocking_and_hidden_communication_stand_beside_its_cost() -> None:
    one = rank(
        costs(communication=120),
        budget=budget(600, 300, 50),
        account=account(blocking={"other_comm": 200, "memcpy_d2h": 100}),
    )
    found = judge_communication([one])
    assert evidence(found, "exposed_comm_frac").value == 0.3
    assert evidence(found, "blocking_comm_frac").value == 0.2
    assert evidence(found, "hidden_comm_frac").value == 0.05
    assert found.cost_frac == 0.12


def test_late_launches_and_what_masks_them_stand_beside_the_cost_of_the_host() -> None:
    starved = replace(account({"python": 200, "gc": 100}), masked_ns=50)
    found = judge_host([rank(costs(host_overhead=150), account=starved)])
    assert evidence(found, "launch_starved_frac").value == 0.3
    assert evidence(found, "masked_frac").value == 0.05
    assert "graph_share_frac" not in seen(found)


@pytest.mark.parametrize("bytes_known", [True, False])
def test_the_price_of_memory_decides_whether_or_not_its_use_was_recorded(bytes_known: bool) -> None:
    found = judge_memory([rank(costs(memory=50), bytes_known=bytes_known)])
    assert (found.outcome, found.cost_ns, found.cost_frac, found.missing) == ("clear", 50, 0.05, ())
    assert evidence(found, "cost_frac").value == 0.05
    assert ("peak_frac" in seen(found)) == bytes_known
    assert judge_memory([rank(), rank(bytes_known=False)]).outcome == "clear"


def test_memory_above_the_limit_is_a_finding_whether_or_not_its_use_was_recorded() -> None:
    found = judge_memory([rank(costs(memory=100), bytes_known=False)])
    assert (found.outcome, found.missing, does_not_fit((found,))) == ("finding", (), False)


@pytest.mark.parametrize(
    ("retries", "outcome"), [(0.5, "finding"), (0.49, "clear"), (0.0, "clear"), (None, "clear")]
)
def test_retries_in_half_of_the_steps_are_a_finding_where_they_cost_one_percent(
    retries: float | None, outcome: str
) -> None:
    found = judge_memory([with_memory(rank(costs(memory=10)), allocator_retry_frac=retries)])
    assert (found.outcome, does_not_fit((found,))) == (outcome, outcome == "finding")
    assert ("allocator_retry_frac" in seen(found)) == bool(retries)


@pytest.mark.parametrize(
    ("peak_bytes", "outcome"), [(71, "clear"), (72, "finding"), (Missing("", "", ""), "unmeasurable")]
)
def test_retries_that_cost_nothing_are_a_finding_in_full_memory_alone_and_have_no_price(
    peak_bytes: object, outcome: str
) -> None:
    """Of 80 bytes; a headline never says that a wall of 0.1 % slows the run."""
    short = with_memory(rank(costs(memory=1)), allocator_retry_frac=1.0, peak_bytes=peak_bytes)
    found = judge_memory([short])
    assert (found.outcome, does_not_fit((found,))) == (outcome, outcome == "finding")
    assert known(found.cost_frac) == (0.001 if outcome == "clear" else None)


def test_one_rank_that_does_not_fit_is_enough() -> None:
    short = with_memory(rank(costs(memory=20)), allocator_retry_frac=1.0)
    found = judge_memory([rank(), short])
    assert (found.outcome, does_not_fit((found,))) == ("finding", True)
    assert evidence(found, "allocator_retry_frac").limit == 0.5


def test_memory_is_not_clear_where_recompute_could_not_be_told() -> None:
    why = Missing("", "no thread is named", "record with nsys")
    unbounded = replace(rank().recompute, recompute_ns=why, at_most_ns=None)
    untold = with_memory(rank(recompute=unbounded), recompute_ns=why, recompute_modules=why)
    for ranks in ([untold], [rank(), untold]):
        found = judge_memory(ranks)
        assert (found.outcome, known(found.cost_ns)) == ("unmeasurable", None)
        assert "cost_frac" not in seen(found)
        assert found.missing[0].endswith("unknown: no thread is named")
        assert found.cure == "record with nsys"
    assert judge_memory([rank(costs(memory=200)), untold]).outcome == "finding"


@pytest.mark.parametrize(
    ("at_most_ns", "outcome", "most"), [(0, "clear", 0.02), (79, "clear", 0.099), (80, "unmeasurable", 0.1)]
)
def test_recompute_that_could_not_be_seen_is_bounded(at_most_ns: int, outcome: str, most: float) -> None:
    """2 % are measured of a window of 1000 ns; what is unseen adds at most 0, 7.9 or 8 %."""
    why = Missing("", "no thread is named", "record with nsys")
    recompute = replace(rank().recompute, recompute_ns=why, at_most_ns=at_most_ns)
    untold = with_memory(rank(costs(memory=20), recompute=recompute), recompute_ns=why, recompute_modules=why)
    found = judge_memory([untold])
    assert found.outcome == outcome
    assert found.at_least_frac == (0.02 if outcome == "unmeasurable" else UNSET)


def test_what_memory_pays_for_is_said_where_anything_is_paid() -> None:
    paying = with_memory(rank(costs(memory=200)), recompute_ns=150, offload_exposed_ns=0, allocator_ns=20)
    found = judge_memory([paying])
    assert evidence(found, "recompute_frac").value == 0.15
    assert evidence(found, "allocator_frac").value == 0.02
    assert "offload_exposed_frac" not in seen(found)


def test_what_copies_move_and_how_fast_stands_beside_their_cost() -> None:
    """2 and 4 copies of 3 GB in 100 ms, and 5 GB in 100 ms: 4 GB on each GPU, 40 GB/s."""
    ms = 10**6
    ranks = [
        with_memory(
            rank(costs(memory=200)),
            host_resident_copies=copies,
            host_resident_bytes=gigabytes * 10**9,
            host_resident_union_ns=100 * ms,
        )
        for copies, gigabytes in ((2, 3), (4, 5))
    ]
    found = judge_memory(ranks)
    values = [evidence(found, f"host_resident_{key}").value for key in ("copies", "bytes", "gb_per_s")]
    assert values == [3, 4 * 10**9, 40.0]
    assert "offload_bytes" not in seen(found)


def test_gemms_without_tensor_cores_are_evidence_where_the_gpu_has_tf32() -> None:
    fp32 = TensorCores(gemm_ns=800, simt_ns=600, simt_count=3, tf32=True, fp32_to_tf32_frac=0.125)
    found = judge_compute([rank(costs(compute=525), tensor_cores=fp32), rank()])
    assert evidence(found, "simt_gemm_count").value == 3
    older = judge_compute([rank(tensor_cores=structs.replace(fp32, tf32=False))])
    assert "simt_gemm_count" not in seen(older)


def test_compute_is_not_clear_where_the_peak_rates_of_a_gpu_with_tf32_are_unknown() -> None:
    unknown = TensorCores(gemm_ns=800, simt_ns=100, simt_count=3, tf32=True, fp32_to_tf32_frac=None)
    found = judge_compute([rank(tensor_cores=unknown)])
    assert (found.outcome, found.missing[0].partition(",")[0]) == (
        "unmeasurable",
        "GEMMs run in FP32 without tensor cores",
    )
    assert judge_compute([rank(tensor_cores=structs.replace(unknown, simt_ns=99))]).outcome == "clear"


def test_start_up_above_a_twentieth_is_left_out_of_the_windows_and_of_the_hosts_cost() -> None:
    """Of 1000 the profiler and initialisation take 200: 88 of 800 is 11 %, the host's 130 - 50 is 10 %."""
    held = account({"profiler": 150, "lazy_init": 50, "python": 80})
    host = cost(130, {"python": 120, "lazy_init": 50})
    one = rank(costs(communication=88, host_overhead=host), account=held)
    assert judge_communication([one]).cost_frac == 0.11
    found = judge_host([one])
    assert (found.cost_ns, found.cost_frac, dict(known(found.cost_by_kind_ns) or {})) == (
        80,
        0.1,
        {"python": 80},
    )


def test_start_up_of_a_twentieth_is_no_fault_of_the_recording() -> None:
    little = account({"profiler": 30, "lazy_init": 20})
    assert judge_host([rank(costs(host_overhead=130), account=little)]).cost_frac == 0.13


def test_every_wall_says_how_we_tell_what_it_is_not_and_where_it_is_from() -> None:
    assert tuple(module.__name__.rpartition(".")[2] for module in JUDGES) == WALL_IDS
    for module in JUDGES:
        said = " ".join((module.__doc__ or "").split())
        for part in ("What is removed to measure it:", "How we tell:", "What it is not:", "References:"):
            assert part in said, f"{module.__name__}: {part}"


@cache
def limits_at_home() -> Mapping[str, Limit]:
    """Every limit of the package under the name of the module that makes it."""
    limits = {}
    for found in pkgutil.walk_packages(heuristics.__path__, "heuristics."):
        module = importlib.import_module(found.name)
        tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
        targets = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
        for name in sorted(target.id for target in targets if isinstance(target, ast.Name)):
            if isinstance(limit := getattr(module, name, None), Limit):
                limits[f"{found.name}.{name}"] = limit
    return limits


def test_every_limit_has_a_unit_and_a_reason_of_its_own() -> None:
    limits = limits_at_home()
    assert {
        "heuristics.walls.price.WALL",
        "heuristics.walls.verdict.NEAR",
        "heuristics.plan.gains.DIRECT",
    } <= set(limits)
    assert [name for name, limit in limits.items() if not limit.unit or len(limit.because.split()) < 3] == []


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("walls.price.WALL", 0.1),
        ("walls.price.STEADY", 0.05),
        ("walls.price.ENOUGH_STEPS", 3),
        ("walls.memory.RETRIES", 0.5),
        ("walls.verdict.NEAR", 0.03),
        ("walls.confidence.UNDECIDED", 0.1),
        ("walls.confidence.OFF", 0.02),
    ],
)
def test_limits_that_others_defined_have_their_value(limit: str, value: float) -> None:
    assert limits_at_home()[f"heuristics.{limit}"].value == value


def launch_ahead(recording: Recording, step: int, *works: tuple[str, int, int]) -> None:
    """Step k of 100 us on the GPU, launched in the first microseconds: name, how long it takes, blocks."""
    host, now = 4 * step * US, (20 + 100 * step) * US
    recording.range(f"iteration {step}", host, host + 4 * US)
    for place, (name, length, blocks) in enumerate(works):
        called = host + place * US
        end = now + length * US
        recording.kernel(name, now, end, grid=(blocks, 1, 1), launch_ns=called, launch_end_ns=called + US)
        now = end


def judged(export: Export, recording: Recording) -> dict[WallId, Wall]:
    return {wall.id: wall for wall in walls_of([measured(export(recording))])}


def test_communication_that_nothing_hides_costs_what_it_takes(export: Export) -> None:
    """60 us of compute, then 40 of all-reduce, four times: without it 240 of 400."""
    recording = Recording()
    recording.gpu()
    for step in range(4):
        launch_ahead(recording, step, (KERNEL, 60, 132), (ALL_REDUCE, 40, 8))
    walls = judged(export, recording)
    found = walls["communication"]
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 160 * US, 0.4)
    assert found.cost_by_kind_ns == {"all_reduce": 160 * US}
    assert [walls["host_overhead"].cost_ns, walls["compute"].cost_ns] == [0, 0]
    assert walls["memory"].outcome == "clear"  # nothing runs backward, and each kernel has a class


def test_a_host_that_launches_late_costs_the_time_it_is_late(export: Export) -> None:
    """A kernel of 60 us every 100 us: 60 + 3 * 100 from first to last, 4 * 60 with a host that is ahead."""
    recording = Recording()
    recording.gpu()
    for at in range(0, 400 * US, 100 * US):
        recording.range(f"iteration {at // (100 * US)}", at, at + 100 * US)
        recording.kernel(
            KERNEL,
            at + 10 * US,
            at + 70 * US,
            grid=(132, 1, 1),
            launch_ns=at,
            launch_end_ns=at + 10 * US,
        )
    walls = judged(export, recording)
    found = walls["host_overhead"]
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 120 * US, 120 / 360)
    assert [walls["communication"].cost_ns, walls["compute"].cost_ns] == [0, 0]
    assert walls["memory"].outcome == "clear"  # nothing runs backward, and each kernel has a class


def allocating(recording: Recording, free_us: tuple[int, int], allocate_us: tuple[int, int]) -> Recording:
    """Four steps of 100 us: a kernel of 50, one of 10 launched at 90, and between them free and allocate."""
    recording.gpu()
    for at in range(0, 400 * US, 100 * US):
        recording.range(f"iteration {at // (100 * US)}", at, at + 95 * US)
        for begin, end in ((0, 50), (90, 100)):
            start = at + begin * US
            recording.kernel(
                KERNEL, start, at + end * US, grid=(132, 1, 1), launch_ns=start, launch_end_ns=start
            )
        recording.call("cudaFree_v3020", at + free_us[0] * US, at + free_us[1] * US)
        recording.call("cudaMalloc_v3020", at + allocate_us[0] * US, at + allocate_us[1] * US)
    return recording


def test_giving_memory_back_in_every_step_costs_the_wait_for_it(export: Export) -> None:
    """40 us between the two kernels go in all four steps: the cache was full in the first one already."""
    walls = judged(export, allocating(Recording(), (10, 50), (50, 90)))
    found = walls["memory"]
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 160 * US, 0.4)
    assert found.cost_by_kind_ns == {"allocator": 160 * US}
    assert (does_not_fit((found,)), evidence(found, "allocator_retry_frac").value) == (True, 1.0)
    assert [walls["communication"].cost_ns, walls["host_overhead"].cost_ns] == [0, 0]


def test_grids_of_a_quarter_of_the_sms_cost_three_quarters_of_their_time(export: Export) -> None:
    """80 us at 33 of 132 blocks and 20 at 132, four times: 60 us a step could go."""
    recording = Recording()
    recording.gpu(sm_count=132)
    for step in range(4):
        launch_ahead(recording, step, (KERNEL, 80, 33), (KERNEL, 20, 132))
    walls = judged(export, recording)
    found = walls["compute"]
    assert (found.outcome, found.cost_ns, found.cost_frac) == ("finding", 240 * US, 0.6)
    assert evidence(found, "under_filled_frac").value == 0.8
    assert [walls["communication"].cost_ns, walls["host_overhead"].cost_ns] == [0, 0]


def test_without_the_gpu_table_small_grids_are_unmeasurable(export: Export) -> None:
    recording = Recording()
    for step in range(4):
        launch_ahead(recording, step, (KERNEL, 80, 33), (KERNEL, 20, 132))
    found = judged(export, recording)["compute"]
    assert (found.outcome, known(found.cost_ns)) == ("unmeasurable", None)
    assert "GPU table" in found.cure


def test_without_recorded_launches_the_host_costs_at_most_the_time_without_compute(export: Export) -> None:
    recording = Recording()
    recording.gpu()
    for at in range(0, 400, 100):
        recording.kernel(KERNEL, at * US, (at + 60) * US)
    walls = judged(export, recording)
    open_ = [walls["memory"], walls["host_overhead"]]
    assert {wall.outcome for wall in open_} == {"unmeasurable"}
    assert all("no launch of a kernel was recorded" in wall.missing[0] for wall in open_)
    assert all("--trace=cuda" in wall.cure for wall in open_)
    assert walls["host_overhead"].at_most_frac == 120 / 360  # nothing else runs where no compute does
    assert [walls[wall].outcome for wall in ("communication", "compute")] == ["clear", "unmeasurable"]


def test_where_clocks_are_apart_only_the_partition_bounds_a_wall(export: Export) -> None:
    recording = Recording()
    recording.gpu()
    for at in range(0, 3_200, 100):
        recording.kernel(KERNEL, (at + 9_000) * US, (at + 9_060) * US, launch_ns=at * US)
    walls = judged(export, recording)
    assert walls["host_overhead"].outcome == "unmeasurable"
    assert "clocks may be apart" in walls["host_overhead"].missing[0]
    assert walls["communication"].outcome == walls["memory"].outcome == "clear"


def test_where_graphs_were_recorded_whole_communication_is_never_clear(export: Export) -> None:
    recording = Recording()
    recording.gpu()
    for at in range(0, 400, 100):
        recording.graph_replay(at * US, (at + 90) * US, launch_ns=at * US)
    walls = judged(export, recording)
    assert walls["communication"].outcome == "unmeasurable"
    assert "graph replays were recorded whole" in walls["communication"].missing[0]
    assert walls["compute"].outcome == "unmeasurable"
