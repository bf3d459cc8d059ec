"""Matrix work in FP32 or TF32, by its name, and what 16 bits would make of it."""

from __future__ import annotations

import pytest

from traces.names.kernels import WideFormat, classify_kernel, wide_format
from traces.sizes.peaks import most_to_16_bits_frac, to_16_bits_frac


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("ampere_sgemm_128x64_tn", "fp32"),
        ("volta_scudnn_128x64_relu_small_nn_v1", "fp32"),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int)", "fp32"),
        ("void implicit_convolve_sgemm<float, float, 128, 5, 5>(int, int)", "fp32"),
        ("void implicit_convolve_sgemm<__half, __half, 128, 5, 5>(int, int)", None),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x128x8", "fp32"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16", "tf32"),
        ("sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128", None),
        (
            "void xmma_cudnn::gemm::kernel<implicit_gemm::wgrad::Kernel_traits<Ampere_hmma_tf32_traits>>",
            "tf32",
        ),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(T1::Params)", "tf32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128>(T1::Params)", None),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(AttentionKernel<float, arch::Sm80>::Params)", "3xtf32"),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm75(AttentionKernel<float, arch::Sm75>::Params)", "fp32"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(AttentionKernel<bfloat16_t>::Params)", None),
        ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1", None),
        ("igemm_fwd_gtcx3_nhwc_fp32_bx0_ex1_bt128x64x32", "fp32"),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32", None),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE", "fp32"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT64x64x16_SE", None),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", None),
        ("void at::native::vectorized_elementwise_kernel<4, float>(int, float)", None),
    ],
)
def test_the_name_of_matrix_work_tells_whether_it_is_wider_than_16_bits(
    name: str, wide: WideFormat | None
) -> None:
    assert wide_format(name, classify_kernel(name)) == wide


def test_a_rate_is_peak_now_over_peak_in_16_bits() -> None:
    assert to_16_bits_frac("Tesla V100-SXM2-16GB", "fp32") == 15.7 / 125
    assert to_16_bits_frac("NVIDIA A100-SXM4-80GB", "tf32") == 0.5
    assert to_16_bits_frac("NVIDIA A100-SXM4-80GB", "3xtf32") == 0.5 / 3
    assert to_16_bits_frac("Tesla V100-SXM2-16GB", "tf32") is None
    assert to_16_bits_frac(None, "fp32") is None


def test_of_a_generation_the_gpu_that_gains_least_bounds_the_rate() -> None:
    assert most_to_16_bits_frac("fp32", (7, 0), (7, 0)) == 15.7 / 125
    assert most_to_16_bits_frac("fp32", (7, 5), (7, 5)) == 13.4 / 53.8
    assert most_to_16_bits_frac("fp32", (6, 0), (6, 1)) is None


def test_without_a_highest_capability_newer_gpus_of_as_many_sms_bound_it_as_well() -> None:
    assert most_to_16_bits_frac("fp32", (7, 0), (8, 0), sm_count=80) == 15.7 / 125
    assert most_to_16_bits_frac("fp32", (7, 0), sm_count=80) == 52.2 / 104.4
    assert most_to_16_bits_frac("fp32", (7, 0), (7, 0), sm_count=1) == 15.7 / 125
