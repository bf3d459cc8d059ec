"""Facts of dispatchers and of what they run on: the backend, its group, its NVLink domain; FSDP."""

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.logic import any_of
from heuristics.config.view import Config

_BACKEND: Final = "moe_flex_dispatcher_backend"
_DEEPEP: Final = "moe_enable_deepep"
_PAD: Final = "moe_pad_expert_input_to_capacity"
_EP: Final = "expert_model_parallel_size"
_DOMAIN: Final = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
_FSDP: Final = ("ddp.use_megatron_fsdp", "use_torch_fsdp2")


def _flex_backend(config: Config) -> str | None:
    """The backend that flex runs on, where it runs; before 0.16 DeepEP alone. No text: null."""
    backend = config.word(_BACKEND)
    if backend:
        return backend
    if config.on(_DEEPEP) or config.before("core", "0.16.0"):
        return "deepep"
    return "" if config.null(_BACKEND) else None


def _padded(config: Config) -> bool | None:
    """Expert inputs are padded to capacity: as configured, else as the routing is given."""
    padded, routing = config.on(_PAD), config.routing
    return padded if padded is not None or routing is None else routing == "drop_pad"


def _domain_ranks(config: Config) -> int | str | None:
    """What HybridEP is told; a text that is no number as it is."""
    text = config.env(_DOMAIN)
    return int(text) if text and text.isascii() and text.isdigit() else text or None


def _ep_in_domain(config: Config) -> int | None:
    topology = config.hybrid_topology
    return None if topology is None else topology.ranks_per_domain


def _gpu(config: Config) -> str | None:
    return config.gpu_family.name if config.gpu_family else None


DISPATCH_FACTS: Final[Mapping[str, Fact]] = {
    "flex_backend": Fact(_flex_backend, (_BACKEND, _DEEPEP), words="backend"),
    "expert_tensor": Fact(
        lambda c: c.expert_tensor_size,
        ("expert_tensor_parallel_size", "tensor_model_parallel_size"),
        words="ETP",
    ),
    "padded_to_capacity": Fact(_padded, (_PAD,), "--routing", "padding to capacity"),
    "nvlink_domain": Fact(
        lambda c: c.nvlink_domain, option="--nvlink-domain or --gpu-model", words="NVLink domain"
    ),
    "ep_in_domain": Fact(_ep_in_domain, (_EP,), "--gpu-model", "EP in one NVLink domain"),
    "domain_ranks": Fact(_domain_ranks, (f"env.{_DOMAIN}",), words=_DOMAIN),
    "gpu": Fact(_gpu, option="--gpu-model", words="GPU"),
    "hardware": Fact(lambda c: c.hardware_class, option="--gpu-model", words="hardware"),
    "container": Fact(lambda c: c.container, option="--container", words="container"),
    "fsdp": Fact(lambda c: any_of(*(c.on(knob) for knob in _FSDP)), _FSDP, words="FSDP"),
}
"""By name, as in `heuristics.config.facts`."""
