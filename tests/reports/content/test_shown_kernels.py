"""A kernel is shown by a name that one can search for in Nsight."""

from __future__ import annotations

import pytest

from reports.content.names import kernel_name


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(T)", "reduce_kernel ReduceOp"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6>(int)", "dgrad_engine"),
        ("void xmma_cudnn::gemm::kernel<xmma_cudnn::implicit_gemm::wgrad_indexed::Kernel_traits<T>>",
         "wgrad_indexed"),
        ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<tanh_kernel>>",
         "tanh_kernel"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, __half, cublasGemvParams<T>>(T)",
         "cublasGemvParams"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi64EEEvPT0_PT_", "add_rmsnorm_quant_kernel"),
        ("CodeGen::kernel1(CodeGen::Tensor<float>)", "kernel1"),
    ],
)  # fmt: skip
def test_a_shared_template_argument_stands_behind_its_function(recorded: str, shown: str) -> None:
    assert kernel_name(recorded) == shown
