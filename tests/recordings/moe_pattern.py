"""A mixture-of-experts training run for tests: one H100 rank, Megatron style, expert parallel.

A hand-written pattern, not a performance model: kernels follow each other as in Megatron-Core's all-to-all
dispatcher, under names that real traces or sources spell so, with durations drawn around made-up means. It
shows what a recording looks like; no number in it says how fast anything is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from bench.simulate.recording import Recording, Work

PID: Final = 4200
AUTOGRAD_TID: Final = PID + 1
COMPUTE, EXPERT_PARALLEL, DATA_PARALLEL = 7, 20, 24
"""Stream ids: default stream, expert all-to-all, gradient and parameter collectives."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kernel: its name, its mean duration and spread, and the call that launches it."""

    name: str
    mean_us: float
    spread: float = 0.05
    api: str = "cudaLaunchKernel_v7000"
    grid: int = 4096
    block: int = 256


def _gemm(name: str, mean_us: float) -> _Kind:
    return _Kind(name, mean_us, api="cuLaunchKernelEx", grid=132, block=384)


def _nccl(operation: str, mean_us: float, spread: float = 0.15) -> _Kind:
    name = f"ncclDevKernel_{operation}(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    return _Kind(name, mean_us, spread, "cuLaunchKernelEx", grid=16, block=544)


_SDPA: Final = "cudnn_generated_{}_{}_cga1x1x1_kernel0_0"
_NORM: Final = "transformer_engine::normalization::rmsnorm_{}_tuned_kernel"
_GROUPED: Final = "dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel"
_GROUPED_GEMM: Final = f"void cutlass::device_kernel<{_GROUPED}>({_GROUPED}::Params)"
_FORWARD_GEMM: Final = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN"
_INPUT_GRAD: Final = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
_WEIGHT_GRAD: Final = "nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NTN"
_FOREACH: Final = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimize"

_NORM_FWD: Final = _Kind(_NORM.format("fwd"), 14)
_NORM_BWD: Final = _Kind(_NORM.format("bwd"), 24)
_SORT: Final = _Kind("_sort_chunks_by_map_kernel", 20, api="cuLaunchKernelEx")
_PERMUTE: Final = _Kind("_permute_kernel", 30, api="cuLaunchKernelEx")
_UNPERMUTE: Final = _Kind("_unpermute_kernel", 34, api="cuLaunchKernelEx")
_TOKENS: Final = _nccl("SendRecv", 330)
_PROBABILITIES: Final = _nccl("SendRecv", 24)
_GATHER: Final = _nccl("AllGather_RING_LL", 420)
_SCATTER: Final = _nccl("ReduceScatter_Sum_bf16_RING_LL", 380)
_EXPERT_FC1: Final = _gemm(_GROUPED_GEMM, 320)
_EXPERT_FC2: Final = _gemm(_GROUPED_GEMM, 170)

_ATTENTION: Final = (
    _NORM_FWD,
    _gemm(_FORWARD_GEMM, 120),  # query, key and value
    _Kind(_SDPA.format("oss_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "64x128x128_4x1x1"), 240, block=384),
    _gemm(_FORWARD_GEMM, 85),  # output projection
    _NORM_FWD,
)
_ROUTER: Final = (
    _gemm("nvjet_tst_96x64_64x10_1x2_h_bz_bias_TNN", 11),
    _Kind("fused_topk_with_score_function_forward_kernel", 12),
)
_EXPERTS: Final = (_SORT, _EXPERT_FC1, _Kind("scaled_gated_forward_kernel", 38), _EXPERT_FC2, _SORT)
_EXPERTS_BACKWARD: Final = (
    _SORT,
    _EXPERT_FC2,  # gradients of the input, then of the weights; so for every GEMM below
    _EXPERT_FC2,
    _Kind("scaled_gated_backward_kernel", 62),
    _EXPERT_FC1,
    _EXPERT_FC1,
    _SORT,
)
_ATTENTION_BACKWARD: Final = (
    _UNPERMUTE,
    _Kind("fused_topk_with_score_function_backward_kernel", 12),
    _gemm(_INPUT_GRAD, 14),
    _gemm(_WEIGHT_GRAD, 16),
    _NORM_BWD,
    _gemm(_INPUT_GRAD, 88),
    _gemm(_WEIGHT_GRAD, 92),
    _Kind(
        _SDPA.format("fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26", "64x64x128_1x4x1"), 560, block=384
    ),
    _gemm(_INPUT_GRAD, 124),
    _gemm(_WEIGHT_GRAD, 130),
    _NORM_BWD,
)
_HEAD: Final = (_NORM_FWD, _gemm(_FORWARD_GEMM, 520), _Kind("online_softmax_kernel", 60))
_HEAD_BACKWARD: Final = (_Kind("cross_entropy_kernel", 80), _gemm(_INPUT_GRAD, 530), _gemm(_WEIGHT_GRAD, 540))
_GRADIENT_NORM: Final = _Kind("cleanup_v2", 9, grid=1)
_ADAM: Final = _Kind(_FOREACH, 210, block=512)


def moe_recording(steps: int = 6, layers: int = 4, seed: int = 0, nvtx: bool = True) -> Recording:
    """Record `steps` training steps of `layers` MoE layers; the same seed gives the same recording.

    Forward runs on the main thread, backward on the autograd thread. Per layer the host reads the token
    counts back and waits; expert all-to-all runs on its own stream with nothing beside it, about a quarter of
    a step. `nvtx` adds a range `iteration N` per step, N from 0.
    """
    rank = _Rank(seed)
    for step in range(steps):
        begin_ns = rank.host_ns
        rank.clear_gradients()
        for _ in range(layers):
            _forward(rank)
        rank.launch_all(_HEAD)
        rank.on_thread(AUTOGRAD_TID)
        rank.launch_all(_HEAD_BACKWARD)
        for _ in range(layers):
            _backward(rank)
        rank.on_thread(PID)
        _optimize(rank)
        if nvtx:
            rank.recording.range(f"iteration {step}", begin_ns, rank.host_ns, pid=PID)
        rank.host_ns += 60_000  # the next batch
    return rank.recording


def _forward(rank: _Rank) -> None:
    rank.launch_all(_ATTENTION)
    rank.launch_all(_ROUTER)
    rank.read_back(size_bytes=512)
    rank.launch(_PERMUTE)
    rank.exchange(_TOKENS, _PROBABILITIES)
    rank.launch_all(_EXPERTS)
    rank.exchange(_TOKENS)
    rank.launch(_UNPERMUTE)


def _backward(rank: _Rank) -> None:
    rank.launch(_PERMUTE)
    rank.exchange(_TOKENS)
    rank.launch_all(_EXPERTS_BACKWARD)
    rank.exchange(_TOKENS, _PROBABILITIES)
    rank.launch_all(_ATTENTION_BACKWARD)
    rank.order(COMPUTE, DATA_PARALLEL)
    rank.launch(_SCATTER, DATA_PARALLEL)  # beside the next layer's backward


def _optimize(rank: _Rank) -> None:
    rank.order(DATA_PARALLEL, COMPUTE)
    rank.launch(_GRADIENT_NORM)
    rank.read_back(size_bytes=4)
    rank.launch_all((_ADAM,) * 4)
    rank.order(COMPUTE, DATA_PARALLEL)
    rank.launch(_GATHER, DATA_PARALLEL)
    rank.order(DATA_PARALLEL, COMPUTE)
    rank.read_back(size_bytes=4)  # the loss


class _Rank:
    """One process that launches in order: the host's clock, and until when each stream is busy (all ns)."""

    def __init__(self, seed: int) -> None:
        self.recording = Recording()
        self.recording.gpu()
        self.host_ns = 1_000_000
        self._tid = PID
        self._free_ns = {COMPUTE: 0, EXPERT_PARALLEL: 0, DATA_PARALLEL: 0}
        self._random = random.Random(seed)

    def on_thread(self, tid: int) -> None:
        """Go on launching from another thread, which takes a moment to wake."""
        self._tid = tid
        self.host_ns += 15_000

    def launch(self, kind: _Kind, stream: int = COMPUTE) -> None:
        """Launch a kernel; it starts once launched and once its stream is free."""
        call_ns, call_end_ns = self._call_times()
        duration_ns = round(1_000 * kind.mean_us * self._random.uniform(1 - kind.spread, 1 + kind.spread))
        start_ns, end_ns = self._run(stream, call_end_ns, duration_ns)
        self.recording.kernel(
            kind.name,
            start_ns,
            end_ns,
            api=kind.api,
            grid=(kind.grid, 1, 1),
            block=(kind.block, 1, 1),
            stream=stream,
            pid=PID,
            tid=self._tid,
            launch_ns=call_ns,
            launch_end_ns=call_end_ns,
        )

    def launch_all(self, kinds: tuple[_Kind, ...]) -> None:
        """Launch kernels one after the other on the compute stream."""
        for kind in kinds:
            self.launch(kind)

    def exchange(self, *kinds: _Kind) -> None:
        """All-to-all on the expert-parallel stream, which the compute stream waits for."""
        self.order(COMPUTE, EXPERT_PARALLEL)
        for kind in kinds:
            self.launch(kind, EXPERT_PARALLEL)
        self.order(EXPERT_PARALLEL, COMPUTE)

    def order(self, first: int, second: int) -> None:
        """Let a stream wait for what another was given so far, through a CUDA event."""
        for api in ("cudaEventRecord_v3020", "cudaStreamWaitEvent_v3020"):
            begin_ns, end_ns = self._call_times(700, 1_400)
            self.recording.call(api, begin_ns, end_ns, pid=PID, tid=self._tid)
        self._free_ns[second] = max(self._free_ns[second], self._free_ns[first] + 1_500)

    def clear_gradients(self) -> None:
        """Set the gradient buffer to zero."""
        call_ns, call_end_ns = self._call_times()
        start_ns, end_ns = self._run(COMPUTE, call_end_ns, 190_000)
        launch = Work(pid=PID, tid=self._tid, launch_ns=call_ns, launch_end_ns=call_end_ns)
        self.recording.memset(start_ns, end_ns, size_bytes=400 << 20, **launch)

    def read_back(self, size_bytes: int) -> None:
        """Copy a little to the host and wait for it: the GPU runs dry."""
        call_ns, call_end_ns = self._call_times()
        start_ns, end_ns = self._run(COMPUTE, call_end_ns, 1_800)
        launch = Work(pid=PID, tid=self._tid, launch_ns=call_ns, launch_end_ns=call_end_ns)
        self.recording.copy("d2h", start_ns, end_ns, size_bytes=size_bytes, **launch)
        waits_ns, _ = self._call_times()
        self.host_ns = max(self.host_ns, end_ns + 4_000)
        self.recording.call("cudaStreamSynchronize_v3020", waits_ns, self.host_ns, pid=PID, tid=self._tid)

    def _call_times(self, low_ns: int = 2_500, high_ns: int = 5_000) -> tuple[int, int]:
        begin_ns = self.host_ns + self._random.randint(800, 2_500)  # the framework between two calls
        self.host_ns = begin_ns + self._random.randint(low_ns, high_ns)
        return begin_ns, self.host_ns

    def _run(self, stream: int, launched_ns: int, duration_ns: int) -> tuple[int, int]:
        start_ns = max(launched_ns + 2_500, self._free_ns[stream] + 900)
        self._free_ns[stream] = start_ns + duration_ns
        return start_ns, self._free_ns[stream]
