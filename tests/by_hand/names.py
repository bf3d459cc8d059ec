"""Short words of the field -> names as nsys records them. Any other word of a test is a real name itself."""

from __future__ import annotations

from typing import Final

_NCCL: Final = "ncclDevKernel_{}(ncclDevKernelArgsStorage<(unsigned long)4096>)"
_SDPA: Final = "cudnn_generated_fort_native_sdpa_sm90_flash_{}_wgmma_f16_knob_26_64x64x128_1x4x1_kernel0_0"
_FOREACH: Final = "void multi_tensor_apply_kernel<TensorListMetadata{}>"

KERNELS: Final = {
    "gemm": "nvjet_tst_128x256_64x4_2x1_v_bz_TNT",
    "grouped_gemm": "void cutlass::device_kernel<GroupProblemShape>",
    "attention": _SDPA.format("fprop"),
    "attention_backward": _SDPA.format("bprop"),
    "norm": "transformer_engine::normalization::rmsnorm_fwd_tuned_kernel",
    "norm_backward": "transformer_engine::normalization::rmsnorm_bwd_tuned_kernel",
    "router": "fused_topk_with_score_function_forward_kernel",
    "permute": "_permute_kernel",
    "sort": "_sort_chunks_by_map_kernel",
    "unpermute": "_unpermute_kernel",
    "add": "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int)",
    "gradient_norm": _FOREACH.format("<(int)1>, L2NormFunctor<float, (int)1>"),
    "adam": _FOREACH.format("<(int)4>, AdamFunctor<float>"),
    "all_reduce": _NCCL.format("AllReduce_Sum_bf16_RING_LL"),
    "all_gather": _NCCL.format("AllGather_RING_LL"),
    "reduce_scatter": _NCCL.format("ReduceScatter_Sum_bf16_RING_LL"),
    "send_recv": _NCCL.format("SendRecv"),
    "layout": "void deep_ep::layout::get_dispatch_layout<(int)256, (int)32, (int)8>(const long *, int *)",
    "token_counts": "void deep_ep::intranode::notify_dispatch<(int)8>(const int *, int *)",
    "dispatch": "void deep_ep::intranode::dispatch<(int)8, (int)768>(int4 *, float *)",
    "combine": "void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)768, (int)4096>(T1 *, float *)",
}

CALLS: Final = {
    "sync": "cudaStreamSynchronize_v3020", "device_sync": "cudaDeviceSynchronize_v3020",
    "event_record": "cudaEventRecord_v3020", "stream_wait": "cudaStreamWaitEvent_v3020",
    "malloc": "cudaMalloc_v3020", "free": "cudaFree_v3020", "free_async": "cudaFreeAsync_v11020",
    "module_load": "cuModuleLoadData", "graph_launch": "cudaGraphLaunch_v10000",
}  # fmt: skip

RANGES: Final = {
    "data": "enumerate(DataLoader)#_Iter.__next__",
    "gc": "gc generation 2",
    "checkpoint": "save_checkpoint",
    "optimizer": "Optimizer.step#FusedAdam.step",
}
