"""Kernels as nsys names them, by the part they play in a step: names, launch calls, blocks, registers.

Names are those of real traces and sources (`tests/data/kernel_names.csv`, each with its source); registers
and shared memory are plausible, not measured. Which kernel plays a part depends on the GPU and the precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from bench.simulate.pieces import NAMES


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: its demangled name, the call that launches it and the shape of its blocks.

    `persistent`: its blocks stay on the SMs, so it launches at most one per SM. `multiplies_in`: what its
    matrices are in, a name of `GpuModel.peaks`, and `could_in` in what they could be; bf16 of all that have
    none as well.
    """

    name: str
    api: str = "cudaLaunchKernel_v7000"
    threads: int = 256
    registers: int = 40
    shared_bytes: int = 0
    persistent: bool = False
    multiplies_in: str = "bf16"
    could_in: str = "bf16"


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU model as an export lists it, and how fast it is beside an H100.

    The factors are those of the guides' pitfall: faster math and links on an unchanged host. They are
    round ratios of data-sheet peaks (dense BF16 and NVLink), not measurements. `peaks`: dense TFLOP/s by
    format, of the data sheets; FP32 without tensor cores, 3xtf32 with three products in TF32 for one.
    """

    name: str
    sm_count: int
    capability: tuple[int, int]
    memory_bytes: int
    compute_times: float
    link_times: float
    peaks: Mapping[str, float]


def _peaks(bf16: float, tf32: float, fp32: float) -> Mapping[str, float]:
    return {"bf16": bf16, "tf32": tf32, "3xtf32": tf32 / 3, "fp32": fp32}


GPUS: Final[Mapping[str, GpuModel]] = {
    "A100": GpuModel("NVIDIA A100-SXM4-80GB", 108, (8, 0), 80 << 30, 0.32, 0.67, _peaks(312, 156, 19.5)),
    "H100": GpuModel("NVIDIA H100 80GB HBM3", 132, (9, 0), 80 << 30, 1.0, 1.0, _peaks(989.5, 494.5, 67)),
    "GB200": GpuModel("NVIDIA GB200", 148, (10, 0), 186 << 30, 2.5, 8.0, _peaks(2500, 1250, 80)),
}
"""The guides' GPUs. Link of the GB200: expert parallelism that crossed nodes on H100 stays within NVLink."""

_EX: Final = "cuLaunchKernelEx"
_TE: Final = "transformer_engine::"
_ATEN: Final = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::"
_FOREACH: Final = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
_FUSED_ADAM: Final = (
    f"{_FOREACH}FusedOptimizerTensorListMetadata<(int)4>, "
    "at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4, (at::native::ADAM_MODE)1, (bool)0>>(T1, T2)"
)
_L2_NORM: Final = (
    f"{_FOREACH}TensorListMetadata<(int)1>, at::native::<unnamed>::LpNormFunctor<float, "
    "(at::native::NormType)1, float, (int)1, (int)1, (int)0>>(T1, T2)"
)


def _nccl(operation: str) -> Kernel:
    name = f"ncclDevKernel_{operation}(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    return Kernel(name, _EX, 544, 96, 82_000)


def _grouped(generation: str) -> Kernel:
    shape = "cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int>>"
    universal = f"cutlass::gemm::kernel::GemmUniversal<{shape}, {generation}>"
    name = f"void cutlass::device_kernel<{universal}>(T1::Params)"
    return Kernel(name, _EX, 384, 168, 214_000, persistent=True)


def _gemm(name: str) -> Kernel:
    return Kernel(name, _EX, 384, 168, 213_000, persistent=True)


_COMMON: Final[Mapping[str, Kernel]] = {
    "dali": Kernel(
        "void dali::kernels::transforms::SliceFlipNormalizePermutePadKernel<float, unsigned char, 3>()"
    ),
    "norm_fwd": Kernel(f"{_TE}normalization::rmsnorm_fwd_tuned_kernel", threads=128, registers=64),
    "norm_bwd": Kernel(f"{_TE}normalization::rmsnorm_bwd_tuned_kernel", threads=128, registers=96),
    "norm_bwd_finalize": Kernel(f"{_TE}normalization::rmsnorm_bwd_finalize_general_kernel", threads=128),
    "rope_fwd": Kernel("fused_rope_forward_kernel"),
    "rope_bwd": Kernel("fused_rope_backward_kernel"),
    "attention_bwd_dot": Kernel("cudnn::fusion::compute_dot_do_o_specialized<true, 128>", threads=128),
    "add": Kernel(
        f"{_ATEN}CUDAFunctor_add<c10::BFloat16>, std::array<char *, (unsigned long)3>>(int, T2, T3)"
    ),
    "scale": Kernel(
        f"{_ATEN}BUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>, "
        "std::array<char *, (unsigned long)2>>(int, T2, T3)"
    ),
    "torch": Kernel(
        f"{_ATEN}BinaryFunctor<float, float, float, at::native::binary_internal::DivFunctor<float>>, "
        "std::array<char *, (unsigned long)3>>(int, T2, T3)"
    ),
    "fill": Kernel(f"{_ATEN}FillFunctor<long>, std::array<char *, (unsigned long)1>>(int, T2, T3)"),
    "topk_fwd": Kernel("fused_topk_with_score_function_forward_kernel", threads=128),
    "topk_bwd": Kernel("fused_topk_with_score_function_backward_kernel", threads=128),
    "aux_loss_fwd": Kernel("fused_moe_aux_loss_forward_kernel", threads=1024),
    "aux_loss_bwd": Kernel("fused_moe_aux_loss_backward_kernel", threads=1024),
    "multihot": Kernel("_indices_to_multihot_kernel", _EX, 128),
    "row_id_map": Kernel("_row_id_map_pass_1_kernel", _EX, 128),
    "permute": Kernel("_permute_kernel", _EX, 128),
    "unpermute": Kernel("_unpermute_kernel", _EX, 128),
    "unpermute_bwd": Kernel("_unpermute_bwd_with_merging_probs_kernel", _EX, 128),
    "sort_chunks": Kernel("_sort_chunks_by_map_kernel", _EX, 128),
    "activation_fwd": Kernel("scaled_gated_forward_kernel", threads=512),
    "activation_bwd": Kernel("scaled_gated_backward_kernel", threads=512),
    "embedding_fwd": Kernel("embedding_forward_kernel", _EX),
    "embedding_bwd": Kernel("embedding_backward_kernel", _EX),
    "loss_softmax": Kernel("online_softmax_kernel", _EX, 1024),
    "loss_fwd": Kernel("cross_entropy_kernel", _EX, 1024),
    "loss_bwd": Kernel("element_mul_kernel", _EX, 1024),
    "l2norm": Kernel(_L2_NORM, threads=512),
    "l2norm_cleanup": Kernel("cleanup_v2", threads=512),
    "adam": Kernel(_FUSED_ADAM, threads=512, registers=48),
    **{part: Kernel(name) for part, name in NAMES.items()},
    "nccl_broadcast": _nccl("Broadcast_RING_LL"),
    "nccl_send_recv": _nccl("SendRecv"),
    "nccl_all_gather": _nccl("AllGather_RING_LL"),
    "nccl_reduce_scatter": _nccl("ReduceScatter_Sum_bf16_RING_LL"),
    "nccl_all_reduce": _nccl("AllReduce_Sum_f32_RING_LL"),
    "deepep_layout": Kernel(
        "void deep_ep::layout::get_dispatch_layout<(int)256, (int)4, (int)2>(const long *, int *, int *, "
        "int *, bool *, int, int, int, int)",
        _EX,
    ),
    "deepep_notify_dispatch": Kernel(
        "void deep_ep::intranode::notify_dispatch<(int)8>(const int *, int *, const int *, int *, int, int, "
        "int, const bool *, int *, int *, int, int, void **, int **, int)",
        _EX,
        128,
    ),
    "deepep_cached_notify_dispatch": Kernel(
        "void deep_ep::intranode::cached_notify_dispatch<(int)8>(const int *, int, void **, int **, int)",
        _EX,
        128,
    ),
    "deepep_dispatch": Kernel(
        "void deep_ep::intranode::dispatch<(int)8, (int)768, (int)8192>(int4 *, float *, int *, long *, "
        "float *, int *, int *, const int4 *, const float *, const long *)",
        _EX,
        768,
        64,
        196_608,
    ),
    "deepep_cached_notify_combine": Kernel(
        "void deep_ep::intranode::cached_notify_combine<(int)8>(void **, int *, int, int, int, int **, int)",
        _EX,
        128,
    ),
    "deepep_combine": Kernel(
        "void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)768, (int)4096>(T1 *, float *, "
        "const T1 *, const float *, const T1 *, const T1 *)",
        _EX,
        768,
        64,
        98_304,
    ),
    "hybridep_gather_map": Kernel("ag_nvl_kernel(bool *, bool *, unsigned long *)", _EX, 1024),
    "hybridep_scan": Kernel("void hybrid_ep::scan<(int)256, (int)8>(const bool *, int *, int *)", _EX, 256),
    "hybridep_sync": Kernel(
        "void hybrid_ep::device_sync_kernel<(int)8>(unsigned int *, unsigned int)", _EX, 32
    ),
    "hybridep_expected": Kernel(
        "hybrid_ep::update_expected_value_kernel(unsigned long *, unsigned int *)", _EX, 32
    ),
    "hybridep_dispatch_fwd": Kernel(
        "void hybrid_ep::dispatch_kernel<unsigned short, (int)4, (int)8, (bool)1>(dispatch_param_t)",
        _EX,
        512,
        128,
        196_608,
    ),
    "hybridep_dispatch_bwd": Kernel(
        "void hybrid_ep::dispatch_kernel<unsigned short, (int)4, (int)8, (bool)0>(dispatch_param_t)",
        _EX,
        512,
        128,
        196_608,
    ),
    "hybridep_combine_fwd": Kernel(
        "void hybrid_ep::combine_kernel<(int)4, (int)8, (bool)0>(combine_param_t)",
        _EX,
        512,
        128,
        196_608,
    ),
    "hybridep_combine_bwd": Kernel(
        "void hybrid_ep::combine_kernel<(int)4, (int)8, (bool)1>(combine_param_t)",
        _EX,
        512,
        128,
        196_608,
    ),
    "hybridep_permute": Kernel(
        "void permute_kernel<__nv_bfloat16>(T1 *, const T1 *, const int *, int)", _EX, 512
    ),
    "hybridep_unpermute": Kernel(
        "void unpermute_kernel<__nv_bfloat16>(T1 *, const T1 *, const int *, int)", _EX, 512
    ),
}

_SDPA: Final = "cudnn_generated_{}_knob_{}_cga1x1x1_kernel0_0"
_BY_GPU: Final[Mapping[str, Mapping[str, Kernel]]] = {
    "A100": {
        "gemm_fwd": Kernel("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", registers=238),
        "gemm_dgrad": Kernel("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", registers=238),
        "gemm_wgrad": Kernel("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nt", registers=238),
        "attention_fwd": Kernel(
            _SDPA.format("fort_native_sdpa_sm80_flash_fprop_wmma_f16", "6_128x64x64_4x1x1"),
            threads=128,
            registers=255,
        ),
        "attention_bwd": Kernel(
            _SDPA.format("fort_native_sdpa_sm80_flash_bprop_wmma_f16", "2_64x128x64_1x4x1"),
            threads=128,
            registers=255,
        ),
    },
    "H100": {
        "gemm_fwd": _gemm("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN"),
        "gemm_dgrad": _gemm("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT"),
        "gemm_wgrad": _gemm("nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NTN"),
        "attention_fwd": Kernel(
            _SDPA.format("oss_sdpa_sm90_flash_fprop_wgmma_f16", "7_64x128x128_4x1x1"), _EX, 384, 168, 200_000
        ),
        "attention_bwd": Kernel(
            _SDPA.format("fort_native_sdpa_sm90_flash_bprop_wgmma_f16", "26_64x64x128_1x4x1"),
            _EX,
            384,
            168,
            200_000,
        ),
    },
    "GB200": {
        "gemm_fwd": _gemm("nvjet_sm100_tst_176x128_64x8_1x2_2cta_h_bz_TNN"),
        "gemm_dgrad": _gemm("nvjet_sm100_tst_176x128_64x8_1x2_2cta_h_bz_NNT"),
        "gemm_wgrad": _gemm("nvjet_sm100_tst_176x128_64x8_1x2_2cta_h_badd_NTN"),
        "attention_fwd": Kernel(
            _SDPA.format("oss_sdpa_sm100_flash_fprop_f16", "7_128x128x128_4x1x1"), _EX, 512, 128, 220_000
        ),
        "attention_bwd": Kernel(
            _SDPA.format("oss_sdpa_sm100_flash_bprop_f16", "7_128x128x128_4x1x1"), _EX, 512, 128, 220_000
        ),
    },
}
_QUANTIZE: Final[Mapping[str, Kernel]] = {
    "A100": Kernel("cast_transpose_fusion_kernel_optimized", registers=56),
    "H100": Kernel("block_scaled_1d_cast_transpose_kernel", registers=56, shared_bytes=16_384),
    "GB200": Kernel("quantize_mxfp8_kernel", threads=128, registers=56, shared_bytes=16_384),
}
_FP8_GEMM: Final[Mapping[str, str]] = {
    "H100": "nvjet_sm90_qqtst_128x128_128x6_1x2_h_bz_ovscale_{}",
    "GB200": "nvjet_qqtst_128x256_128x6_2x2_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_{}",
}
_LAYOUT: Final = {"gemm_fwd": "TNT", "gemm_dgrad": "NNT", "gemm_wgrad": "NTT"}
_GENERATION: Final = {
    "A100": "cutlass::arch::Sm80",
    "H100": "cutlass::arch::Sm90",
    "GB200": "cutlass::arch::Sm100",
}


def _fp32(name: str, of: str = "fp32") -> Kernel:
    return Kernel(name, threads=256, registers=128, shared_bytes=36_864, multiplies_in=of)


_XMMA: Final = (
    "sm80_xmma_{}_f32f32_f32f32_f32_{}_tilesize128x128x8_stage3_warpsize2x2x1_{}ffma_aligna4_alignc4"
)
_SIMT: Final = _XMMA.format("gemm", "{}_n", "") + "_execute_kernel__5x_cublas"
_CONVOLVES: Final = _XMMA.format("{}_implicit_gemm", "nhwckrsc_nhwc", "g1_") + "_execute_kernel__5x_cudnn"
_S1688: Final = "cutlass_80_tensorop_s1688gemm_128x128_32x3_{}_align4"
_TF32: Final = f"void cutlass::Kernel<{_S1688}>({_S1688}::Params)"
_ATTENTION: Final = (
    "fmha_cutlass{}_sm80(PyTorchMemEffAttention::{}<float, cutlass::arch::Sm80, true, {}>::Params)"
)
_LAYOUTS: Final = {"gemm_fwd": "tn", "gemm_dgrad": "nn", "gemm_wgrad": "nt"}
_DIRECTIONS: Final = {"gemm_fwd": "fprop", "gemm_dgrad": "dgrad", "gemm_wgrad": "wgrad"}
_FP32_ATTENTION: Final = {
    "attention_fwd": _fp32(
        _ATTENTION.format("F_f32_aligned_64x64_rf", "AttentionKernel", "64, 64, 64, true, true"), "3xtf32"
    ),
    "attention_bwd": _fp32(
        _ATTENTION.format("B_f32_aligned_64x64_k64", "AttentionBackwardKernel", "false, false, 64, 64, 64"),
        "3xtf32",
    ),
}
_WITHOUT_BF16: Final[Mapping[str, Mapping[str, Kernel]]] = {
    "bf16": {},
    "fp32": _FP32_ATTENTION
    | {part: replace(_fp32(_SIMT.format(of)), could_in="tf32") for part, of in _LAYOUTS.items()},
    "convolution": _FP32_ATTENTION | {part: _fp32(_CONVOLVES.format(of)) for part, of in _DIRECTIONS.items()},
    "tf32": _FP32_ATTENTION | {part: _fp32(_TF32.format(of, of), "tf32") for part, of in _LAYOUTS.items()},
}
"""By `Knobs.precision`: attention, and what stands for every matrix product.

By the definition TF32 takes away what SIMT GEMMs lose, and BF16 what all others do.
"""


@cache
def kernels_of(gpu: str, fp8: bool, grouped: bool, precision: str = "bf16") -> Mapping[str, Kernel]:
    """Kernels by the part they play, on a GPU of `GPUS`; `grouped`: one GEMM for all experts of a rank."""
    chosen = {**_COMMON, **_BY_GPU[gpu], "quantize": _QUANTIZE[gpu], **_WITHOUT_BF16[precision]}
    dense = {part: chosen[part] for part in _LAYOUT}
    if fp8 and gpu in _FP8_GEMM:
        dense = {part: replace(dense[part], name=_FP8_GEMM[gpu].format(_LAYOUT[part])) for part in dense}
    grouped = grouped and precision == "bf16"
    experts = {
        part: _grouped(f"{_GENERATION[gpu]}, {part[5:]}") if grouped else dense[part] for part in dense
    }
    return chosen | dense | {f"expert_{part}": kernel for part, kernel in experts.items()}
