"""Runs shaped on published measurements: each figure with its source, each knob with why it has its value.

Every run is scaled down by one factor: so many times fewer kernels, and a step so many times shorter, so that
a kernel takes as long as published. What no publication tells is fitted by hand, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bench.simulate.knobs import Knobs
from traces.limits import Limit

_OVERLAP: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-moe-comm-overlap/SKILL.md"
_DELAYED: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md"
_GB200: Final = "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8"

REPEAT: Final = Limit(
    0.0039, "fraction", f"{_OVERLAP}: 21.0725 and 20.9920 s, one setting measured twice; tighter is no claim"
)

ALLTOALL_S: Final = Limit(41.25, "s a step", f"{_DELAYED}: Qwen3-30B-A3B, 16 H100, EP16, alltoall, GBS 1024")
ALLTOALL_HIDDEN_S: Final = Limit(31.31, "s a step", f"{_DELAYED}: the same with the overlap")

KERNELS: Final = Limit(463_348, "kernels", f"{_OVERLAP}: one rank, in both recordings")
HYBRID_S: Final = Limit(24.7138, "s a step", f"{_OVERLAP}: the same model with HybridEP; not profiled")
HYBRID_HIDDEN_S: Final = Limit(20.9920, "s a step", f"{_OVERLAP}: the same with the overlap; not profiled")
HYBRID_ACTIVE_S: Final = Limit(22.821, "s a step", f"{_OVERLAP}: union of GPU work, profiled")
HYBRID_HIDDEN_ACTIVE_S: Final = Limit(21.221, "s a step", f"{_OVERLAP}: the same with the overlap, profiled")
HYBRID_FRAC: Final = Limit(0.0011, "of communication", f"{_OVERLAP}: runs under GEMM or attention, 9.079 ms")
HYBRID_HIDDEN_FRAC: Final = Limit(0.3655, "of communication", f"{_OVERLAP}: with the overlap, 3,958.997 ms")
ROUNDED: Final = Limit(0.00005, "of communication", "0.11 % has two digits behind the point")
HYBRID_COMM_S: Final = Limit(9.079e-3 / 0.0011, "s a step", "their ratio: 8.25, from 7.9 to 8.6 by rounding")
HYBRID_HIDDEN_COMM_S: Final = Limit(3.958997 / 0.3655, "s a step", "their ratio: 10.83")

_TOKENS: Final = 2048 * 4096 / 256
"""A step's tokens on each GPU of the DeepSeek-V3 runs: GBS 2048, sequences of 4096, 256 GPUs."""
_TERAFLOP_A_TOKEN: Final = 1048 / 4020
"""arXiv 2603.07685: 4,020 tokens/s on a GB200 are 1,048 TFLOPS."""


def _step_s(tflops: float, row: str) -> Limit:
    because = f"{_GB200}: {tflops} TFLOPS/GPU, {row}; DeepSeek-V3, 256 GB200, MXFP8, PP8, EP32, GBS 2048"
    return Limit(_TOKENS * _TERAFLOP_A_TOKEN / tflops, "s a step", because)


BASELINE_S: Final = _step_s(494.46, "baseline: alltoall, no CUDA graphs, no binding")
UNGRAPHED_S: Final = _step_s(610.71, "DeepEP, kernels fused; no CUDA graphs, no binding")
GRAPHED_S: Final = _step_s(663.27, "CUDA graphs of attention, router and preprocessing")
_UNBOUND_S: Final = _step_s(691.49, "DeepEP tuned")
_BOUND_S: Final = _step_s(762.12, "bound to NUMA nodes")
GRAPHED_BOUND_S: Final = Limit(
    GRAPHED_S.value * _BOUND_S.value / _UNBOUND_S.value,
    "s a step",
    f"{_GB200}: what binding won later, won right after the graphs: DeepEP as slow as it was",
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A knob's value and where it comes from; `fitted`: by hand, until the run took what was published."""

    knob: str
    value: object
    because: str
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class Anchor:
    """A run shaped on `step_s`. `scale`: how many times fewer kernels it has, and shorter its step is."""

    step_s: Limit
    scale: float
    shaped: tuple[Shaped, ...]
    about: Mapping[str, object] = field(default_factory=dict)

    @property
    def knobs(self) -> Knobs:
        """The knobs as the simulator takes them."""
        return replace(Knobs(data_stall_ms=0.0), **{one.knob: one.value for one in self.shaped})  # type: ignore[arg-type]

    def but(self, step_s: Limit, *shaped: Shaped, about: Mapping[str, object] | None = None) -> Anchor:
        """The same run, other in these knobs."""
        other = {one.knob for one in shaped}
        kept = tuple(one for one in self.shaped if one.knob not in other)
        return Anchor(step_s, self.scale, (*kept, *shaped), {**self.about, **(about or {})})


QWEN_SCALE: Final = 180.0
"""463,348 kernels at 180 to one are 2,574; the simulated step has 2,564. Its layer passes are 48 of 3,072."""
_SHORTER: Final = 3_072 / 48 / QWEN_SCALE
"""A simulated layer pass beside a real one: 64 microbatches of 48 layers, by the kernels it has."""
_TFLOPS: Final = 510.0
_MODEL: Final = "its config.json at 4,096 tokens, forward"
_RATE: Final = "all at one rate, fitted so that compute is 22.82 - 8.25 s"


def _us(gigaflop: float) -> float:
    return round(gigaflop / _TFLOPS * 1e3 * _SHORTER, 1)


def _qwen(layers: int, microbatches: int) -> tuple[Shaped, ...]:
    passes = "48 layer passes a step; how many are of one microbatch says how much the overlap can hide"
    return (
        Shaped("seed", 1, "ours"),
        Shaped("gpu", "H100", "published"),
        Shaped("step_count", 3, "ours"),
        Shaped("layer_count", layers, passes, fitted=True),
        Shaped("microbatch_count", microbatches, passes, fitted=True),
        Shaped("attention_us", _us(137.4), f"137.4 GFLOP, {_MODEL}; {_RATE}", fitted=True),
        Shaped("dense_gemm_us", _us(154.6), f"154.6 GFLOP, {_MODEL}; {_RATE}", fitted=True),
        Shaped("expert_gemm_us", _us(309.2), f"309.2 GFLOP for 8 of 128 experts, {_MODEL}", fitted=True),
        Shaped("head_us", _us(2549 * layers / 48), f"2,549 GFLOP a microbatch of 48 layers, {_MODEL}"),
        Shaped("small_kernel_us", 10.4, "ours: 29 us, a few passes over 8 x 4,096 x 2,048 numbers"),
        Shaped("local_expert_count", 8, "published: 128 experts over 16 ranks"),
        Shaped("optimizer_us", 83.0, "ours: 15 ms a step for 1.9 billion parameters a rank"),
        Shaped("gradient_us", 4.0, "published: next to no communication is hidden without the overlap"),
        Shaped("comm_block_count", 16, "Megatron-Core 0.16: moe_hybridep_num_sms"),
        Shaped("beside_comm_frac", 0.0, "published: beside communication GPU work did not grow"),
        Shaped("python_us", 15.0, "ours: between two launches; a simulated one takes as long as a real one"),
    )


_QWEN_ABOUT: Final = {
    "gpu": "H100", "nvlink_domain": 8, "ep": 16, "etp": 1, "tp": 1, "cp": 1, "pp": 1, "precision": "bf16",
    "family": "qwen3_30b", "core_version": "0.16.1", "torch_version": "2.9.0",
}  # fmt: skip
_ON: Final = Shaped("ep_overlap", True, "the one thing that changed")

ALLTOALL: Final = Anchor(
    ALLTOALL_S,
    QWEN_SCALE,
    (
        *_qwen(layers=12, microbatches=4),
        Shaped("dispatcher", "alltoall", "published"),
        Shaped("dispatch_us", 654.0, "what is left of 41.25 s beside the compute of HybridEP", fitted=True),
        Shaped("peer_late_us", 92.0, "of it waiting: until the overlap saved 9.94 s", fitted=True),
    ),
    _QWEN_ABOUT,
)
ALLTOALL_HIDDEN: Final = ALLTOALL.but(ALLTOALL_HIDDEN_S, _ON)

HYBRID: Final = Anchor(
    HYBRID_S,
    QWEN_SCALE,
    (
        *_qwen(layers=16, microbatches=3),
        Shaped("dispatcher", "hybridep", "published"),
        Shaped("graph_router", True, "published"),
        Shaped("graph_preprocess", True, "published"),
        Shaped("dispatch_us", 110.5, "until 36.55 % ran under GEMM and attention with it", fitted=True),
        Shaped("peer_late_us", 127.0, "the rest of 8.25 s of communication", fitted=True),
        Shaped("sync_return_us", 134.0, "24.71 s less 22.82 s GPU-active are idle", fitted=True),
    ),
    _QWEN_ABOUT,
)
HYBRID_HIDDEN: Final = HYBRID.but(
    HYBRID_HIDDEN_S,
    _ON,
    Shaped("peer_late_us", 203.0, "published: communication grew to 10.83 s in all; ours: by waiting", True),
)

DSV3_SCALE: Final = 320.0
"""Ours: how many kernels a real step has was not published; so a simulated launch takes 10 to 20 us."""
_GPU_WORK: Final = "ours: 7.0 s a step: the last row's 8.81 s less an exchange of 1.4 s and a little host"

BASELINE: Final = Anchor(
    BASELINE_S,
    DSV3_SCALE,
    (
        Shaped("seed", 2, "ours"),
        Shaped("gpu", "GB200", "published"),
        Shaped("step_count", 3, "ours"),
        Shaped("layer_count", 4, "16 layer passes a step of 488: 61 layers on 8 stages, 64 microbatches"),
        Shaped("microbatch_count", 4, "the same"),
        Shaped("dispatcher", "alltoall", "published"),
        Shaped("fp8", True, "published: MXFP8"),
        Shaped("grouped_gemm", False, "published: one cuBLAS GEMM an expert, on several streams"),
        Shaped("local_expert_count", 8, "published: 256 experts over 32 ranks"),
        Shaped("attention_us", 84.0, f"687 GFLOP forward; {_GPU_WORK}", fitted=True),
        Shaped("dense_gemm_us", 187.0, "1,532 GFLOP at the same rate", fitted=True),
        Shaped("expert_gemm_us", 396.0, "3,247 GFLOP at this rate, the shared expert's too", fitted=True),
        Shaped("small_kernel_us", 25.0, "ours"),
        Shaped("head_us", 1.0, "none on a middle stage"),
        Shaped("optimizer_us", 100.0, "ours"),
        Shaped("gradient_us", 10.0, "ours: a step's, scaled"),
        Shaped("dispatch_us", 145.0, "published: 400 GB/s out and 190 GB/s back, 423 MB: 3.2 s a step"),
        Shaped("comm_block_count", 24, "published: 24 SMs"),
        Shaped("peer_late_us", 3.0, "ours: one NVLink domain"),
        Shaped("api_us", 6.0, "ours: a launch call that is not bound"),
        Shaped("arrival_us", 4.0, "ours"),
        Shaped("python_us", 14.6, "the rest of the step", fitted=True),
    ),
    {
        "gpu": "GB200", "nvlink_domain": 72, "ep": 32, "etp": 1, "tp": 1, "cp": 1, "pp": 8, "vpp": 4,
        "precision": "mxfp8", "family": "dsv3", "routing": "dropless", "cpu_bound_to_numa": False,
        "core_version": "0.16.1", "torch_version": "2.9.0",
    },
)  # fmt: skip
UNGRAPHED: Final = BASELINE.but(
    UNGRAPHED_S,
    Shaped("dispatcher", "deepep", "published"),
    Shaped("python_us", 10.6, "the rest of the step: fewer kernels, less Python", fitted=True),
)
GRAPHED: Final = UNGRAPHED.but(
    GRAPHED_S,
    Shaped("graph_attention", True, "published"),
    Shaped("graph_router", True, "published"),
    Shaped("graph_preprocess", True, "published"),
)
_FASTER: Final = 0.86
"""Fitted: what binding makes of the host's times; the simulator has no knob for where a process runs."""
GRAPHED_BOUND: Final = GRAPHED.but(
    GRAPHED_BOUND_S,
    *(
        Shaped(knob, value * _FASTER, "the rest of the step: launches get shorter", fitted=True)
        for knob, value in (
            ("python_us", 10.6),
            ("api_us", 6.0),
            ("arrival_us", 4.0),
            ("thread_wake_us", 15.0),
        )
    ),
    about={"cpu_bound_to_numa": True},
)
