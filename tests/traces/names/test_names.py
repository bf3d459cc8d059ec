"""Kernel and range names against the labelled corpus."""

from __future__ import annotations

import csv
import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.places import DATA
from traces.names.kernels import (
    classify_kernel,
    gemm_format,
    is_matrix_work,
    is_one_of_a_pass,
    is_polled_kernel,
    is_simt_gemm,
    kind_of,
    may_be_persistent,
    pass_of,
    quantize_format,
    wide_format,
)
from traces.names.mangled import beside, readable
from traces.names.ranges import family, is_step_name

CORPUS = DATA / "kernel_names.csv"
TRUNCATED = "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::ker"


def labelled() -> list[dict[str, str]]:
    with CORPUS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_labelled_name_gets_its_class_and_all_but_one_its_subclass() -> None:
    rows = labelled()
    assert len(rows) == 675
    assert [row["name"] for row in rows if classify_kernel(row["name"]).class_ != row["class"]] == []
    wrong = [row["name"] for row in rows if classify_kernel(row["name"]).subclass != row["subclass"]]
    assert wrong == [TRUNCATED]


def test_words_that_others_use_otherwise_give_no_class() -> None:
    assert classify_kernel("render(vec3 *, curandStateXORWOW *)") == classify_kernel("iamax_kernel<double>")
    assert classify_kernel("void gen_sequenced<curandStateXORWOW, float2>(float2 *)").class_ == "rng"


_CASTS: Final = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul", "long long": "ll"}


def in_kineto(name: str) -> str:
    """A kernel's name as the PyTorch profiler spells what nsys spells so."""
    name = name.replace("<unnamed>", "(anonymous namespace)")
    name = re.sub(r"\(bool\)([01])", lambda found: ("false", "true")[int(found[1])], name)
    casts = "|".join(_CASTS)
    return re.sub(rf"\(({casts})\)(-?\d+)", lambda found: found[2] + _CASTS[found[1]], name)


def read(name: str) -> tuple[object, ...]:
    """All that a name alone tells of a kernel."""
    kernel = classify_kernel(name)
    ways = (pass_of, wide_format, is_simt_gemm, is_matrix_work)
    alone = (gemm_format, quantize_format, is_one_of_a_pass, is_polled_kernel, may_be_persistent)
    return kernel, *(way(name, kernel) for way in ways), *(way(name) for way in alone)


def test_every_known_name_is_the_same_kernel_in_either_spelling() -> None:
    names = [row["name"] for row in labelled()]
    apart = [name for name in names if in_kineto(name) != name]
    assert len(apart) > 50
    assert [name for name in apart if read(in_kineto(name)) != read(name)] == []


@pytest.mark.parametrize(
    ("mangled", "demangled"),
    [
        ("_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4Pf",
         "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)"),
        ("_ZN9hybrid_ep18device_sync_kernelILi8EEEvPi", "void hybrid_ep::device_sync_kernel<8>(int*)"),
        ("_ZN12_GLOBAL__N_113combineKernelILj10EEEvPf",
         "void (anonymous namespace)::combineKernel<10u>(float*)"),
        ("_ZL12fused_kernelPf", "fused_kernel(float*)"),
    ],
)  # fmt: skip
def test_a_mangled_name_is_classed_as_the_demangled_one(mangled: str, demangled: str) -> None:
    assert classify_kernel(mangled) == classify_kernel(demangled)


@given(st.text(max_size=40).map("_ZN{}".format))
def test_what_only_begins_like_a_mangled_name_is_read_too(name: str) -> None:
    assert isinstance(readable(name), str)


@pytest.mark.parametrize(
    ("name", "subclass"),
    [
        ("void pplx::a2a_combine_recv_kernel<8, __nv_bfloat16>(unsigned long, __nv_bfloat16*)", "ep_combine"),
        (
            "void mori::moe::EpDispatchInterNodeV1Kernel<float>(mori::moe::EpDispatchCombineArgs<float>)",
            "ep_dispatch",
        ),
        ("EpDispatchLowLatencyAsyncSendCopyMultiBlock_bf16", "ep_dispatch"),
        ("EpCombineSyncBarrier_bf16", "ep_sync"),
        ("mori_ConvertDispatchOutputKernel", "ep_layout"),
        ("ncclDevKernel_AllToAll(ncclDevKernelArgsStorage<4096ul>)", "all_to_all"),
        ("OneShotAll2allSdmaKernel_u32", "all_to_all"),
    ],
)
def test_kernels_of_every_expert_library_are_communication(name: str, subclass: str) -> None:
    kernel = classify_kernel(name)
    assert (kernel.class_, kernel.subclass) == ("comm", subclass)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", "sendrecv_unresolved"),
        ("void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(T1 *)", "ep_dispatch"),
        ("void deep_ep::intranode::notify_dispatch<(int)8>(const int *)", "ep_control"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "other_comm"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<(int)4>(int, int)", "tp"),
    ],
)
def test_a_name_alone_never_claims_a_purpose_it_does_not_state(name: str, kind: str) -> None:
    assert kind_of(classify_kernel(name).subclass) == kind


def test_a_name_no_rule_knows_is_other_and_says_so() -> None:
    kernel = classify_kernel("my_own_kernel_42(int)")
    assert (kernel.class_, kernel.rule) == ("other", None)


STEPS = (
    *("iteration 17", "Iteration: 3", "train_step_12", "ProfilerStep#4", "step 9", "global_step=100", "step"),
    *("iter_5", "execute_context_1(888_788544)_generation_0(0)", "execute_16_context_0(sq0)_gen_1"),
    *("step[DECODE bs=16]", "[Executor] _forward_step 12: 3 ctx reqs, 16 gen reqs", "token_12"),
    *("token_3_generation", "decode_step", "pass 9", "training_pass_3", "benchmark trial 2"),
)
NO_STEPS = (
    *("aten::step", "stepper 3", "forward", "layer_12", "optimizer.step#Adam.step", "3", "execute_kernel"),
    *("num_tokens=512", "tokens 512", "layer_3_token_5", "token_3_forward", "optimizer step: 3"),
    *("warmup pass 3", "forward pass 3", "pass", "bypass 3"),
)


def test_step_names() -> None:
    assert [text for text in (*STEPS, *NO_STEPS) if is_step_name(text)] == [*STEPS]


def test_a_family_forgets_the_number() -> None:
    assert family("iteration 3") == family("iteration 4") == "iteration N"


def test_of_two_names_what_differs_stays_where_they_are_cut() -> None:
    names = [f"void cutlass::Kernel<cutlass_{arch}_f16_align{arch // 10}>" for arch in (80, 75)]
    assert [beside(names[at], names[1 - at], 30) for at in (0, 1)] == [
        "cutlass...80...align8",
        "cutlass...75...align7",
    ]
    assert beside("void sgemm_8(int)", "void sgemm_1(int)", 40) == "sgemm_8(int)"
    assert beside("a" * 41, "b", 40) == "a" * 37 + "..."
