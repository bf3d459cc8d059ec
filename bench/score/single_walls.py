"""Every wall alone, in nine shapes and more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench.score.scenario import COMM, COMP, HOST, MEM, PLAIN, SMALL, TUNED, Scenario

COMMUNICATION_WALLS: Final = (
    Scenario("NCCL all-to-all across nodes", COMM, replace(PLAIN, dispatch_us=600, peer_late_us=30)),
    Scenario(
        "DeepEP waits for its peers",
        COMM,
        replace(PLAIN, dispatcher="deepep", dispatch_us=80, peer_late_us=400),
    ),
    Scenario("HybridEP across domains", COMM, replace(PLAIN, dispatcher="hybridep", dispatch_us=400)),
    Scenario("all-gather dispatcher", COMM, replace(PLAIN, dispatcher="allgather", dispatch_us=350)),
    Scenario(
        "gradients reduced after the backward",
        COMM,
        replace(TUNED, gradient_overlap=False, gradient_us=600),
    ),
    Scenario("gradients longer than the backward", COMM, replace(TUNED, gradient_us=3_000)),
    Scenario("tensor parallel collectives", COMM, replace(TUNED, tensor_parallel_us=180)),
    Scenario("context parallel exchange", COMM, replace(TUNED, context_parallel_us=500, attention_us=160)),
    Scenario("pipeline bubbles", COMM, replace(TUNED, pipeline_us=60, pipeline_bubble_us=5_000)),
    Scenario(
        "overlapped exchange longer than the compute beside it",
        COMM,
        replace(PLAIN, ep_overlap=True, microbatch_count=4, layer_count=3, dispatch_us=1_100),
    ),
    Scenario("slow links of an A100", COMM, replace(PLAIN, gpu="A100", dispatch_us=1_100, peer_late_us=60)),
    Scenario(
        "control kernels, not payload",
        COMM,
        replace(PLAIN, dispatcher="deepep", dispatch_us=400, control_frac=0.25, peer_late_us=80),
    ),
)

HOST_WALLS: Final = (
    Scenario("slow Python", HOST, replace(TUNED, gpu="GB200", python_us=30, api_us=6)),
    Scenario("slow launch calls", HOST, replace(TUNED, gpu="GB200", python_us=1, api_us=25)),
    Scenario(
        "token counts read in every layer",
        HOST,
        replace(
            TUNED,
            gpu="GB200",
            python_us=12,
            sync_return_us=40,
            attention_us=40,
            dense_gemm_us=80,
            expert_gemm_us=200,
            small_kernel_us=10,
            dispatch_us=15,
            head_us=100,
            optimizer_us=200,
            gradient_us=10,
        ),
    ),
    Scenario(
        "garbage collected within steps",
        HOST,
        replace(TUNED, gc_pause_ms=14, gc_per_layer_frac=0.4, end_of_step="read_back"),
    ),
    Scenario("starved data loader", HOST, replace(TUNED, data_stall_ms=11, end_of_step="read_back")),
    Scenario("many small kernels", HOST, replace(SMALL, python_us=14)),
    Scenario(
        "read back at a step's end, cold start of the next",
        HOST,
        replace(
            SMALL,
            python_us=4,
            end_of_step="read_back",
            pageable_host=True,
            microbatch_count=1,
            layer_count=3,
            data_stall_ms=1.2,
        ),
    ),
    Scenario(
        "optimizers of many launches",
        HOST,
        replace(
            TUNED,
            gpu="GB200",
            optimizers="muon_adam",
            optimizer_us=60,
            microbatch_count=1,
            layer_count=6,
            python_us=24,
        ),
    ),
    Scenario(
        "one FP8 GEMM per expert, each quantised",
        HOST,
        replace(
            TUNED,
            grouped_gemm=False,
            local_expert_count=8,
            fp8=True,
            expert_tile_count=4_000,
            expert_gemm_us=200,
            python_us=20,
        ),
    ),
    Scenario(
        "two threads that wake each other",
        HOST,
        replace(
            TUNED,
            gpu="GB200",
            ep_overlap=True,
            microbatch_count=4,
            layer_count=3,
            python_us=24,
            thread_wake_us=25,
        ),
    ),
    Scenario(
        "captured in part, the rest still launched",
        HOST,
        replace(TUNED, gpu="GB200", python_us=45, graph_attention=True, graph_router=True),
    ),
    Scenario(
        "device synchronised after every step",
        HOST,
        replace(
            SMALL,
            gpu="GB200",
            end_of_step="device",
            sync_return_us=40,
            python_us=3,
            layer_count=3,
            microbatch_count=1,
            dispatcher="hybridep",
            data_stall_ms=0.5,
        ),
    ),
)

MEMORY_WALLS: Final = (
    Scenario("core attention again", MEM, replace(TUNED, recompute="core_attn", attention_us=1_100)),
    Scenario("expert layers again", MEM, replace(TUNED, recompute="moe", expert_gemm_us=500)),
    Scenario("every layer again", MEM, replace(TUNED, recompute="full")),
    Scenario(
        "every layer again with DeepEP",
        MEM,
        replace(TUNED, recompute="full", dispatcher="deepep", dispatch_us=60),
    ),
    Scenario(
        "expert layers again with HybridEP",
        MEM,
        replace(TUNED, recompute="moe", dispatcher="hybridep", dispatch_us=60, expert_gemm_us=500),
    ),
    Scenario(
        "every layer again with all-gather",
        MEM,
        replace(TUNED, recompute="full", dispatcher="allgather", dispatch_us=60),
    ),
    Scenario(
        "every layer again in FP8",
        MEM,
        replace(
            TUNED,
            recompute="full",
            fp8=True,
            gpu="GB200",
            attention_us=300,
            dense_gemm_us=600,
            expert_gemm_us=1_200,
            python_us=1.5,
        ),
    ),
    Scenario("offload over a slow link", MEM, replace(TUNED, offload_mib=160, host_link_gb_per_s=25)),
    Scenario(
        "offload from an A100",
        MEM,
        replace(TUNED, gpu="A100", offload_mib=400, host_link_gb_per_s=20, dispatcher="allgather"),
    ),
    Scenario(
        "allocator retries",
        MEM,
        replace(TUNED, retries_per_step=4, free_us=500, malloc_us=900, reserved_frac=0.97),
    ),
    Scenario(
        "allocator retries with DeepEP",
        MEM,
        replace(TUNED, dispatcher="deepep", retries_per_step=6, free_us=400, malloc_us=900),
    ),
)

COMPUTE_WALLS: Final = (
    Scenario("few tiles in the expert GEMMs", COMP, replace(TUNED, expert_tile_count=48)),
    Scenario(
        "few tiles on a GB200",
        COMP,
        replace(
            TUNED,
            gpu="GB200",
            expert_tile_count=50,
            expert_gemm_us=700,
            attention_us=300,
            dense_gemm_us=400,
            python_us=1.5,
        ),
    ),
    Scenario("few tiles on an A100", COMP, replace(TUNED, gpu="A100", expert_tile_count=45)),
    Scenario(
        "one GEMM per expert",
        COMP,
        replace(TUNED, grouped_gemm=False, local_expert_count=8, expert_tile_count=400),
    ),
    Scenario("dense GEMMs of few tiles", COMP, replace(TUNED, dense_tile_count=60)),
    Scenario(
        "small batch",
        COMP,
        replace(TUNED, small_block_count=50, dense_tile_count=64, expert_tile_count=64, python_us=1.5),
    ),
    Scenario(
        "few tiles with DeepEP",
        COMP,
        replace(TUNED, dispatcher="deepep", expert_tile_count=40, dispatch_us=40),
    ),
    Scenario(
        "few tiles in FP8",
        COMP,
        replace(TUNED, fp8=True, expert_tile_count=36, expert_gemm_us=500, python_us=1.5),
    ),
    Scenario(
        "few tiles in a HybridEP run with a shared expert",
        COMP,
        replace(TUNED, dispatcher="hybridep", shared_expert=True, expert_tile_count=40),
    ),
)
