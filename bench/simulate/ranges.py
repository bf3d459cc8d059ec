"""From which range each knob of a simulated run is drawn, and why that range.

The ranges are wide and drawn without a look at any verdict: most runs have several handicaps at once, some
have none. Whole GPU times hold for one layer and microbatch on an H100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Range:
    """A continuous range. `by_factors`: log-uniform; `zero_frac`: share of runs without the feature."""

    knob: str
    low: float
    high: float
    because: str
    by_factors: bool = True
    zero_frac: float = 0.0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, each with its weight."""

    knob: str
    values: tuple[tuple[object, float], ...]
    because: str

    def of(self, share: float) -> object:
        """The value at a share (0 to 1) of the weights."""
        left = share * sum(weight for _, weight in self.values)
        for value, weight in self.values:
            left -= weight
            if left < 0:
                return value
        return self.values[-1][0]


_GEMMS: Final = "a layer of a 1K to 7K wide model on 2K to 32K tokens"

RANGES: Final = (
    Range("step_count", 2, 8, "Megatron's default capture is two steps; few capture ten", whole=True),
    Range("microbatch_count", 1, 4, "ours: more only repeat", whole=True),
    Range("attention_us", 15, 400, _GEMMS),
    Range("dense_gemm_us", 20, 500, _GEMMS),
    Range("expert_gemm_us", 40, 1200, _GEMMS),
    Range("small_kernel_us", 3, 30, "norms, activations and permutes of the same tokens"),
    Range("head_us", 50, 800, "one vocabulary GEMM"),
    Range("optimizer_us", 100, 2000, "Adam over the shard of one rank"),
    Range("local_expert_count", 1, 8, "128 experts over 16 to 64 ranks and more", whole=True),
    Range("expert_tile_count", 24, 4000, "few tokens per expert give fewer tiles than SMs", whole=True),
    Range("dense_tile_count", 96, 4000, "mostly more tiles than SMs", whole=True),
    Range("small_block_count", 64, 8192, "a block per row or a few", whole=True),
    Range(
        "dispatch_us", 6, 800, "an all-to-all within NVLink to one across nodes: 20-60 % of an untuned step"
    ),
    Range("control_frac", 0.02, 0.25, "notify and sync kernels, without the wait for peers"),
    Range(
        "comm_block_count", 8, 32, "NCCL channels, and DeepEP's 20 to 24 SMs", by_factors=False, whole=True
    ),
    Range("beside_comm_frac", 0.0, 0.12, "memory traffic beside compute", by_factors=False),
    Range("peer_late_us", 0.3, 80, "mostly waiting is what published traces show in notify and sync kernels"),
    Range("gradient_us", 5, 500, "reduce-scatter of a layer's gradients"),
    Range("tensor_parallel_us", 10, 100, "activations within NVLink", zero_frac=0.75),
    Range("context_parallel_us", 10, 150, "keys and values to a neighbour", zero_frac=0.85),
    Range("pipeline_us", 10, 100, "activations to the next stage", zero_frac=0.75),
    Range("pipeline_bubble_us", 50, 6000, "from a late stage of few microbatches to none", zero_frac=0.2),
    Range("python_us", 0.8, 60, "tuned C++ paths to Python hooks in every module"),
    Range("api_us", 1.8, 7, "a launch call; contended drivers are slower"),
    Range("arrival_us", 1.5, 6, "4-13 us from the call's start on real machines"),
    Range("kernel_gap_us", 0.5, 1.4, "between dependent kernels on real machines", by_factors=False),
    Range("event_gap_us", 0.8, 3, "across streams", by_factors=False),
    Range("sync_return_us", 5, 40, "8 us on one device, 100 us on its neighbour; copies return in 5-20 us"),
    Range("thread_wake_us", 3, 25, "waking a sleeping thread"),
    Range("gc_pause_ms", 5, 120, "a full collection of a large Python heap", zero_frac=0.75),
    Range("gc_per_layer_frac", 0.005, 0.08, "collections come with allocations of objects"),
    Range("data_stall_ms", 0.02, 12, "a prefetched batch to a starved loader", zero_frac=0.3),
    Range("offload_mib", 4, 400, "activations of a layer", zero_frac=0.85),
    Range("host_link_gb_per_s", 20, 60, "PCIe 4 and 5, shared", by_factors=False),
    Range("retries_per_step", 0.3, 8, "the caching allocator gives memory back when short", zero_frac=0.85),
    Range("free_us", 50, 600, "cudaFree's own time"),
    Range("malloc_us", 80, 900, "cudaMalloc of a large segment"),
    Range("reserved_frac", 0.4, 0.98, "PyTorch reserves most of a GPU by design", by_factors=False),
)

CHOICES: Final = (
    Choice("gpu", (("H100", 0.5), ("GB200", 0.3), ("A100", 0.2)), "the guides' GPUs"),
    Choice(
        "dispatcher",
        (("alltoall", 0.35), ("deepep", 0.22), ("hybridep", 0.22), ("allgather", 0.06), ("none", 0.15)),
        "the dispatchers of Megatron-Core, and dense models, in which no wall of experts may be found",
    ),
    Choice("fp8", ((False, 0.7), (True, 0.3)), "ours: BF16 is still the common case"),
    Choice("grouped_gemm", ((True, 0.75), (False, 0.25)), "one GEMM per expert is the older way"),
    Choice("shared_expert", ((False, 0.6), (True, 0.4)), "about half of the model families have one"),
    Choice("ep_overlap", ((False, 0.65), (True, 0.35)), "the fix of the guides; off by default"),
    Choice("gradient_overlap", ((True, 0.7), (False, 0.3)), "on in every recipe, off by default"),
    Choice("token_sync", ((True, 0.6), (False, 0.4)), "dropless routing reads the counts; padding need not"),
    Choice(
        "end_of_step",
        (("none", 0.5), ("read_back", 0.35), ("device", 0.15)),
        "half of the runs log without waiting",
    ),
    Choice(
        "pageable_host",
        ((False, 0.75), (True, 0.25)),
        "batches and scalars through memory that is not pinned",
    ),
    Choice("graph_attention", ((False, 0.7), (True, 0.3)), "partial TE graphs, scope by scope"),
    Choice("graph_router", ((False, 0.7), (True, 0.3)), "partial TE graphs, scope by scope"),
    Choice("graph_preprocess", ((False, 0.8), (True, 0.2)), "needs the router's graph in practice"),
    Choice(
        "recompute",
        (("none", 0.5), ("norm_act", 0.18), ("core_attn", 0.1), ("moe", 0.1), ("full", 0.12)),
        "selective recompute is the guides' first choice, full the last",
    ),
)

WIDER: Final[tuple[Range | Choice, ...]] = (
    Range("step_count", 3, 4, "a capture that begins or ends within a step holds parts of three", whole=True),
    Range("microbatch_count", 1, 32, "accumulation over a small data-parallel group", whole=True),
    Choice(
        "optimizers",
        (("adam", 0.4), ("two_adams", 0.35), ("muon_adam", 0.25)),
        "Megatron-Core chains an optimizer of the dense parameters and one of the experts; Muon leaves "
        "embeddings and norms to Adam",
    ),
)
"""What finding steps hangs on, for runs that are drawn to try just that; other runs have one Adam."""

RARE: Final[tuple[Range | Choice, ...]] = (
    Choice("delayed_wgrad", ((False, 0.3), (True, 0.7)), "weight gradients on a stream of their own"),
    Choice("shared_expert_stream", ((False, 0.3), (True, 0.7)), "Megatron's shared-expert overlap"),
    Range("resident_mib", 4, 400, "weights of a layer that live in host memory"),
    Range("cpu_adam_ms", 2, 60, "Adam on the cores of one socket over the shard of a rank"),
    Range("cpu_adam_mib", 4, 128, "gradients of a layer of that shard"),
    Choice("cpu_adam_frac", ((1.0, 0.5), (0.75, 0.25), (0.4, 0.25)), "Megatron's optimizer_offload_fraction"),
    Choice(
        "first_step",
        (("loads", 0.4), ("allocates", 0.2), ("python", 0.4)),
        "libraries loaded lazily, memory taken, or a slow start",
    ),
    Range("first_step_ms", 8, 60, "modules of a few dozen kernels, 1 to 3 ms each"),
    Range("initial_kernel_count", 4, 30, "buffers and seeds that are filled", by_factors=False, whole=True),
    Choice(
        "helper",
        (("dali", 0.5), ("torch", 0.25), ("copies", 0.25)),
        "DALI, augmentation on the GPU, a prefetcher",
    ),
    Range("helper_kernel_us", 10, 120, "images of one batch, decoded and resized"),
    Range("loader_workers", 1, 8, "processes of a PyTorch DataLoader", by_factors=False, whole=True),
    Range("batch_mib", 0.25, 96, "tokens to 128 images in FP32"),
    Range("hiccup_count", 1, 2, "a neighbour on the node, a file system", by_factors=False, whole=True),
    Range("hiccup_ms", 10, 80, "one checkpoint, evaluation or stall"),
    Range("startup_ms", 400, 6000, "a first cudaFree of 6 s, a first launch of 3 s in real recordings"),
    Choice("autograd_thread", ((True, 0.5), (False, 0.5)), "one thread launches all under JAX and compiled"),
    Choice(
        "precision",
        (("fp32", 0.4), ("convolution", 0.3), ("tf32", 0.3)),
        "PyTorch's default is FP32; TF32 is on for convolutions",
    ),
    Choice("whole_graph", ((False, 0.5), (True, 0.5)), "full-iteration graphs"),
    Range(
        "late_batch_frac",
        0.1,
        0.4,
        "a fifth to a quarter of the steps of real image training",
        by_factors=False,
    ),
    Range("first_batch_ms", 300, 5000, "2.5 and 5.3 s in real recordings, as processes are started"),
    Choice("gradients", (("sharded", 0.5), ("all_reduce", 0.5)), "distributed optimizer, or plain DDP"),
    Range("bucket_layers", 1, 4, "from bucket_cap_mb of a layer to a quarter of the model", whole=True),
    Range("buffer_count", 12, 60, "60 copies and a broadcast a step in a real DDP recording", whole=True),
    Choice("adam", (("fused", 0.5), ("foreach", 0.5)), "PyTorch's default is foreach, recipes ask for fused"),
    Range("adam_launches", 3, 12, "chunks of as many tensors as fit into a launch", whole=True),
    Choice("unfused", ((False, 0.5), (True, 0.5)), "plain PyTorch modules beside Transformer Engine"),
    Choice("autocast", ((False, 0.5), (True, 0.5)), "mixed precision by casts in front of matrix products"),
    Choice(
        "container",
        (("this", 0.4), ("libraries", 0.3), ("all", 0.3)),
        "an update of CUDA, or of everything",
    ),
)
"""What no drawn run has unless a family of runs asks for it."""
