"""A run as opinions see it: what its trace shows, and what was given about it. None is unknown, never no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from traces.names.frameworks import Framework
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog

WallId = Literal["memory", "communication", "host_overhead", "compute"]
WALL_IDS: Final[tuple[WallId, ...]] = ("memory", "communication", "host_overhead", "compute")
"""Order of the workflow: what does not fit cannot be tuned; compute comes after the others."""

Guidance = Literal["seed", "main-2026-08"]
NEWEST: Final[Guidance] = "main-2026-08"
"""NVIDIA's published guides: `seed` of Megatron-Bridge up to 0.6, `main-2026-08` of its main since then."""

Stage = Literal["bring_up", "tuned"]
Routing = Literal["dropless", "force_balance", "drop_pad"]


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of a run. Sizes are counts of ranks; `gpu` is a family such as H100.

    `env`: variables as `NAME=VALUE`, which a YAML of Megatron-Bridge has no place for.
    `flex_package`: whether the package of DeepEP or HybridEP can be imported there.
    `graph_impl` and `graph_modules`: as Megatron-Core's options take them. `router_padding`: the router pads
    what it sends to each expert for low precision. `te_op_fuser`: Transformer Engine's op fuser is on.
    """

    gpu: str | None = None
    nvlink_domain: int | None = None
    world_size: int | None = None
    gpus_per_node: int | None = None
    ep: int | None = None
    etp: int | None = None
    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    precision: str | None = None
    stage: Stage | None = None
    routing: Routing | None = None
    family: str | None = None
    memory_tight: bool | None = None
    flex_package: bool | None = None
    cpu_bound_to_numa: bool | None = None
    core_version: str | None = None
    bridge_version: str | None = None
    torch_version: str | None = None
    te_version: str | None = None
    container: str | None = None
    pp_layout: str | None = None
    graph_impl: str | None = None
    graph_modules: tuple[str, ...] | None = None
    packed_sequences: bool | None = None
    router_padding: bool | None = None
    te_op_fuser: bool | None = None
    env: tuple[str, ...] | None = None
    guidance: Guidance = NEWEST


@dataclass(frozen=True, slots=True)
class Shown:
    """What the trace shows of a run, over all its ranks.

    `framework`: whose run the names show, `none` where they show none. `moe`: routes tokens. `gpu`: family of
    the GPU; `capability`: compute capability (major, minor).
    `dispatcher`: as in the document (`alltoall`, `deepep`, ..., `none`, `unknown`); `internode`: its kernels
    cross nodes. `*_active`: such communication runs. `gathers_unresolved`: gathers or scatters run
    whose purpose nothing tells. `graph_frac`: share of kernel work in CUDA graphs.
    `recompute_modules`: Megatron-Core's labels of what runs again; empty: none. `a2a_waiting_frac`: share of
    expert all-to-all that is like waiting. `short_kernel_frac`: share of kernels under 10 us.
    `absent_frac`: time without compute by cause, as part of the window. `recorder`: the kind of trace.
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
    tp_active: bool | None = None
    pp_active: bool | None = None
    cp_active: bool | None = None
    dp_active: bool | None = None
    gathers_unresolved: bool | None = None
    tp_overlap: bool | None = None
    graph_frac: float | None = None
    recompute_modules: tuple[str, ...] | None = None
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
    out_of_memory: str | None = None
    absent_frac: Mapping[str, float] | None = None
    recorder: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Everything opinions may rest on. What was given outweighs what the trace shows."""

    shown: Shown = field(default_factory=Shown)
    given: Given = field(default_factory=Given)
    cost_by_kind_ns: Mapping[WallId, Mapping[str, int]] = field(default_factory=dict)
    """What each wall would give back at most, by kind; a wall that could not be measured is not in it."""
    window_ns: int = 0
    total_ns: Mapping[WallId, int] = field(default_factory=dict)
    """What each wall would give back at most; kinds taken away alone need not add up to it."""
    does_not_fit: bool = False
    """Hard evidence that memory is too small."""
    total_frac: Mapping[WallId, float] = field(default_factory=dict)
    """What each wall would give back at most, as part of the windows of the ranks that tell it."""
    settings: Settings = field(default_factory=Settings)
    """The configuration: the options, then what a file says, then a log, then what the trace shows."""
    log: TrainingLog | None = None
    framework: Framework = "megatron"
    """Whose settings a plan may name: what the trace shows, Megatron where its configuration was given."""

    @property
    def gpu(self) -> str | None:
        """GPU family, such as H100 or GB200."""
        return self.given.gpu or self.shown.gpu

    @property
    def precision(self) -> str | None:
        """Precision of the matrix work."""
        return self.given.precision or self.shown.precision

    def cost_ns(self, wall: WallId, kinds: tuple[str, ...]) -> int | None:
        """What some kinds of a wall cost together, all of them if none is named; None where not measured."""
        by_kind = self.cost_by_kind_ns.get(wall)
        if by_kind is None:
            return None
        if not by_kind:
            return self.total_ns.get(wall)
        total_ns = self.total_ns.get(wall, sum(by_kind.values()))
        return min(total_ns, sum(ns for kind, ns in by_kind.items() if kind in kinds)) if kinds else total_ns
