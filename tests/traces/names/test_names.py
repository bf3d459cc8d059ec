"""Kernel and range names against the labelled corpus."""

from __future__ import annotations

import csv

import pytest

from tests.places import DATA
from traces.names.kernels import (
    COMM_KINDS,
    classify_kernel,
    comm_kind,
    compute_class,
    compute_classes,
    is_communication,
)
from traces.names.ranges import family, is_step_name

CORPUS = DATA / "kernel_names.csv"
TRUNCATED = "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::ker"


def labelled() -> list[dict[str, str]]:
    with CORPUS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_labelled_name_gets_its_class_and_all_but_one_its_subclass() -> None:
    rows = labelled()
    assert len(rows) == 632
    assert [row["name"] for row in rows if classify_kernel(row["name"]).class_ != row["class"]] == []
    wrong = [row["name"] for row in rows if classify_kernel(row["name"]).subclass != row["subclass"]]
    assert wrong == [TRUNCATED]


def test_both_spellings_of_the_anonymous_namespace_are_one_name() -> None:
    nsys = "void <unnamed>::softmax_warp_forward<float, (int)9, (bool)0>(T1 *, const T1 *, int)"
    kineto = "void (anonymous namespace)::softmax_warp_forward<float, 9, false>(float*, float const*, int)"
    assert classify_kernel(nsys) == classify_kernel(kineto)
    assert classify_kernel(nsys).class_ == "softmax"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)", "sendrecv_unresolved"),
        ("void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(T1 *)", "ep_dispatch"),
        ("void deep_ep::intranode::combine<__nv_bfloat16, (int)8>(T1 *)", "ep_combine"),
        ("void deep_ep::intranode::notify_dispatch<(int)8>(const int *)", "ep_control"),
        ("void hybrid_ep::device_sync_kernel<(int)8>(T1 *)", "ep_control"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "other_comm"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "other_comm"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<(int)4>(int, int)", "tp"),
    ],
)
def test_a_name_alone_never_claims_a_purpose_it_does_not_state(name: str, kind: str) -> None:
    assert comm_kind(classify_kernel(name)) == kind


def test_grouped_gemm_is_a_class_of_its_own() -> None:
    assert compute_class(classify_kernel("void fused_moe_kernel<x>()")) == "grouped_gemm"
    assert compute_class(classify_kernel("nvjet_tst_128x256_64x4_2x1_v_bz_TNT")) == "gemm"


def test_every_labelled_name_has_a_key_of_the_contract() -> None:
    for row in labelled():
        kernel = classify_kernel(row["name"])
        if is_communication(kernel):
            assert comm_kind(kernel) in COMM_KINDS
        else:
            assert compute_class(kernel) in compute_classes()


def test_a_name_no_rule_knows_is_other_and_says_so() -> None:
    kernel = classify_kernel("my_own_kernel_42(int)")
    assert (kernel.class_, kernel.rule) == ("other", None)


@pytest.mark.parametrize(
    "text",
    [
        "iteration 17",
        "Iteration: 3",
        "train_step_12",
        "ProfilerStep#4",
        "step 9",
        "global_step=100",
        "step",
        "iter_5",
        "execute_context_1(888_788544)_generation_0(0)",
    ],
)
def test_step_names(text: str) -> None:
    assert is_step_name(text)


@pytest.mark.parametrize(
    "text", ["aten::step", "stepper 3", "forward", "layer_12", "optimizer.step#Adam.step", "3"]
)
def test_names_that_are_no_step(text: str) -> None:
    assert not is_step_name(text)


def test_a_family_forgets_the_number() -> None:
    assert family("iteration 3") == family("iteration 4") == "iteration N"
