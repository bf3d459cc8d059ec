"""A layer of the made-up run: its kernels, with name, stream, mean length and shape."""

from __future__ import annotations

from typing import Final, NamedTuple


class Kernel(NamedTuple):
    """One kind of kernel."""

    name: str
    short: str
    stream: int
    mean_ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int


KERNELS: Final = {
    "norm": Kernel(
        "void rmsnorm_fwd_kernel<__nv_bfloat16, 4096>(T1 *, const T1 *, float, int)",
        "rmsnorm_fwd_kernel",
        7,
        9_000,
        (4096, 1, 1),
        (256, 1, 1),
        40,
        0,
    ),
    "gemm": Kernel(
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_e"
            "xecute_segment_k_off_kernel__5x_cublas"
        ),
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64",
        7,
        55_000,
        (132, 1, 1),
        (384, 1, 1),
        168,
        213_000,
    ),
    "attn": Kernel(
        "void flash::device_kernel<flash::FlashAttnFwdSm90<cutlass::bfloat16_t, 128>>(Params)",
        "device_kernel",
        7,
        140_000,
        (132, 1, 1),
        (384, 1, 1),
        168,
        213_248,
    ),
    "elem": Kernel(
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c1"
            "0::BFloat16>>(int, T2, T3)"
        ),
        "vectorized_elementwise_kernel",
        7,
        6_000,
        (8192, 1, 1),
        (128, 1, 1),
        32,
        0,
    ),
    "topk": Kernel(
        "void moe::topk_softmax_kernel<64, 8>(const float *, int *, float *, int)",
        "topk_softmax_kernel",
        7,
        8_000,
        (2048, 1, 1),
        (128, 1, 1),
        48,
        2_048,
    ),
    "perm": Kernel(
        "_permute_tokens_triton", "_permute_tokens_triton", 7, 16_000, (16384, 1, 1), (256, 1, 1), 56, 0
    ),
    "ggemm": Kernel(
        ("void deep_gemm::sm90_grouped_gemm_bf16<128, 128, 64, 8>(CUtensorMap_st, CUtensorMap_st)"),
        "sm90_grouped_gemm_bf16",
        7,
        90_000,
        (132, 1, 1),
        (384, 1, 1),
        168,
        198_000,
    ),
    "shared": Kernel(
        "void cutlass::device_kernel<SharedExpertMlp>(Params)",
        "device_kernel",
        28,
        60_000,
        (64, 1, 1),
        (384, 1, 1),
        168,
        180_000,
    ),
    "a2a": Kernel(
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_SendRecv",
        20,
        180_000,
        (24, 1, 1),
        (544, 1, 1),
        96,
        0,
    ),
    "rs": Kernel(
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
        24,
        260_000,
        (16, 1, 1),
        (544, 1, 1),
        96,
        0,
    ),
    "ag": Kernel(
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL",
        24,
        200_000,
        (16, 1, 1),
        (544, 1, 1),
        96,
        0,
    ),
}
LAYER: Final = (
    *("norm", "gemm", "elem", "elem", "attn", "gemm", "elem", "ag"),
    *("norm", "gemm", "topk", "elem", "elem", "topk", "perm", "elem"),
    *("a2a", "shared", "shared", "elem", "perm", "elem", "elem", "elem"),
    *("ggemm", "elem", "elem", "ggemm", "elem", "elem", "elem", "elem"),
    *("a2a", "elem", "perm", "elem", "rs", "elem", "elem", "elem"),
)
BLOCKS: Final = (
    ("attention", 0, 8),
    ("router", 8, 16),
    ("dispatch", 16, 24),
    ("experts", 24, 32),
    ("combine", 32, 40),
)
"""Named parts of a layer: first kernel, and the one after the last."""
