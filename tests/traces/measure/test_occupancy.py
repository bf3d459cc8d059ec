"""Occupancy against NVIDIA's own arithmetic: on paper, block by block, and as Kineto printed it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces.arrays import IntArray
from traces.columns import Gpu, SmLimits
from traces.measure.sm_launches import LIMITERS, theoretical_occupancy
from traces.names.gpus import SmCapacity, capability_at_least, sm_capacity


def gpu(capability: str = "9.0", sm_count: int | None = 100, limits: SmLimits | None = None) -> Gpu:
    return Gpu(0, 0, None, sm_count, capability, None, limits)


def h100() -> SmCapacity:
    capacity = sm_capacity(gpu())
    assert capacity is not None
    return capacity


def array(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def test_occupancy_one_can_work_out_on_paper() -> None:
    # threads, registers, shared bytes: a full SM; registers; shared memory; 32 blocks of one warp; nvjet
    threads = array(1024, 256, 128, 32, 384)
    registers = array(32, 64, 32, 16, 168)
    shared = array(0, 0, 56 * 1024, 0, 213_204)
    fits = theoretical_occupancy(h100(), threads, registers, shared)
    assert fits.resident_blocks.tolist() == [2, 4, 4, 32, 1]
    assert fits.theoretical_frac.tolist() == [1.0, 0.5, 0.25, 0.5, 12 / 64]
    assert [LIMITERS[place] for place in fits.limiter] == [
        "warps",
        "registers",
        "shared_memory",
        "blocks",
        "registers",  # and shared memory: the earlier is named
    ]


def test_a_launch_has_no_more_resident_blocks_than_its_grid_gives_each_sm() -> None:
    fits = theoretical_occupancy(h100(), array(1024, 1024), array(32, 32), array(0, 0))
    assert fits.launch_frac(array(50, 1000), 100).tolist() == [0.25, 1.0]


def test_a_block_beyond_the_sm_fits_no_time() -> None:
    fits = theoretical_occupancy(h100(), array(1024), array(32), array(300 * 1024))
    assert fits.resident_blocks.tolist() == [0]


def placed_one_by_one(capacity: SmCapacity, threads: int, registers: int, shared: int) -> int:
    """Put blocks on an SM until one does not fit: warps into the quarter that has room for them."""
    quarters = [capacity.registers // 4] * 4
    warps, room, blocks = capacity.warps, capacity.shared_bytes, 0
    per_warp = (registers * 32 + 255) // 256 * 256
    unit = capacity.shared_unit_bytes
    per_block = (shared + capacity.reserved_shared_bytes + unit - 1) // unit * unit
    while blocks < capacity.blocks:
        warps -= (threads + 31) // 32
        room -= per_block
        for _ in range((threads + 31) // 32):
            quarters.sort()
            quarters[-1] -= per_warp
        if warps < 0 or room < 0 or min(quarters) < 0:
            break
        blocks += 1
    return blocks


@given(
    st.sampled_from(["7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.3", "12.0"]),
    st.integers(1, 1024),
    st.integers(0, 255),
    st.integers(0, 100_000),
)
def test_occupancy_equals_placing_blocks_one_by_one(
    capability: str, threads: int, regs: int, shared: int
) -> None:
    capacity = sm_capacity(gpu(capability))
    assert capacity is not None
    fits = theoretical_occupancy(capacity, array(threads), array(regs), array(shared))
    assert fits.resident_blocks.tolist() == [placed_one_by_one(capacity, threads, regs, shared)]


def test_the_traces_own_limits_come_before_the_table() -> None:
    own = sm_capacity(gpu("8.6", limits=SmLimits(40, None, 32_768, None)))
    assert own == SmCapacity(40, 16, 32_768, 102_400, 128, 1024)
    assert sm_capacity(gpu("42.0")) is None


def test_kernel_names_give_a_lower_bound_of_the_capability_only() -> None:
    names = ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop", "nvjet_sm90_tst_256x160", "softmax_sm64_x")
    assert capability_at_least(names) == "9.0"
    assert capability_at_least(["fmhaSm100fKernel_QkvE4m3"]) == "10.0"
    assert capability_at_least(["volta_scudnn_128x64_relu_small_nn_v1"]) == "7.0"
    assert capability_at_least(["nvjet_tst_128x256_64x4_2x1_v_bz_TNT"]) is None


def kineto_gap(capacity: SmCapacity, shared: int) -> bool:
    """Whether Kineto says 0: it asks for a kernel that did not opt in to more shared memory than 48 KiB."""
    unit, reserved = capacity.shared_unit_bytes, capacity.reserved_shared_bytes
    return (shared + reserved + unit - 1) // unit * unit > 48 * 1024 + reserved


def test_every_kernel_has_the_occupancy_kineto_gives_it(recordings: Path) -> None:
    counted: Counter[str] = Counter()
    for path in sorted(recordings.glob("*.json.gz")):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        properties = {device["id"]: device for device in trace["deviceProperties"]}
        for event in trace["traceEvents"]:
            if event.get("cat") != "kernel":
                continue
            told, device = event["args"], properties[event["args"]["device"]]
            capacity = sm_capacity(kineto_gpu(device))
            assert capacity is not None
            fits = theoretical_occupancy(
                capacity,
                array(int(np.prod(told["block"]))),
                array(told["registers per thread"]),
                array(told["shared memory"]),
            )
            ours = 100 * fits.launch_frac(array(int(np.prod(told["grid"]))), device["numSms"])[0]
            theirs = told["est. achieved occupancy %"]
            if kineto_gap(capacity, told["shared memory"]):
                counted["gap"] += 1
                assert theirs == 0 < ours
            else:
                counted["told"] += 1
                assert abs(ours - theirs) <= 1, (path.name, event["name"], ours, told)
    assert counted == {"told": 31_640, "gap": 450}


def kineto_gpu(device: dict[str, Any]) -> Gpu:
    limits = SmLimits(
        device["maxThreadsPerMultiprocessor"] // 32,
        None,
        device["regsPerMultiprocessor"],
        device["sharedMemPerMultiprocessor"],
    )
    return gpu(f"{device['computeMajor']}.{device['computeMinor']}", device["numSms"], limits)
