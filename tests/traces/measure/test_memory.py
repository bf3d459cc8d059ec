"""Memory: recompute, offload, what lives on the host, allocator calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.by_hand.run import Run
from tests.places import Export
from tests.recordings.launches import GEMM, NORM, NORM_BACKWARD, ROUTER, SENDRECV, Line, rank_of
from traces.intervals import spans
from traces.measure.memory import measure_memory
from traces.measure.recompute import measure_recompute
from traces.missing import Missing, known
from traces.names.kernels import gemm_format
from traces.sections.rank import Memory, Passes
from traces.steps.found import Step, Steps, from_steps
from traces.timeline import RankTimeline
from traces.training import roles_of

FORWARD = "cudnn_generated_oss_sdpa_sm90_flash_fprop_wgmma_f16_knob_7"
BACKWARD = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26"
GRADIENT = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
LOSS = "cross_entropy_kernel"
AUTOGRAD = 1001
LAYER = ((NORM, 7), (GEMM, 7), (FORWARD, 7), (GEMM, 7), (ROUTER, 7), (SENDRECV, 20))
LAYER_BACKWARD = ((SENDRECV, 20), (GRADIENT, 7), (BACKWARD, 7), (GRADIENT, 7), (NORM_BACKWARD, 7))


@pytest.mark.parametrize("threads", [True, False])
def test_a_layer_run_again_counts_whole_with_its_collective(export: Export, threads: bool) -> None:
    """Two steps of four layers: forward, loss, and each again before its backward; kernels take 10 us."""
    line, thread = Line(), AUTOGRAD if threads else 1000
    for _ in range(2):
        for name, stream in (*LAYER * 4, (LOSS, 7)):
            line.run(name, stream)
        for name, stream in (*LAYER, *LAYER_BACKWARD) * 4:
            line.run(name, stream, tid=thread)
    rank = rank_of(export(line.recording))
    if threads:
        rank.columns.thread_names[line.recording.global_id(1000, AUTOGRAD)] = "pt_autograd_0"
    found = measure_recompute(rank, spans((0, line.now * 1_000)))
    assert not isinstance(found.modules, Missing)
    assert found.modules["attention"] == Passes(16, 8, 8, "threads" if threads else "counts")
    assert found.recompute_ns == 8 * 6 * 10_000
    assert "attention" in found.again
    assert found.recompute_modules == {
        "attention": 80_000,
        "gemm": 160_000,
        "norm": 80_000,
        "router": 80_000,
        "sendrecv_unresolved": 80_000,
    }


def test_a_range_named_after_backward_tells_what_runs_backward(export: Export) -> None:
    """One thread launches all, and no kernel is named after backward: attention in the range runs again."""
    line = Line()
    for name in (FORWARD, GEMM, LOSS):
        line.run(name)
    begin = line.now * 1_000
    for name in (FORWARD, GEMM, GEMM):
        line.run(name)
    line.recording.range("ConvolutionBackward0", begin, line.now * 1_000)
    roles = roles_of(rank_of(export(line.recording)))
    assert roles.backward.tolist() == [False] * 3 + [True] * 3
    assert roles.forward.tolist() == [True] + [False] * 5


def test_gemms_of_one_name_are_repeated_only_where_two_gradients_each_are_left(export: Export) -> None:
    block = ((NORM, 7), (GEMM, 7), (FORWARD, 7), (GEMM, 7))
    for again, gemms in (((FORWARD,), 0), ((FORWARD, GEMM), 8), ((NORM, GEMM, FORWARD), 8)):
        line = Line()
        for _ in range(2):
            for name, stream in block * 4:
                line.run(name, stream)
            for _ in range(4):
                for name in (*again, GEMM, GEMM, BACKWARD, GEMM, GEMM, NORM_BACKWARD):
                    line.run(name, tid=AUTOGRAD)
        rank = rank_of(export(line.recording, f"{len(again)}{gemms}.sqlite"))
        rank.columns.thread_names[line.recording.global_id(1000, AUTOGRAD)] = "pt_autograd_0"
        found = measure_recompute(rank, spans((0, line.now * 1_000)))
        assert (known(found.recompute_modules) or {}).get("gemm", 0) == gemms * 10_000


def steps_of(count: int) -> Steps:
    """Steps of 1 ms."""
    return from_steps("user", "the test's", tuple(Step(k, k * 10**6, (k + 1) * 10**6) for k in range(count)))


def memory_of(rank: RankTimeline | Run, steps: Steps) -> Memory:
    rank = rank.rank() if isinstance(rank, Run) else rank
    return measure_memory(rank, steps, measure_recompute(rank, steps.windows))


MIB = 1 << 20


def worked(count: int, **how: Any) -> Run:
    """Steps of 1 ms, of which the first 100 to 200 us are a GEMM."""
    run = Run(**how)
    for k in range(count):
        run.at(1_000 * k).work("gemm", 100, 200, launch=0)
    return run


def offloading(size_bytes: int, pairs: int) -> Run:
    """In each of two steps copies of 50 us, 60 apart: out from 180 on, back from 600 on."""
    run = worked(2)
    for step in (run.at(0), run.at(1_000)):
        for place in range(pairs):
            for kind, first in (("d2h", 180), ("h2d", 600)):
                at = first + 60 * place
                step.work(kind, at, at + 50, size_bytes=size_bytes, stream=9)
    return run


@pytest.mark.parametrize(("size_bytes", "pairs", "copies"), [(MIB, 2, 8), (MIB - 1, 2, 0), (MIB, 1, 0)])
def test_offload_is_large_goes_out_comes_back_and_recurs(size_bytes: int, pairs: int, copies: int) -> None:
    """Of the first copy of each step 20 us lie under the kernel."""
    found = memory_of(offloading(size_bytes, pairs), steps_of(2))
    exposed_us = 2 * 180 if copies else 0
    assert (found.offload_copies, found.offload_bytes) == (copies, copies * size_bytes)
    assert (found.offload_exposed_ns, found.offload_union_ns) == (exposed_us * 1_000, copies * 50_000)
    assert found.capacity_bytes == 80 << 30


def test_communication_hides_offload_and_another_copy_does_not() -> None:
    for name, exposed_us in (("memset", 360), ("all_reduce", 310)):
        run = offloading(MIB, 2)
        run.work(name, 600, 650, stream=20)
        found = memory_of(run, steps_of(2))
        assert (found.offload_exposed_ns, found.offload_copies) == (exposed_us * 1_000, 8)


def test_allocator_calls_count_after_the_first_step_once_and_on_launching_threads() -> None:
    """The last step's free comes after all that was launched, so it may be of the next step."""
    run = worked(3)
    for k in range(3):
        step = run.at(1_000 * k)
        step.work("gemm", 900, 1_000, launch=5)
        step.call("malloc", 1, 4 + k)
        step.call("cuMemCreate", 2, 3)  # within the one before
        step.call("free", 500, 502)
        step.call("malloc", 1, 4, thread=9)  # launches nothing
        step.call("cuMemcpyAsync", 5, 9)
    found = memory_of(run, steps_of(3))
    assert (found.allocator_calls, found.allocator_ns) == (3, 11_000)
    assert found.allocator_scope == "2 used steps after the first"
    assert found.allocator_retry_frac == 0.0


def test_one_step_may_be_all_warm_up() -> None:
    found = memory_of(worked(1), steps_of(1))
    assert isinstance(found.allocator_ns, Missing)
    assert found.allocator_calls == found.allocator_ns == found.allocator_retry_frac


def test_the_host_may_have_launched_a_step_before_another_ran_and_calls_of_other_processes_are_none() -> None:
    """One call in each step after the first, and two between steps that touch; none of a step that is cut."""
    run = Run(ahead_us=10)
    for k in range(5):
        step = run.at(1_000 * k)
        step.work("gemm", 100, 200, launch=100)
        step.work("gemm", 800, 900, launch=800)
        for at in (50, 400, 950):  # before the first launch, between, after the last
            step.call("malloc", at, at + 10)
            step.call("malloc", at, at + 10, process=1)
    steps = steps_of(5)
    assert memory_of(run, steps).allocator_calls == 4 + 3 * 2
    cut = replace(steps.used[2], dropped="partial")
    third_lacks = from_steps("user", "", (*steps.used[:2], cut, *steps.used[3:]))
    assert memory_of(run, third_lacks).allocator_calls == 3 + 2


@pytest.mark.parametrize(("name", "expected"), [
    ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_Avec32UE8M0_Bvec32UE8M0_TNT", "mxfp8"),
    ("nvjet_sm100_ootst_128x256_256x5_2x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT", "nvfp4"),
    ("nvjet_sm90_qqtst_128x128_128x6_1x2_h_bz_Avec128_Bblk128_TNT", "fp8_blockwise"),
    ("nvjet_qqtst_128x256_128x6_2x1_v_bz_TNT", "fp8"),
    ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "fp16"),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8", "fp32"),
    ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", "fp8"),
    ("cutlass_80_tensorop_s1688gemm_64x64_16x6_nt_align4", "tf32"), ("ampere_sgemm_128x64_tn", "fp32"),
    ("_grouped_gemm_kernel", None),
])  # fmt: skip
def test_the_format_of_a_gemm_is_in_its_name(name: str, expected: str | None) -> None:
    assert gemm_format(name) == expected
