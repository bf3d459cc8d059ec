"""Names that tell something: frameworks, what a run does already, GPUs, wide formats, frames of a stack."""

from __future__ import annotations

import pytest

from diagnoser.options.given import given_from
from traces.errors import UsageError
from traces.names.frames import WITHHELD, Frame, FrameKind, public_frame, public_os_call, public_span
from traces.names.frameworks import Framework, framework_by_names
from traces.names.gpus import product_named
from traces.names.in_use import InUse, in_use
from traces.names.kernels import WideFormat, classify_kernel, wide_format
from traces.sizes.peaks import most_to_16_bits_frac, to_16_bits_frac


@pytest.mark.parametrize(
    ("what", "name", "framework"),
    [
        ("kernels", "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<T>(P)", "megatron"),
        *(("ranges", "layer_3f-layer_5b", "megatron"), ("ranges", "FusedDispatchBackward", "megatron")),
        *(("groups", "EXPERT_MODEL_PARALLEL_GROUP", "megatron"), ("groups", "mesh_ep", "none")),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)", "pytorch"),
        ("kernels", "triton_poi_fused_mul_silu_2", "pytorch"),
        ("ranges", "aten::linear, op_id = 7", "pytorch"),
        ("ranges", "ProfilerStep#3", "pytorch"),
        *(("kernels", "loop_add_fusion_3", "jax"), ("kernels", "fusion_12", "jax")),
        *(("kernels", "wrapped_transpose_2", "jax"), ("kernels", "triton_gemm_dot_12", "jax")),
        *(("kernels", "triton_gemm_kernel", "none"), ("kernels", "rope_fusion", "none")),
        *(("ranges", "jit(train_step)", "jax"), ("ranges", "my.jit(model)", "none")),
        ("ranges", "TSL:XlaModule:#hlo_module=jit_step,program_id=7#", "jax"),
        ("kernels", "void tensorflow::BiasNHWCKernel<float>(int)", "tensorflow"),
        ("kernels", "void Eigen::internal::EigenMetaKernel<E>(E, int)", "tensorflow"),
        ("kernels", "cast_transpose_fusion_kernel_optimized", "none"),
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


@pytest.mark.parametrize(
    ("what", "name", "use"),
    [
        ("kernels", "triton_poi_fused_mul_silu_2", "compiled"),
        ("ranges", "Torch-Compiled Region: 0/0", "compiled"),
        ("kernels", "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>",
         "fused_optimizer"),
        ("kernels", "void dali::kernels::SliceKernel<float>()", "dali"),
        ("ranges", "[DALI][Executor] RunCPU", "dali"),
        ("frames", "nvidia/dali/plugin/pytorch.py(212): __next__", "dali"),
        ("frames", "ffcv/loader/epoch_iterator.py(161): __next__", "ffcv"),
        ("ranges", "execute_context_5_generation_12", "rollout_engine"),
        ("frames", "vllm/v1/worker/gpu_worker.py(300): execute_model", "rollout_engine"),
        ("kernels", "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV", "rocm"),
        # names that others have as well
        ("kernels", "triton_gemm_dot_3", None),
        ("frames", "torch/_dynamo/eval_frame.py(838): _fn", None),  # also around what is not compiled
        ("ranges", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", None),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)", None),
        ("calls", "cudaLaunchKernel", None),
        ("frames", "myproject/dali_copy/train.py(3): run", None),
        ("frames", "webdataset/tariterators.py(147): url_opener", None),  # which workers of PyTorch's run
    ],
)  # fmt: skip
def test_a_name_shows_what_a_run_does_already_where_only_such_a_run_has_it(
    what: str, name: str, use: InUse | None
) -> None:
    assert in_use({what: (name,)}) == (() if use is None else (use,))


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("gb200", "GB200"), ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"), ("h100sxm", "H100"), ("H100-PCIe", "H100 PCIe"),
        ("AMD Instinct MI300X OAM", "MI300X"), ("NVIDIA GeForce RTX3090", "RTX 3090"),
        ("GeForce RTX 2080Ti", "RTX 2080 Ti"), ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA A1000", None), ("foo9000", None),
    ],
)  # fmt: skip
def test_a_product_is_found_in_its_name(name: str, product: str | None) -> None:
    found = product_named(name)
    assert (found.name if found else None) == product


def test_w2_a_gpu_that_is_not_known_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'h10' is no GPU that we know\. Did you mean H100"):
        given_from({"gpu": "h10"})
    assert given_from({"gpu": "NVIDIA H100 80GB HBM3"}).gpu == "H100"


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("ampere_sgemm_128x64_tn", "fp32"),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int)", "fp32"),
        ("void implicit_convolve_sgemm<float, float, 128, 5, 5>(int, int)", "fp32"),
        ("void implicit_convolve_sgemm<__half, __half, 128, 5, 5>(int, int)", None),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x128x8", "fp32"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16", "tf32"),
        (
            "void xmma_cudnn::gemm::kernel<implicit_gemm::wgrad::Kernel_traits<Ampere_hmma_tf32_traits>>",
            "tf32",
        ),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(T1::Params)", "tf32"),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(AttentionKernel<float, arch::Sm80>::Params)", "3xtf32"),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm75(AttentionKernel<float, arch::Sm75>::Params)", "fp32"),
        ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1", None),
        ("igemm_fwd_gtcx3_nhwc_fp32_bx0_ex1_bt128x64x32", "fp32"),
        ("igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32", None),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE", "fp32"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT64x64x16_SE", None),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", None),
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


VENV = "/opt/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(("text", "name"), [
    ("torch/cuda/__init__.py(990): synchronize", "torch.cuda.synchronize"),
    (f"{VENV}/megatron/core/optimizer/optimizer.py(5): step", "megatron.core.optimizer.optimizer.step"),
    ("/home/eve/Megatron-LM/megatron/core/x.py(5): f", "megatron.core.x.f"),
    ("secret_model/train.py(12): step", "train.step"),
    ("/home/torch/secret/train.py(12): step", "train.step"), ("train.py(184): <module>", "train"),
    ("nn.Module: TransformerBlock_12", "TransformerBlock"),
    ("/x/libtorch_cpu.so: void at::native::copy_impl<float>(at::Tensor const&)", "at::native::copy_impl"),
    ("libnccl.so.2.21.5: ncclLaunchKernel", "ncclLaunchKernel"),
])  # fmt: skip
def test_a_frame_is_told_by_its_package_and_function_and_never_by_a_folder(text: str, name: str) -> None:
    frame = public_frame(text)
    assert frame is not None
    assert frame.name == name


@pytest.mark.parametrize(
    "text",
    [
        "torch/nn/modules/module.py(1779): _call_impl", "contextlib.py(81): inner",
        "/usr/lib/python3.12/threading.py(355): wait", "train.py(3): <listcomp>",
        "<built-in method conv2d of type object at 0x7f4f7dff0640>", "<string>(1): <module>",
        "/usr/lib/libpython3.12.so.1.0: _PyEval_EvalFrameDefault", "/home/eve/own.so: secret_kernel",
        "/lib64/libc.so.6: __poll",
    ],
)  # fmt: skip
def test_plumbing_and_what_may_be_private_is_no_address(text: str) -> None:
    assert public_frame(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "/home/eve/run_20261127.py(3): step",  # a date, an account or an address may stand in a number
        "/home/eve/10_0_0_1.py(3): step",
        "/home/eve/my train.py(3): step",
        "train.py(3): hf_" + "a" * 70,
        "train.py(3): step\nof eve",
    ],
)
def test_a_name_that_is_no_plain_identifier_is_withheld(text: str) -> None:
    assert public_frame(text) is None


def test_operators_and_ranges_are_told_and_the_range_of_a_step_is_none() -> None:
    told = {
        "aten::mm, seq = 3": "operator",
        "autograd::engine::evaluate_function: ConvolutionBackward0": "operator",
        "ncclAllReduce": "operator",
        "layer_3f": "range",
        "Optimizer.step#AdamW.step": "range",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "range",
    }
    kinds = {text: frame and frame.kind.value for text in told if (frame := public_span(text))}
    assert kinds == told
    assert [public_span(text) for text in ("iteration 3", "ProfilerStep#3")] == [None] * 2
    assert public_span("eve's range") == public_span("fetch_to_host") == WITHHELD
    assert public_span("fetch_offloaded_weights") == Frame(FrameKind.RANGE, "fetch_offloaded_weights")
    assert public_span("layer_3f") == public_span("layer_4f")


def test_a_call_of_the_operating_system_is_one_that_we_know() -> None:
    found = public_os_call("pthread_cond_wait")
    assert found is not None
    assert found.name == "pthread_cond_wait"
    assert public_os_call("hunter2_sesame") is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("trt_turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", ("convolution", "conv")),
        *(("matmul_wmma(const __half *)", ("gemm", "own")), ("MatrixMulCUDA", ("gemm", "own"))),
        ("_mxfp8_all_to_all_expert_major", ("comm", "ep_a2a")),
        ("_combine_all_to_all_kernel", ("comm", "ep_combine")),
        ("triton_poi_fused_all_to_all_single_combine", ("elementwise", "triton_fused")),
    ],
)
def test_kernels_of_no_library_tell_their_work_by_words_in_their_names(
    name: str, what: tuple[str, str]
) -> None:
    kernel = classify_kernel(name)
    assert (kernel.class_, kernel.subclass) == what
