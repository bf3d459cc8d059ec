"""The SMs: fill, tails and stretch one can work out in the head, and counters of both layouts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bench.simulate.recording import Recording
from tests.places import Export
from tests.recordings.inputs import changed
from traces.columns import SmLimits
from traces.formats.nsys_metrics import read_gpu_samples
from traces.formats.nsys_sqlite import read_export
from traces.formats.sqlite_tables import SqliteTables
from traces.gpu_work import build
from traces.intervals import spans
from traces.measure.sm import measure_sm
from traces.measure.sm_launches import NONE_SEEN
from traces.missing import Missing, known
from traces.sections.rank import Sm

US = 1_000
NVJET = "nvjet_tst_128x256_64x4_2x1_v_bz_TNT"
COMM = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
PLAIN = "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x128_32x3_nn_align8>(T1::Params)"


def measured(path: Path, start_ns: int = 0, end_ns: int = 10**9) -> Sm:
    with SqliteTables(path) as tables:
        columns = read_export(tables)
        samples = read_gpu_samples(tables)
    (rank,) = build(columns).ranks
    return measure_sm(rank, spans((start_ns, end_ns)), rank.gpu, samples).sm


def recording(sm_count: int = 100) -> Recording:
    some = Recording()
    some.gpu(sm_count=sm_count)
    return some


def kernel(some: Recording, start_us: int, us: int, blocks: int, name: str = PLAIN, stream: int = 7) -> None:
    """Blocks of 1000 threads and 32 registers: two fit an SM and fill it but for the rest of a warp each."""
    start = start_us * US
    some.kernel(name, start, start + us * US, grid=(blocks, 1, 1), block=(1000, 1, 1), stream=stream)


def test_fill_and_tail_are_weighted_by_time(export: Export) -> None:
    some = recording()
    kernel(some, 0, 100, blocks=200)  # one whole wave
    kernel(some, 100, 100, blocks=50)  # half a block per SM: a quarter of what fits, fewer blocks than SMs
    kernel(some, 200, 100, blocks=300)  # one wave and a half: a quarter of the two is idle
    kernel(some, 300, 100, blocks=900)  # four waves and a half: no tail to speak of
    kernel(some, 400, 80, blocks=700)  # three and a half: an eighth of the four is idle
    use = measured(export(some))
    assert (use.occupancy_frac, use.launch_occupancy_frac) == pytest.approx((1.0, 405 / 480 * 1000 / 1024))
    assert (use.fill_frac, use.tail_ns, use.under_filled_ns) == (405 / 480, 35 * US, 100 * US)
    assert use.limiter_ns == {"warps": 480 * US}


def test_small_kernels_are_no_matter_of_filling_and_what_is_not_judged_says_why(export: Export) -> None:
    some = recording()
    kernel(some, 0, 4, blocks=1)
    kernel(some, 4, 4, blocks=200, name="void cutlass::device_kernel<GroupProblemShape>")  # persistent
    kernel(some, 10, 5, blocks=200, name="rmsnorm_fwd_tuned_kernel")
    kernel(some, 30, 10, blocks=200, name=COMM)
    path = export(some)
    use, small, alone = measured(path), measured(path, 0, 8 * US), measured(path, 30 * US)
    assert (use.fill_frac, use.under_filled_ns, use.limiter_ns) == (1.0, 0, {"warps": 9 * US})
    assert isinstance(small.fill_frac, Missing)
    assert small.fill_frac.reason.endswith("of unknown shape or under 5 us")
    assert [*small.by_class] == ["gemm", "grouped_gemm"]
    grouped = small.by_class["grouped_gemm"]
    assert (grouped.occupancy_frac, grouped.fill_frac) == (NONE_SEEN, small.fill_frac)
    assert isinstance(alone.fill_frac, Missing)
    assert alone.fill_frac.reason == "no single compute kernel in the window"


def test_what_has_no_whole_launch_shape_is_not_judged(export: Export) -> None:
    some = recording()
    kernel(some, 0, 100, blocks=200)
    some.kernel(PLAIN, 100 * US, 200 * US, grid=(200, 1, 1), block=(0, 1, 1))
    some.kernel(PLAIN, 200 * US, 300 * US, grid=(200, 1, 1), dynamic_shared_bytes=228 << 10)  # all and 1 KiB
    lacking = ("gridZ", "blockY", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
    for place, column in enumerate(lacking):
        kernel(some, 300 + 100 * place, 100, blocks=200)
        some.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1][column] = -1
    use, none = measured(export(some)), measured(export(some, "same.sqlite"), 300 * US)
    assert (use.limiter_ns, use.occupancy_frac) == ({"warps": 100 * US}, 1.0)
    assert isinstance(none.fill_frac, Missing)
    assert none.fill_frac.reason == "no launch shapes were recorded"


def test_static_and_dynamic_shared_memory_count_together(export: Export) -> None:
    """Of 228 KiB an SM, 1 of each block held back; no registers are no limit."""
    some = recording()
    for place, (static, dynamic) in enumerate(((30, 85), (85, 30))):
        kernel(some, 100 * place, 100, blocks=200)
        shared = {"staticSharedMemory": static << 10, "dynamicSharedMemory": dynamic << 10}
        some.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1] |= {**shared, "registersPerThread": 0}
    use = measured(export(some))
    assert (use.limiter_ns, use.occupancy_frac) == ({"shared_memory": 200 * US}, 0.5)


def test_a_persistent_kernel_is_a_class_of_its_own_unless_its_grid_is_small(export: Export) -> None:
    some = recording()
    kernel(some, 0, 100, blocks=90, name=NVJET)  # 0.9 of the SMs: the rest is left to communication
    kernel(some, 100, 100, blocks=89, name=NVJET)
    kernel(some, 200, 100, blocks=100)
    use = measured(export(some))
    assert (use.persistent_ns, use.under_filled_ns) == (100 * US, 100 * US)
    assert use.fill_frac == pytest.approx((89 / 200 + 1 / 2) / 2)
    assert use.occupancy_frac == 1.0


def beside_and_alone(alone: int, beside: int = 6, shortest: int = 75) -> Recording:
    """In turns beside communication and alone; the first two and last two of a stream have no equals.

    Of those alone that count the first is the shortest: a quarter less than the others is alike.
    """
    some = recording()
    for turn in range(beside):
        kernel(some, 1000 * turn, 120, blocks=200)
        kernel(some, 1000 * turn, 120, blocks=10, name=COMM, stream=20)
    for turn in range(alone):
        kernel(some, 1000 * turn + 500, shortest if turn == 1 else 100, blocks=200)
    kernel(some, 9000, 700, blocks=400)  # another grid: another kernel
    return some


def test_stretch_compares_the_same_kernel_beside_communication_and_alone(export: Export) -> None:
    use = measured(export(beside_and_alone(alone=5)))
    stretch = known(use.stretch)
    assert stretch is not None
    assert stretch.frac == use.stretch_frac == pytest.approx(0.2)
    assert (stretch.group_count, stretch.beside_count, stretch.beside_ns) == (1, 4, 480 * US)


def test_what_is_beside_communication_for_a_part_is_stretched_in_that_part(export: Export) -> None:
    some = recording()
    for turn in range(6):
        kernel(some, 1000 * turn, 100, blocks=200)
        kernel(some, 1000 * turn + 500, 110, blocks=200)  # 55 alone, then 55 for what takes 45 alone
        kernel(some, 1000 * turn + 555, 55, blocks=10, name=COMM, stream=20)
    stretch = known(measured(export(some)).stretch)
    assert stretch is not None
    assert stretch.frac == pytest.approx(10 / 45)


def two_kernels(second_beside_us: int, first_beside_us: int = 120) -> Recording:
    """Two GEMMs and their stretch: each 100 us alone, and so long beside communication."""
    some = recording()
    norm = "rmsnorm_fwd_tuned_kernel"
    for turn in range(8):
        for place, (blocks, beside_us) in enumerate(((200, first_beside_us), (300, second_beside_us))):
            at = 4000 * turn + 2000 * place
            for begin, length in ((at, beside_us), (at + 1000, 100)):
                kernel(some, begin - 20, 10, blocks=200, name=norm)
                kernel(some, begin, length, blocks=blocks)
                kernel(some, begin + 400, 10, blocks=200, name=norm)
            kernel(some, at, beside_us, blocks=10, name=COMM, stream=20)
    return some


def test_kernels_that_ran_faster_beside_communication_are_of_another_size(export: Export) -> None:
    for second_us in (60, 100):  # or no slower
        stretch = known(measured(export(two_kernels(second_us), f"{second_us}.sqlite")).stretch)
        assert stretch is not None
        assert (round(stretch.frac, 9), stretch.group_count) == (0.2, 1)
    faster = known(measured(export(two_kernels(60, 60), "faster.sqlite")).stretch)
    assert faster is not None
    assert (faster.frac, faster.group_count) == (0.0, 2)


def test_persistent_kernels_of_other_sizes_are_told_apart_by_their_neighbours(export: Export) -> None:
    """One grid, two GEMMs: 100 us alone after a norm, 400 us beside communication after an activation."""
    some = recording()
    norm, activation = "rmsnorm_fwd_tuned_kernel", "scaled_gated_forward_kernel"
    for turn in range(6):
        kernel(some, 1000 * turn, 10, blocks=200, name=norm)
        kernel(some, 1000 * turn + 10, 100, blocks=200)
        kernel(some, 1000 * turn + 110, 10, blocks=200, name=activation)
        kernel(some, 1000 * turn + 120, 400, blocks=200)
        kernel(some, 1000 * turn + 120, 400, blocks=10, name=COMM, stream=20)
    assert isinstance(measured(export(some)).stretch, Missing)


@pytest.mark.parametrize(("alone", "beside", "shortest"), [(3, 6, 100), (9, 3, 100), (5, 6, 74)])
def test_stretch_needs_enough_of_both_sides(export: Export, alone: int, beside: int, shortest: int) -> None:
    """And alike; the first two and last two of the stream count on neither side."""
    use = measured(export(beside_and_alone(alone, beside, shortest)))
    assert isinstance(use.stretch, Missing)


@pytest.mark.parametrize("schema", ["none", "3.16.1"])
def test_limits_of_an_sm_are_read_from_the_gpu_table(export: Export, schema: str) -> None:
    some = recording()
    kernel(some, 0, 100, blocks=200)
    path = export(some, schema=schema)
    table, of = ("TARGET_INFO_CUDA_GPU", "Multiprocessor") if schema == "none" else ("TARGET_INFO_GPU", "Sm")
    shared = f"maxSharedMemoryPer{of}" if schema == "none" else "maxShmemPerSm"
    limits = f"maxWarpsPer{of} = 64, maxBlocksPer{of} = 0, maxRegistersPer{of} = 65536, {shared} = 233472"
    changed(path, f"UPDATE {table} SET {limits}")  # the driver of 2021 told no blocks: 0
    with SqliteTables(path) as tables:
        (listed,) = read_export(tables).info.gpus
    assert listed.limits == SmLimits(64, None, 65_536, 233_472)


METRIC_NAMES = ("SMs Active [Throughput %]", "SM Issue [Throughput %]", "Tensor Active [Throughput %]")
SAMPLES = [(0, 90, 10, 0), (100 * US, 80, 60, 40), (200 * US, 70, 20, 20)]


def half_gemm_half_norm() -> Recording:
    some = recording()
    kernel(some, 0, 100, blocks=200)
    kernel(some, 100, 50, blocks=200)
    kernel(some, 150, 50, blocks=200, name="void at::native::elementwise_kernel<(int)128, (int)2>(int)")
    return some


def add_new_metrics(path: Path) -> None:
    """Two GPUs whose metric ids are permuted, and a quantity in another unit."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE GPU_METRICS (rawTimestamp INT, timestamp INT, typeId INT, metricId INT, value INT)"
        )
        db.execute(
            "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, metricId INT, metricName TEXT)"
        )
        for gpu_id, ids in ((0, (7, 8, 9)), (1, (9, 7, 8))):
            type_id = 281_474_976_710_656 + gpu_id  # the low byte is the GPU
            names = [*zip(ids, METRIC_NAMES, strict=True), (3, "SM Issue [Avg]")]
            db.executemany(
                "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 1, ?, ?)",
                [(type_id, *name) for name in names],
            )
            for stamp, *values in SAMPLES:
                rows = [(stamp + 5, stamp, type_id, *pair) for pair in zip(ids, values, strict=True)]
                db.executemany(
                    "INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?, ?)", [*rows, (0, 0, type_id, 3, 77)]
                )
        db.commit()


def add_old_metrics(path: Path) -> None:
    """One JSON object per sample, numbers as texts, the time only in rawTimestamp; and another event."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE GENERIC_EVENTS (rawTimestamp INT, timestamp INT, typeId INT, data TEXT)")
        for gpu_id in (0, 1):
            for stamp, active, issue, tensor in SAMPLES:
                data = {"SM Active": str(active), "SM Issue": str(issue), "Tensor Active": str(tensor)}
                row = (stamp, None, 512 + gpu_id, json.dumps(data | {"GPC Clock Frequency": "1410000000"}))
                db.execute("INSERT INTO GENERIC_EVENTS VALUES (?, ?, ?, ?)", row)
        db.execute("INSERT INTO GENERIC_EVENTS VALUES (5, 5, 900, ?)", ('{"ftrace": "[1]"}',))
        db.commit()


@pytest.mark.parametrize("add", [add_new_metrics, add_old_metrics])
def test_both_layouts_of_gpu_metrics_give_the_same_series(
    export: Export, add: Callable[[Path], None]
) -> None:
    path = export(half_gemm_half_norm())
    add(path)
    with SqliteTables(path) as tables:
        first, second = read_gpu_samples(tables)
    assert (first.gpu_id, second.gpu_id) == (0, 1)
    for series in (first, second):
        assert series.start_ns.tolist() == [0, 100 * US, 200 * US]
        assert series.end_ns.tolist() == [100 * US, 200 * US, 300 * US]
        assert series.sm_active_frac.tolist() == [0.9, 0.8, 0.7]
        assert series.sm_issue_frac.tolist() == [0.1, 0.6, 0.2]
        assert series.tensor_active_frac.tolist() == [0.0, 0.4, 0.2]


def test_a_hole_in_the_sampling_stays_a_hole(export: Export) -> None:
    path = export(half_gemm_half_norm())
    add_new_metrics(path)
    changed(
        path,
        "UPDATE GPU_METRICS SET timestamp = 900000, rawTimestamp = 900000 WHERE timestamp = 200000",
        "INSERT INTO GPU_METRICS SELECT 1000000, 1000000, typeId, metricId, 0 FROM GPU_METRICS",
    )
    with SqliteTables(path) as tables:
        series = read_gpu_samples(tables)[0]
    assert series.end_ns.tolist() == [100 * US, 200 * US, 1000 * US, 1100 * US]
