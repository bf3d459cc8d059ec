"""What the user gives about a run. None is unknown, never no."""

from dataclasses import dataclass
from typing import Final, Literal

Guidance = Literal["seed", "main-2026-08"]
NEWEST: Final[Guidance] = "main-2026-08"
"""NVIDIA's published guides: `seed` of Megatron-Bridge up to 0.6, `main-2026-08` of its main since then."""

Stage = Literal["bring_up", "tuned"]
Routing = Literal["dropless", "force_balance", "drop_pad"]


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gives about a run. Sizes are counts of ranks; `gpu` is a family such as H100.

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
