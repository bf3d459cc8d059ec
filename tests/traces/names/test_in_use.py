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
        # names that others have as well
        ("kernels", "triton_gemm_dot_3", None),
        ("frames", "torch/_dynamo/eval_frame.py(838): _fn", None),  # also around what is not compiled
        ("ranges", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", None),
        ("threads", "pt_data_worker", None),
        ("kernels", "void at::native::vectorized_elementwise_kernel<4, F>(int)", None),
        ("calls", "cudaLaunchKernel", None),
        ("frames", "myproject/dali_copy/train.py(3): run", None),
    ],
)
def test_a_name_shows_what_a_run_does_already_where_only_such_a_run_has_it(
    what: str, name: str, use: InUse | None
) -> None:
    assert in_use({what: (name,)}) == (() if use is None else (use,))
