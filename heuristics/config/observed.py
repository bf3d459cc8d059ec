"""What is observed of a run. None is unknown, never no."""

from collections.abc import Mapping

from traces.frozen import frozen
from traces.measure.moe.passes import PassCount
from traces.names.frameworks import Framework
from traces.texts import Texts
from traces.training_log.log import Stage


@frozen
class Observed:
    """What is observed of a run, over all its ranks.

    `framework`: whose run the names show, `none` where they show none. `moe`: routes tokens. `gpu`:
    family of the GPU; `capability`: compute capability (major, minor). `dispatcher`: as in the
    document (`alltoall`, `deepep`, ..., `none`, `unknown`); `internode`: its kernels cross nodes.
    `*_active`: such communication runs. `gathers_unresolved`: gathers or scatters run whose purpose
    nothing tells; `sendrecv_unresolved`: sends and receives. `graph_frac`: share of kernel work in
    CUDA graphs. `recompute_modules`: Megatron-Core's labels of what runs again; empty: none.
    `a2a_waiting_frac`: share of expert all-to-all that is like waiting. `short_kernel_frac`: share
    of kernels under 10 us. `absent_frac`: time without compute by cause, as part of the window.
    `recorder`: the kind of trace. `pageable_input`: input is copied from pageable memory;
    `exposed_input_frac`: input copies that no compute hides, as part of the window.
    `loader_workers`: that load batches, as far as names or the rhythm of waits tell. `wide_frac`:
    matrix work in FP32 or TF32 on a GPU that may have tensor cores for 16 bits, as part of the
    windows, `fp32_frac` the GEMMs of it that a switch takes to TF32. `tensor_cores`: the GPU has
    some for 16 bits. `layout_frac`: copies from one memory layout to another, the same.
    `several_gpus`: more than one GPU runs: several were recorded, or one that communicates.
    `in_use`: what names show that advice would switch on. `dp_overlapped`: compute hides the
    data-parallel collectives, as an overlap that is on does. `sendrecv_of_experts`: False where
    sends and receives of no known purpose cannot be expert all-to-all. `allocator_retries`: what
    frees memory within steps is the caching allocator, for an allocation that found no room.
    `moe_passes`: passes through MoE layers of each used step, for each rank that tells them.
    """

    framework: Framework | None = None
    moe: bool | None = None
    training: bool | None = None
    gpu: str | None = None
    capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    peak_bytes: int | None = None
    dispatcher: str = "unknown"
    internode: bool | None = None
    ep_overlap: bool | None = None
    ep_active: bool | None = None
    tp_active: bool | None = None
    pp_active: bool | None = None
    cp_active: bool | None = None
    dp_active: bool | None = None
    sendrecv_unresolved: bool | None = None
    gathers_unresolved: bool | None = None
    tp_overlap: bool | None = None
    graph_frac: float | None = None
    recompute_modules: Texts | None = None
    recompute_full: bool | None = None
    offload: bool | None = None
    allocator_calls_per_step: float | None = None
    precision: str | None = None
    grouped_gemm: bool | None = None
    expert_gemms_per_layer: float | None = None
    permute_fused: bool | None = None
    router_kernels_per_layer: float | None = None
    token_count_sync: bool | None = None
    a2a_waiting_frac: float | None = None
    short_kernel_frac: float | None = None
    late_cause: str | None = None
    out_of_memory: Stage | None = None
    absent_frac: Mapping[str, float] | None = None
    recorder: str | None = None
    several_gpus: bool | None = None
    pageable_input: bool | None = None
    exposed_input_frac: float | None = None
    loader_workers: int | None = None
    wide_frac: float | None = None
    fp32_frac: float | None = None
    tensor_cores: bool | None = None
    layout_frac: float | None = None
    in_use: Texts | None = None
    dp_overlapped: bool | None = None
    sendrecv_of_experts: bool | None = None
    allocator_retries: bool | None = None
    moe_passes: tuple[tuple[PassCount, ...], ...] = ()
