"""Whose run a recording shows, and that a run which is not Megatron's gets none of its flags."""

from __future__ import annotations

import pytest

from tests.doubles.document import GEMM
from traces.names.frameworks import Framework, framework_by_names


@pytest.mark.parametrize(
    ("what", "name", "framework"),
    [
        ("kernels", "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<T>(P)", "megatron"),
        ("kernels", "_sort_chunks_by_map_kernel", "megatron"),
        ("kernels", "_indices_to_multihot_kernel", "megatron"),
        ("ranges", "layer_3f-layer_5b", "megatron"),
        ("ranges", "nvte_cublas_gemm_v2", "megatron"),
        ("ranges", "FusedDispatchBackward", "megatron"),
        ("groups", "EXPERT_MODEL_PARALLEL_GROUP", "megatron"),
        ("groups", "mesh_ep", "none"),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)", "pytorch"),
        ("kernels", "triton_poi_fused_mul_silu_2", "pytorch"),
        ("ranges", "aten::linear, op_id = 7", "pytorch"),
        ("ranges", "ProfilerStep#3", "pytorch"),
        ("threads", "pt_autograd_0", "pytorch"),
        ("kernels", "loop_add_fusion_3", "jax"),
        ("kernels", "fusion_12", "jax"),
        ("kernels", "input_transpose_fusion", "jax"),
        ("kernels", "wrapped_transpose_2", "jax"),
        ("kernels", "triton_gemm_dot_12", "jax"),
        ("kernels", "triton_gemm_kernel", "none"),
        ("kernels", "triton_softmax_kernel", "none"),
        ("kernels", "rope_fusion", "none"),
        ("kernels", "bias_swiglu_fusion", "none"),
        ("ranges", "jit(train_step)", "jax"),
        ("ranges", "my.jit(model)", "none"),
        ("ranges", "TSL:XlaModule:#hlo_module=jit_step,program_id=7#", "jax"),
        ("kernels", "void tensorflow::BiasNHWCKernel<float>(int)", "tensorflow"),
        ("kernels", "void Eigen::internal::EigenMetaKernel<E>(E, int)", "tensorflow"),
        ("kernels", "cast_transpose_fusion_kernel_optimized", "none"),
        ("kernels", "void deep_ep::intranode::dispatch<8, 768>(int4*)", "none"),
        ("kernels", "saxpy(double *, double *, int)", "none"),
        ("kernels", GEMM, "none"),
        ("ranges", "iteration 3", "none"),
    ],
)
def test_names_that_only_one_framework_has_show_it(what: str, name: str, framework: Framework) -> None:
    assert framework_by_names({what: [name]}) == framework


def test_megatron_stands_on_pytorch_and_transformer_engine_runs_under_jax_too() -> None:
    engine, native = "transformer_engine::cast", "at::native::copy"
    assert framework_by_names({"kernels": [native, engine]}) == "megatron"
    assert framework_by_names({"kernels": [engine, "loop_fusion"]}) == "jax"


@pytest.mark.parametrize(
    "kernel",
    ["triton_gemm_kernel", "triton_softmax_kernel", "rope_fusion", "bias_swiglu_fusion", "loop_fusion"],
)
@pytest.mark.parametrize("range_", ["torch.jit(model)", "jit(model)"])
def test_where_pytorchs_kernels_run_no_name_makes_it_jax(kernel: str, range_: str) -> None:
    native, engine = "void at::native::vectorized_elementwise_kernel<4, F>(int)", "transformer_engine::cast"
    assert framework_by_names({"kernels": [kernel, native], "ranges": [range_]}) == "pytorch"
    assert framework_by_names({"kernels": [kernel, native, engine], "ranges": [range_]}) == "megatron"
