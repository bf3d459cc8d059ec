"""What the environment must say. Read at core_v0.12.0 to core_v0.19.0 and d98e8a64; Bridge 067f987d."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.dispatcher import BACKEND, TYPE, flex_backend
from heuristics.rules.ep_overlap import KNOB as OVERLAP
from heuristics.rules.ep_overlap import overlap
from heuristics.rules.legacy import LM, Rule

_CONNECTIONS: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
_ENV_CONNECTIONS: Final = f"env.{_CONNECTIONS}"
_FSDP: Final = ("ddp.use_megatron_fsdp", "use_torch_fsdp2")
_MESH: Final = ("tensor_model_parallel_size", "context_parallel_size")
_DOMAIN: Final = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
_TOPOLOGY: Final = "Megatron-Bridge, scripts/performance/utils/utils.py; DeepEP, hybrid_ep_buffer.py"


def fsdp(config: Config) -> bool | None:
    """Whether PyTorch's FSDP or Megatron's shards the parameters."""
    return any_of(*(config.on(knob) for knob in _FSDP))


def _sharded_attention(config: Config) -> bool | None:
    return any_of(config.more_than_one(config.tp), config.more_than_one(config.cp))


def _topology_unlike(config: Config) -> bool | None:
    topology, text = config.hybrid_topology, config.env(_DOMAIN)
    if topology is None or not text:
        return None
    return not text.isdigit() or int(text) != topology.ranks_per_domain


def _multi_node_unlike(config: Config) -> bool | None:
    topology = config.hybrid_topology
    return (
        None if topology is None else negated(config.env_is("USE_MNNVL", "1" if topology.multi_node else "0"))
    )


RULES: Final = (
    Rule(
        "max-connections-one",
        (_ENV_CONNECTIONS, *_MESH, OVERLAP, *_FSDP),
        "before Blackwell TP or CP needs CUDA_DEVICE_MAX_CONNECTIONS=1",
        lambda c: all_of(
            c.before_blackwell(),
            _sharded_attention(c),
            negated(overlap(c)),
            negated(fsdp(c)),
            negated(c.env_is(_CONNECTIONS, "1")),
        ),
        "megatron_lm",
        LM,
        "CUDA_DEVICE_MAX_CONNECTIONS=1",
        fix="COM-13",
    ),
    Rule(
        "max-connections-fsdp",
        (_ENV_CONNECTIONS, *_FSDP),
        "FSDP does not take CUDA_DEVICE_MAX_CONNECTIONS=1",
        lambda c: all_of(fsdp(c), c.env_is(_CONNECTIONS, "1")),
        "ours",
        f"{LM}; Megatron-Bridge, training/config.py",
        "CUDA_DEVICE_MAX_CONNECTIONS=8, or unset",
        fix="COM-13",
    ),
    Rule(
        "max-connections-overlap",
        (_ENV_CONNECTIONS, OVERLAP, f"comm_overlap.{OVERLAP}"),
        "EP overlap wants CUDA_DEVICE_MAX_CONNECTIONS above 1: nothing runs beside anything with one",
        lambda c: all_of(overlap(c), c.env_is(_CONNECTIONS, "1")),
        "ours",
        "Megatron-Core, transformer/moe/README.md",
        "CUDA_DEVICE_MAX_CONNECTIONS=32",
        level="warning",
        since="0.14.0",
        fix="COM-13",
    ),
    Rule(
        "hybridep-domain",
        (f"env.{_DOMAIN}", TYPE, BACKEND, "expert_model_parallel_size"),
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN is EP, or what of it one NVLink domain holds: another "
        "value costs RDMA traffic or hangs",
        lambda c: all_of(flex_backend(c, "hybridep"), _topology_unlike(c)),
        "ours",
        _TOPOLOGY,
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN as EP, at most 8 on boards of eight",
        since="0.16.0",
        fix="COM-3",
    ),
    Rule(
        "hybridep-multi-node",
        ("env.USE_MNNVL", TYPE, BACKEND),
        "HybridEP takes USE_MNNVL=1 on NVL72 and 0 on boards of eight",
        lambda c: all_of(flex_backend(c, "hybridep"), _multi_node_unlike(c)),
        "ours",
        _TOPOLOGY,
        "USE_MNNVL as the NVLink domain is",
        level="warning",
        since="0.16.0",
        fix="COM-3",
    ),
    Rule(
        "nvls-without-buffers",
        ("env.NCCL_NVLS_ENABLE", "ddp.nccl_ub"),
        "NCCL user buffers switch NCCL_NVLS_ENABLE on",
        lambda c: all_of(c.on("ddp.nccl_ub"), c.env_is("NCCL_NVLS_ENABLE", "0")),
        "ours",
        "Megatron-Core, nccl_allocator.py",
        "NCCL_NVLS_ENABLE=1, or ddp.nccl_ub off",
        level="ignored",
        since="0.13.0",
        fix="MEM-13",
    ),
)
