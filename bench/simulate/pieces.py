"""What one fused kernel does in several of PyTorch's own: norms, rotary embedding, activations, Adam.

Shares are of the fused kernel's time: each piece is a pass over memory of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

Pieces = tuple[tuple[str, float], ...]
"""Kernels in order, each with its share of the fused kernel's time."""

SMALL: Final[Mapping[str, Pieces]] = {
    "norm_fwd": (("pow", 0.35), ("mean", 0.3), ("rsqrt", 0.05), ("mul", 0.55), ("mul", 0.55)),
    "norm_bwd": (("mul", 0.5), ("mul", 0.5), ("mean", 0.35), ("mul", 0.5), ("add", 0.5)),
    "norm_bwd_finalize": (("sum", 1.4),),
    "rope_fwd": (("neg", 0.25), ("cat", 0.35), ("mul", 0.4), ("mul", 0.4), ("add", 0.4)),
    "rope_bwd": (("neg", 0.25), ("cat", 0.35), ("mul", 0.4), ("mul", 0.4), ("add", 0.4)),
    "activation_fwd": (("silu", 0.7), ("mul", 0.7)),
    "activation_bwd": (("silu_bwd", 0.8), ("mul", 0.7), ("mul", 0.6)),
}
"""Small kernels of a layer, as a model of plain PyTorch runs them."""

ADAM: Final[Mapping[str, Pieces]] = {
    "fused": (("adam", 1.0),),
    "foreach": (
        ("foreach_mul", 0.25),
        ("foreach_lerp", 0.35),
        ("foreach_mul", 0.25),
        ("foreach_addcmul", 0.35),
        ("foreach_sqrt", 0.25),
        ("foreach_div", 0.25),
        ("foreach_addcdiv", 0.45),
    ),
}
"""One pass over parameters, gradients and both moments, or one for each line of Adam."""


def pieces_of(kernel: str, *, unfused: bool) -> Pieces:
    """A small kernel itself, or what stands for it."""
    return SMALL.get(kernel, ((kernel, 1.0),)) if unfused else ((kernel, 1.0),)


_ATEN: Final = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::"
_ONE: Final = "std::array<char *, (unsigned long)2>>(int, T2, T3)"
_TWO: Final = "std::array<char *, (unsigned long)3>>(int, T2, T3)"
_ON_BF16: Final = "(at::TensorIteratorBase &)::[lambda(c10::BFloat16) (instance 1)], "
_REDUCE: Final = (
    "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::{}<float, "
    "float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)"
)
_FOREACH: Final = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
_SCALAR: Final = "TensorListMetadata<(int)1>, at::native::<unnamed>::"
_POINTWISE: Final = "TensorListMetadata<(int)3>, at::native::<unnamed>::PointwiseOpScalarFunctor"

NAMES: Final[Mapping[str, str]] = {
    "pow": f"{_ATEN}<unnamed>::pow_tensor_scalar_kernel_impl<float, float>{_ON_BF16}{_ONE}",
    "mean": _REDUCE.format("MeanOps"),
    "sum": _REDUCE.format("func_wrapper_t"),
    "rsqrt": f"{_ATEN}rsqrt_kernel_cuda{_ON_BF16}{_ONE}",
    "mul": f"{_ATEN}BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    f"at::native::binary_internal::MulFunctor<float>>, {_TWO}",
    "neg": f"{_ATEN}neg_kernel_cuda{_ON_BF16}{_ONE}",
    "cat": "void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned "
    "int)2>, unsigned int, (int)4, (int)64, (int)64>(T1 *, at::native::<unnamed>::CatArrInputTensorMetadata"
    "<T1, T2, T4, T5>, at::native::<unnamed>::TensorSizeStride<T2, (unsigned int)4>, int, T2)",
    "silu": f"{_ATEN}<unnamed>::silu_kernel{_ON_BF16}{_ONE}",
    "silu_bwd": f"{_ATEN}<unnamed>::silu_backward_kernel{_ON_BF16}{_TWO}",
    "cast": f"{_ATEN}bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) (instance 1)], "
    f"{_ONE}",
    "cast_back": "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase &)::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>, (int)4, "
    "TrivialOffsetCalculator<(int)1, unsigned int>, TrivialOffsetCalculator<(int)1, unsigned int>, "
    "at::native::memory::LoadWithCast<(int)1>, at::native::memory::StoreWithCast<(int)1>>"
    "(int, T1, T2, T4, T5, T6, T7)",
    "foreach_mul": f"{_FOREACH}{_SCALAR}BinaryOpScalarFunctor<float, (int)1, (int)1, (int)0>, "
    "std::multiplies<float>, float>(T1, T2, T3...)",
    "foreach_lerp": f"{_FOREACH}TensorListMetadata<(int)2>, at::native::<unnamed>::TernaryOpScalarFunctor"
    "<float, (int)2, (int)2, (int)0>, at::native::LerpFunctor<float>, float>(T1, T2, T3...)",
    "foreach_addcmul": f"{_FOREACH}{_POINTWISE}<float, (int)3, (int)3, (int)0>, std::multiplies<float>, "
    "float>(T1, T2, T3...)",
    "foreach_sqrt": f"{_FOREACH}TensorListMetadata<(int)2>, at::native::<unnamed>::UnaryOpFunctor<float, "
    "(int)2, (int)1, (int)1>, at::native::Sqrt<float>>(T1, T2, T3...)",
    "foreach_div": f"{_FOREACH}{_SCALAR}BinaryOpScalarListFunctor<float, (int)1, (int)1, (int)0>, "
    "std::divides<float>>(T1, T2, T3...)",
    "foreach_addcdiv": f"{_FOREACH}TensorListScalarListMetadata<float, (int)3>, at::native::<unnamed>::"
    "PointwiseOpScalarListFunctor<float, (int)3, (int)3, (int)0>, std::divides<float>>(T1, T2, T3...)",
}
"""Names as in real traces of PyTorch 2; those of a part that only says what it does."""
