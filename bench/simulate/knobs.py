"""The knobs of a simulated run: plain numbers, each drawn from a stated range or fixed by hand."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from bench.simulate.draws import between, uniform
from bench.simulate.kernels import GPUS
from bench.simulate.ranges import CHOICES, RANGES, RARE, WIDER, Choice, Range


@dataclass(frozen=True, slots=True)
class Knobs:
    """A run. Times of kernels are those of one layer and microbatch, forward, on all SMs of an H100.

    `dispatcher`: alltoall, deepep, hybridep, allgather, or none for a dense model. `recompute`: none,
    norm_act, core_attn, moe or full. `end_of_step`: none, read_back, device, or loss (the host waits for the
    loss of the last microbatch, not for what it launched since). `optimizers`: adam, two_adams (one for the
    dense parameters, one for the experts) or muon_adam (Muon for matrices, Adam for the rest).
    `first_step_ms`: what the first step loads, or does in Python (`first_step`: loads, allocates or python).
    `cpu_adam_frac`: of the parameters, those whose Adam runs on the host; `cpu_adam_mib` of gradients go
    there per layer. `helper`: what a loader's thread does on a stream of its own: none, copies, or kernels of
    dali or torch. Of `loader_workers` the slowest makes each such step wait for `data_stall_ms`.
    `startup_ms`: one-time calls before the first step. `precision`: bf16, tf32, fp32, or convolution (FP32).
    `whole_graph`: all work of a step after its batch is one graph, on one stream. `late_batch_frac`: steps
    that wait for their batch by chance, in place of turns; `first_batch_ms`: what comes before them all.
    `gradients`: sharded, or all_reduce; `bucket_layers` travel together. `buffer_count` buffers come from
    rank 0 each step. `adam`: fused, or foreach (a kernel for each line of it), in `adam_launches` chunks.
    `unfused`: norms, rotary embedding and activations in PyTorch's own kernels. `autocast`: a cast beside
    each matrix product. `container`: what names of kernels come from: this, libraries (others of cuBLAS and
    cuDNN) or all. A size or time of 0 takes its feature out of the run.
    """

    seed: int = 0
    gpu: str = "H100"
    dispatcher: str = "alltoall"
    step_count: int = 4
    microbatch_count: int = 2
    layer_count: int = 4
    fp8: bool = False

    attention_us: float = 120.0
    dense_gemm_us: float = 160.0
    expert_gemm_us: float = 320.0
    small_kernel_us: float = 14.0
    head_us: float = 300.0
    optimizer_us: float = 600.0
    grouped_gemm: bool = True
    local_expert_count: int = 4
    expert_tile_count: int = 1000
    dense_tile_count: int = 1000
    small_block_count: int = 4096
    shared_expert: bool = False

    dispatch_us: float = 100.0
    control_frac: float = 0.08
    comm_block_count: int = 20
    beside_comm_frac: float = 0.03
    peer_late_us: float = 5.0
    ep_overlap: bool = False
    gradient_us: float = 100.0
    gradient_overlap: bool = True
    tensor_parallel_us: float = 0.0
    context_parallel_us: float = 0.0
    pipeline_us: float = 0.0
    pipeline_bubble_us: float = 0.0

    python_us: float = 3.0
    api_us: float = 3.5
    arrival_us: float = 3.0
    kernel_gap_us: float = 0.9
    event_gap_us: float = 1.4
    sync_return_us: float = 8.0
    thread_wake_us: float = 15.0
    token_sync: bool = True
    end_of_step: str = "none"
    gc_pause_ms: float = 0.0
    gc_per_layer_frac: float = 0.0
    data_stall_ms: float = 0.05
    pageable_host: bool = False
    graph_attention: bool = False
    graph_router: bool = False
    graph_preprocess: bool = False

    recompute: str = "none"
    offload_mib: float = 0.0
    host_link_gb_per_s: float = 50.0
    retries_per_step: float = 0.0
    free_us: float = 150.0
    malloc_us: float = 250.0
    reserved_frac: float = 0.8
    optimizers: str = "adam"

    delayed_wgrad: bool = False
    shared_expert_stream: bool = False
    resident_mib: float = 0.0
    cpu_adam_ms: float = 0.0
    cpu_adam_mib: float = 16.0
    cpu_adam_frac: float = 1.0
    first_step: str = "loads"
    first_step_ms: float = 0.0
    initial_kernel_count: int = 0

    helper: str = "none"
    helper_kernel_us: float = 40.0
    loader_workers: int = 1
    batch_mib: float = 0.25
    hiccup_count: int = 0
    hiccup_ms: float = 0.0
    startup_ms: float = 0.0
    autograd_thread: bool = True
    precision: str = "bf16"
    whole_graph: bool = False

    late_batch_frac: float = 0.0
    first_batch_ms: float = 0.0
    gradients: str = "sharded"
    bucket_layers: int = 1
    buffer_count: int = 0
    adam: str = "fused"
    adam_launches: int = 6
    unfused: bool = False
    autocast: bool = False
    container: str = "this"


def draw_knobs(seed: int, **fixed: object) -> Knobs:
    """Knobs of a seed: every one drawn from its range in `bench.simulate.ranges`, except those given.

    Raises TypeError for a knob that does not exist.
    """
    drawn: dict[str, object] = {"seed": seed}
    for one in (*RANGES, *CHOICES):
        drawn[one.knob] = _drawn(seed, one)
    if drawn["gpu"] == "A100":  # no FP8, and the fused dispatchers need Hopper
        drawn |= {"fp8": False}
        drawn |= {"dispatcher": "alltoall"} if drawn["dispatcher"] in ("deepep", "hybridep") else {}
    knobs = Knobs(**(drawn | fixed))  # type: ignore[arg-type]
    passes = knobs.step_count * knobs.microbatch_count
    if "layer_count" not in fixed:
        layers = round(between(uniform(f"{seed}/knob/layer_count"), 24, 64, by_factors=True) / passes)
        knobs = replace(knobs, layer_count=min(max(layers, 2), 12))
    return knobs


def draw_wider(seed: int) -> Knobs:
    """The same run with what only finding its steps hangs on drawn from `WIDER`: accumulation, optimizers."""
    return draw_knobs(seed, **{one.knob: _drawn(seed, one) for one in WIDER})


def draw_rare(seed: int, *knobs: str, **fixed: object) -> Knobs:
    """The same run with some of what `RARE` states drawn as well."""
    return draw_knobs(seed, **{one.knob: _drawn(seed, one) for one in RARE if one.knob in knobs}, **fixed)


def _drawn(seed: int, one: Range | Choice) -> object:
    share = uniform(f"{seed}/knob/{one.knob}")
    if isinstance(one, Choice):
        return one.of(share)
    if one.zero_frac and uniform(f"{seed}/knob/{one.knob}/there") < one.zero_frac:
        return 0.0
    value = between(share, one.low, one.high, by_factors=one.by_factors)
    return round(value) if one.whole else value


def on_gpu(knobs: Knobs, gpu: str) -> Knobs:
    """The same model and host on another GPU of `GPUS`: its math and its links are faster, Python is not.

    Kernel times are scaled when the run is built, by `compute_times`; only link times are knobs.
    """
    times = GPUS[gpu].link_times / GPUS[knobs.gpu].link_times
    return replace(
        knobs,
        gpu=gpu,
        dispatch_us=knobs.dispatch_us / times,
        tensor_parallel_us=knobs.tensor_parallel_us / times,
        context_parallel_us=knobs.context_parallel_us / times,
    )


def knob_names() -> tuple[str, ...]:
    """All knobs, in order."""
    return tuple(field.name for field in fields(Knobs))
