"""A host that launches later: pauses, waits, where its process runs, and a GPU too fast for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heuristics.comparison.figures import milliseconds, signed_milliseconds
from heuristics.comparison.suspects.rules.graphs import LESS, graph_shares
from heuristics.comparison.suspects.rules.rule import Rule, Signs, way_of
from heuristics.comparison.suspects.rules.signs import CLASSES, HOST, MAIN, grew, kernel_counts, same_count
from heuristics.comparison.suspects.rules.versions import crossed
from heuristics.comparison.suspects.view import View
from heuristics.result.told import known
from heuristics.result.trace import Trace
from heuristics.walls.words import percent

BINDING: Final = ("launcher.numa_binding", "cpu_bound_to_numa")
_GPU_ROWS: Final = (*CLASSES, "exposed_comm.*", "exposed_copy.*")
_AFTER_HOST: Final = (
    "launch_latency.kernel_gap",
    "launch_starved.sync",
    "launch_starved.token_count_sync",
)
_OWN: Final = (*HOST, "launch_latency.arrival")


def _of_row(name: str) -> Callable[[View], Signs]:
    """The row is its own sign: nothing else has that name."""

    def seen(view: View) -> Signs:
        rows = grew(view, name)
        return tuple(f"{row.row.partition('.')[2]} is what the launching thread does then" for row in rows)

    return seen


def _later(view: View) -> Signs:
    """The host is later for as many kernels, and not because the GPU has less to do."""
    before, after = kernel_counts(view)
    shares = graph_shares(view)
    host_ns, gpu_ns = view.delta_ns(*_OWN), view.delta_ns(*_GPU_ROWS)
    regraphed = shares is not None and abs(shares[1] - shares[0]) >= LESS.value
    if host_ns <= 0 or not before or not same_count(before, after) or regraphed:
        return None
    if gpu_ns <= -MAIN.value * host_ns:
        return None
    return (view.arrow("compute kernels a step", f"{before:.0f}", f"{after:.0f}"),)


def _longer_gaps(view: View) -> Signs:
    """As many kernels and as many of them in graphs, and longer gaps."""
    before, after = kernel_counts(view)
    shares = graph_shares(view)
    regraphed = shares is not None and abs(shares[1] - shares[0]) >= LESS.value
    if not before or not same_count(before, after) or regraphed:
        return None
    return (view.arrow("compute kernels a step", f"{before:.0f}", f"{after:.0f}"),)


def _uncovered(view: View) -> Signs:
    """The GPU has less to do, so that a host as slow as before shows."""
    host_ns, gpu_ns = view.delta_ns(*_OWN), view.delta_ns(*_GPU_ROWS)
    if host_ns <= 0 or gpu_ns > -MAIN.value * host_ns:
        return None
    return (f"compute, communication and copies move {signed_milliseconds(view.sign * gpu_ns)} a step",)


def _loses_binding(view: View) -> Signs:
    """As a host that is later; ruled out where the side after is said to be bound."""
    _, bound = view.known(*BINDING)
    if bound is True:
        return None
    unbound = "not bound" if bound is False else "not said to be bound"
    signs = _later(view)
    return None if signs is None else (*signs, f"ranks are {unbound} to NUMA nodes there")


def _overlap_costs_host(view: View) -> Signs:
    host_ns = view.delta_ns(*HOST, "launch_starved.sync")
    hidden_ns = max(-view.delta_ns("exposed_comm.ep_*", "exposed_comm.sendrecv_unresolved"), 0)
    if host_ns <= hidden_ns:
        return None
    return (f"the host costs {milliseconds(host_ns)} a step, and {milliseconds(hidden_ns)} more are hidden",)


def _profiler(view: View) -> Signs:
    before, after = (_perturbed(side) for side in (view.facts.base.traces, view.facts.new.traces))
    signs = _of_row("launch_starved.profiler")(view) or ()
    if before is not None and after is not None and after > before:
        signs += (view.arrow("profiler's part of the step", percent(before), percent(after)),)
    return signs


def _perturbed(traces: tuple[Trace, ...]) -> float | None:
    told = (known(trace.capture.perturbation_frac) for trace in traces)
    return max((frac for frac in told if frac is not None), default=None)


NCCL_CPU: Final = Rule(
    id="nccl_host_cpu",
    title="NCCL 2.30 gives each rank its CPUs back, and nothing else binds it next to its GPU",
    mirrored="NCCL 2.29 leaves each rank on the CPUs next to its GPU",
    slower=(*_OWN, *_AFTER_HOST, "idle"),
    seen=_loses_binding,
    said=("version.nccl",),
    says=crossed("2.30", from_="2.29"),
    needs="said",
    next="bind each rank: numactl --cpunodebind=N --membind=N, or bindpcie (HST-1); record again",
    source=(
        "Megatron-Bridge v0.5.1 release notes, known issues: MoE with TP and EP slower in 26.06; NVIDIA/nccl "
        "issue 2033: 2.29.2 to 2.29.7 leave the thread bound, 2.30 restores its affinity"
    ),
)
HOST_SLOWER: Final = Rule(
    id="host_slower",
    title="The host is later for the same kernels: binding, clocks or neighbours of its CPUs",
    mirrored="The host is earlier for the same kernels: binding, clocks or neighbours of its CPUs",
    slower=_OWN,
    seen=_later,
    said=BINDING,
    says=way_of(-1),
    next="compare numactl --show in both jobs; run the new side with each rank bound (HST-1)",
    source=(
        "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8, 2.4: 691.49 to 762.12 "
        "TFLOPS with binding; NVIDIA/exemplar-performance issue 38: all ranks on one node of GB300"
    ),
)
UNCOVERED: Final = Rule(
    id="host_uncovered",
    title="The GPU is done sooner and waits for a host that is as before",
    mirrored="The GPU has more to do, which covers the host",
    slower=_OWN,
    seen=_uncovered,
    needs="seen",
    next="look at what got faster on the GPU; the host is the next to mend (HST-3, HST-1)",
    source="Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64: fast work waits for the host",
)
GAPS: Final = Rule(
    id="kernel_gaps",
    title="The GPU takes longer from one kernel to the next",
    mirrored="The GPU takes less from one kernel to the next",
    slower=("launch_latency.kernel_gap",),
    seen=_longer_gaps,
    said=("version.cuda", "env.CUDA_DEVICE_MAX_CONNECTIONS", "gpu"),
    needs="seen",
    next="compare driver and power state of both GPUs (nvidia-smi -q); look for events between streams",
    source="ours: with as many kernels and graphs as before only the GPU and its driver are left",
)
EP_OVERLAP: Final = Rule(
    id="ep_overlap_host",
    title="The overlap of expert all-to-all costs the host more than it hides",
    mirrored="Without the overlap of expert all-to-all the host has less to do",
    slower=(*_OWN, "launch_starved.sync", "launch_latency.kernel_gap"),
    seen=_overlap_costs_host,
    said=("*overlap_moe_expert_parallel_comm", "*delay_wgrad_compute"),
    says=way_of(1),
    needs="said",
    next="run the new side without overlap_moe_expert_parallel_comm",
    source=(
        "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8, 3.2; Megatron-Bridge, "
        "docs/training/communication-overlap.md at 067f987d: small EP with alltoall can get slower"
    ),
)
GC: Final = Rule(
    id="gc_pauses",
    title="Garbage collection holds launches up",
    mirrored="Garbage collection holds launches up less",
    slower=("launch_starved.gc",),
    seen=_of_row("launch_starved.gc"),
    said=("train.manual_gc*",),
    next="set manual_gc with manual_gc_interval on the new side (HST-2) and record again",
    source="Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
)
DATA: Final = Rule(
    id="data_loader",
    title="The data loader holds launches up",
    mirrored="The data loader holds launches up less",
    slower=("launch_starved.data",),
    seen=_of_row("launch_starved.data"),
    said=("*num_workers", "*dataloader*"),
    next="time the loader alone on that host; compare storage and number of workers",
    source="ours: what the row says",
)
TOKEN_COUNTS: Final = Rule(
    id="token_count_syncs",
    title="Layers wait for the host to read their token counts",
    mirrored="Layers wait less for the host to read their token counts",
    slower=("launch_starved.token_count_sync",),
    seen=_of_row("launch_starved.token_count_sync"),
    said=(
        "moe_expert_capacity_factor",
        "moe_expert_rank_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "moe_permute_fusion*",
        "moe_token_dispatcher_type",
        "moe_flex_dispatcher_backend",
        "moe_router_padding_for_quantization",
    ),
    next="run the new side with routing and dispatcher as on the base; HST-6 takes these reads away",
    source="Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py at d98e8a64",
)
SYNCS: Final = Rule(
    id="host_syncs",
    title="The host synchronises more with the GPU",
    mirrored="The host synchronises less with the GPU",
    slower=("launch_starved.sync",),
    seen=_of_row("launch_starved.sync"),
    said=(
        "*check_for_nan_in*",
        "logger.timing_log_level",
        "moe_router_*",
        "*overlap_moe_expert_parallel_comm",
    ),
    next="find the synchronising calls of the new trace under their NVTX ranges",
    source="Megatron-LM, megatron/training/arguments.py at d98e8a64: options that read values back",
)
LAZY: Final = Rule(
    id="lazy_init",
    title="Modules are loaded or compiled inside the steps",
    mirrored="Fewer modules are loaded or compiled inside the steps",
    slower=("launch_starved.lazy_init",),
    seen=_of_row("launch_starved.lazy_init"),
    next="record later steps on both sides, after warm-up",
    source="ours: what the row says",
)
PROFILER: Final = Rule(
    id="profiler_overhead",
    title="The profiler takes more of the step",
    mirrored="The profiler takes less of the step",
    slower=("launch_starved.profiler",),
    seen=_profiler,
    said=("profiling.*",),
    needs="any",
    next="record both sides with the same nsys options; take the size from the logs of unprofiled runs",
    source="Megatron-Bridge, skill nsys-analysis: profiled steps are perturbed",
)

RULES: Final = (
    NCCL_CPU, HOST_SLOWER, UNCOVERED, GAPS, EP_OVERLAP, GC, DATA, TOKEN_COUNTS, SYNCS, LAZY, PROFILER,
)  # fmt: skip
