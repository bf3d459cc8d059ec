"""Sequences as loops that lose nothing, and occupancy against NVIDIA's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from traces.arrays import IntArray
from traces.columns import Gpu, SmLimits
from traces.measure.folding import fold
from traces.measure.sm_launches import LIMITERS, theoretical_occupancy
from traces.names.gpus import SmCapacity, capability_at_least, sm_capacity


@pytest.mark.parametrize(
    ("numbers", "of", "length", "loops"),
    [
        ([], [], [], ()),
        ([3, 3, 3, 5], [3, 5], [3, 1], ()),  # alike neighbours are one run
        (
            [9, *[*[1, 2, 2] * 4, 7] * 3],
            [9, 1, 2, 7],
            [1, 1, 2, 1],
            ((1, 3, 3), (1, 2, 4)),
        ),  # a loop in another
        ([1, 2, 1, 2], [1, 2], [1, 1], ((0, 2, 2),)),
        ([1, 2, 1, 3, 4, 5, 3, 4, 5], [1, 2, 1, 3, 4, 5], [1] * 6, ((3, 3, 2),)),
        ([1, 2, 1, 2, 3, 2, 3], [1, 2, 3, 2, 3], [1] * 5, ((0, 2, 2),)),  # what one loop has no other has too
        ([1, 2, 1, 2, 3, 2, 3, 2, 3], [1, 2, 3, 2, 3], [1] * 5, ((0, 2, 2), (2, 2, 2))),
    ],
)
def test_a_sequence_is_runs_and_loops_that_lose_none_of_its_rows(
    numbers: list[int], of: list[int], length: list[int], loops: tuple[tuple[int, int, int], ...]
) -> None:
    folded = fold(np.array(numbers, dtype=np.int64), 10)
    assert folded is not None
    assert (folded.of.tolist(), folded.length.tolist(), folded.loops) == (of, length, loops)
    assert folded.of[folded.run].tolist() == numbers


def test_a_sequence_of_more_runs_than_may_be_kept_is_none() -> None:
    assert fold(np.arange(11), 10) is None
    assert fold(np.arange(10), 10) is not None


def gpu(capability: str = "9.0", sm_count: int | None = 100, limits: SmLimits | None = None) -> Gpu:
    return Gpu(0, 0, None, sm_count, capability, None, limits)


def array(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def test_occupancy_one_can_work_out_on_paper() -> None:
    # threads, registers, shared bytes: a full SM; registers; shared memory; 32 blocks of one warp; nvjet
    # and a block beyond the SM, which fits no time
    threads = array(1024, 256, 128, 32, 384, 1024)
    registers = array(32, 64, 32, 16, 168, 32)
    shared = array(0, 0, 45_568, 0, 213_204, 300 * 1024)
    h100 = sm_capacity(gpu())
    assert h100 is not None
    fits = theoretical_occupancy(h100, threads, registers, shared)
    assert fits.resident_blocks.tolist() == [2, 4, 5, 32, 1, 0]
    assert fits.theoretical_frac.tolist() == [1.0, 0.5, 20 / 64, 0.5, 12 / 64, 0.0]
    assert [LIMITERS[place] for place in fits.limiter] == [
        "warps",
        "registers",
        "shared_memory",
        "blocks",
        "registers",  # and shared memory: the earlier is named
        "shared_memory",
    ]


def test_the_traces_own_limits_come_before_the_table() -> None:
    own = sm_capacity(gpu("8.6", limits=SmLimits(40, None, 32_768, None)))
    assert own == SmCapacity(40, 16, 102_400, 32_768, 128, 1024)
    assert sm_capacity(gpu("42.0")) is None


def test_kernel_names_give_a_lower_bound_of_the_capability_only() -> None:
    names = ("cudnn_generated_fort_native_sdpa_sm80_flash_fprop", "nvjet_sm90_tst_256x160", "softmax_sm64_x")
    assert capability_at_least(names) == "9.0"
    assert capability_at_least(["fmhaSm100fKernel_QkvE4m3"]) == "10.0"
    assert capability_at_least(["volta_scudnn_128x64_relu_small_nn_v1"]) == "7.0"
    assert capability_at_least(["nvjet_tst_128x256_64x4_2x1_v_bz_TNT"]) is None
