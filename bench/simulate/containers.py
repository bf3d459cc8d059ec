"""The same kernels as another container names them: other releases of cuBLAS, cuDNN, Triton, ATen and NCCL.

The work is the same, so a run in another container changes no time by its names. Names are of real traces and
sources, those of an H100; parts that are not listed keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench.simulate.kernels import Kernel

_XMMA: Final = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_{}_n_tilesize128x{}x64_warpgroupsize1x1x1_execute_segment_k_off_"
    "kernel__5x_cublas"
)
_TRAITS: Final = "(int)128, (int)128, (int)64, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t>, (bool)0"
_GROUPED: Final = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<"
    "cute::tuple<int, int, int>>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::{}>, void>>"
    "(T1::Params)"
)
_ATEN: Final = "void at::native::vectorized_elementwise_kernel<(int)8, at::native::"
_ARRAY: Final = "at::detail::Array<char *, (int){}>>(int, T2, T3)"
_FOREACH: Final = (
    "void multi_tensor_apply_kernel<TensorListMetadata<(int){}>, {}>(long, int volatile *, T1, T2)"
)
_NCCL: Final = "ncclDevKernel_{}(ncclDevComm *, unsigned long, ncclWork *)"
_TE: Final = "void transformer_engine::"

_LIBRARIES: Final[Mapping[str, str]] = {
    "gemm_fwd": _XMMA.format("tn", 128),
    "gemm_dgrad": _XMMA.format("nn", 256),
    "gemm_wgrad": _XMMA.format("nt", 192),
    "expert_gemm_fwd": _GROUPED.format("KernelPtrArrayTmaWarpSpecializedCooperative, fwd"),
    "expert_gemm_dgrad": _GROUPED.format("KernelPtrArrayTmaWarpSpecializedPingpong, dgrad"),
    "expert_gemm_wgrad": _GROUPED.format("KernelPtrArrayTmaWarpSpecializedPingpong, wgrad"),
    "attention_fwd": f"void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<{_TRAITS}, (bool)1>"
    "(flash::Flash_fwd_params)",
    "attention_bwd": "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<"
    f"{_TRAITS}, (bool)1>(flash::Flash_bwd_params)",
    "attention_bwd_dot": "void flash::flash_bwd_dot_do_o_kernel<(bool)1, Flash_bwd_kernel_traits<(int)128, "
    "(int)64, (int)128, (int)8>>(flash::Flash_bwd_params)",
}
"""Another release of cuBLAS, CUTLASS and of what attention runs on."""

_REST: Final[Mapping[str, str]] = {
    "norm_fwd": f"{_TE}normalization::rmsnorm_fwd_general_kernel<__nv_bfloat16>(T1)",
    "norm_bwd": f"{_TE}normalization::rmsnorm_bwd_general_kernel<__nv_bfloat16>(T1)",
    "norm_bwd_finalize": f"{_TE}normalization::rmsnorm_bwd_finalize_tuned_kernel<__nv_bfloat16>(T1)",
    "rope_fwd": f"{_TE}fused_rope_forward_kernel<__nv_bfloat16>(T1)",
    "rope_bwd": f"{_TE}fused_rope_backward_kernel<__nv_bfloat16>(T1)",
    "add": f"{_ATEN}CUDAFunctor_add<c10::BFloat16>, {_ARRAY.format(3)}",
    "topk_fwd": f"{_TE}fused_router::fused_topk_with_score_function_forward_kernel<float>()",
    "topk_bwd": f"{_TE}fused_router::fused_topk_with_score_function_backward_kernel<float>()",
    "aux_loss_fwd": f"{_TE}fused_router::fused_moe_aux_loss_forward_kernel<float, int>()",
    "aux_loss_bwd": f"{_TE}fused_router::fused_moe_aux_loss_backward_kernel<float, int>()",
    "multihot": "_indices_to_multihot_kernel_0d1d",
    "row_id_map": "_row_id_map_pass_1_kernel_0d1d",
    "permute": "_permute_kernel_0d1d2d3d4d5d",
    "unpermute": "_unpermute_kernel_0d1d2d",
    "unpermute_bwd": "_unpermute_bwd_with_merging_probs_kernel_0d1d",
    "sort_chunks": "_sort_chunks_by_map_kernel_0d1d",
    "activation_fwd": f"{_TE}scaled_swiglu_forward_kernel<__nv_bfloat16>()",
    "activation_bwd": f"{_TE}scaled_swiglu_backward_kernel<__nv_bfloat16>()",
    "loss_softmax": "_online_softmax_kernel_0d1d",
    "loss_fwd": "_cross_entropy_kernel_0d1d",
    "loss_bwd": "_element_mul_kernel_0d",
    "l2norm": _FOREACH.format(1, "L2NormFunctor<float>, float *, float *, bool, int"),
    "l2norm_cleanup": "cleanup(float *, float *, float *, float *, bool, int)",
    "adam": _FOREACH.format(4, "AdamFunctor<float, float, int>, float, float, float"),
    "nccl_send_recv": _NCCL.format("SendRecv"),
    "nccl_all_gather": _NCCL.format("AllGather_RING_SIMPLE"),
    "nccl_reduce_scatter": _NCCL.format("ReduceScatter_Sum_bf16_RING_SIMPLE"),
    "nccl_all_reduce": _NCCL.format("AllReduce_Sum_f32_TREE_LL"),
    "deepep_dispatch": "void deep_ep::intranode::dispatch<(int)8, (int)1024, (int)8192>(int4 *, float *, "
    "int *, long *, float *)",
    "deepep_combine": "void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)1024, (int)4096>(T1 *)",
}
"""Another release of PyTorch, Transformer Engine, Triton, Apex and NCCL."""

_BY_CONTAINER: Final[Mapping[str, Mapping[str, str]]] = {
    "this": {},
    "libraries": _LIBRARIES,
    "all": {**_LIBRARIES, **_REST},
}


def named_in(container: str, kernels: Mapping[str, Kernel]) -> Mapping[str, Kernel]:
    """Kernels by their part, as a container names them: a value of `Knobs.container`."""
    names = _BY_CONTAINER[container]
    return {part: replace(one, name=names.get(part, one.name)) for part, one in kernels.items()}
