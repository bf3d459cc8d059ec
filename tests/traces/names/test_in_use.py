"""What a run does already, by names that only such a run has."""

import pytest

from traces.names.in_use import InUse, in_use


@pytest.mark.parametrize(
    ("what", "name", "use"),
    [
        ("kernels", "triton_poi_fused_mul_silu_2", "compiled"),
        ("ranges", "Torch-Compiled Region: 0/0", "compiled"),
        (
            "kernels",
            "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>",
            "fused_optimizer",
        ),
        ("kernels", "void dali::kernels::SliceKernel<float>()", "dali"),
        ("threads", "[DALI][WT0]Pipeline", "dali"),
        ("ranges", "[DALI][Executor] RunCPU", "dali"),
        ("frames", "nvidia/dali/plugin/pytorch.py(212): __next__", "dali"),
        ("frames", "ffcv/loader/epoch_iterator.py(161): __next__", "ffcv"),
        ("ranges", "execute_context_5_generation_12", "rollout_engine"),
        ("frames", "vllm/v1/worker/gpu_worker.py(300): execute_model", "rollout_engine"),
        ("calls", "hipLaunchKernel", "rocm"),
        ("kernels", "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV", "rocm"),
    ],
)
def test_a_name_shows_what_a_run_does_already(what: str, name: str, use: InUse) -> None:
    assert in_use({what: (name,)}) == (use,)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("kernels", "triton_gemm_dot_3"),
        ("frames", "torch/_dynamo/eval_frame.py(838): _fn"),  # also around what is not compiled
        ("ranges", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
        ("threads", "pt_data_worker"),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)"),
        ("calls", "cudaLaunchKernel"),
        ("frames", "myproject/dali_copy/train.py(3): run"),
    ],
)
def test_names_that_others_have_as_well_show_nothing(what: str, name: str) -> None:
    assert in_use({what: (name,)}) == ()
