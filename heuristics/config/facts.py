"""Names that conditions may use beside knobs: facts derived from several knobs, versions, the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from packaging.version import Version

from heuristics.config.view import Config


@dataclass(frozen=True, slots=True)
class Fact:
    """A name. `of`: its value, None where unknown. `knobs` it is made of; `option` that gives it.

    `words`: the name in sentences, where it is not one itself.
    """

    of: Callable[[Config], object]
    knobs: tuple[str, ...] = ()
    option: str = ""
    words: str = ""


_TP: Final = "tensor_model_parallel_size"
_CP: Final = "context_parallel_size"
_PP: Final = "pipeline_model_parallel_size"
_EP: Final = "expert_model_parallel_size"
_ETP: Final = "expert_tensor_parallel_size"


def version(numbers: tuple[int, ...] | None) -> Version | None:
    """A version that compares with a text such as '2.8.0'."""
    return None if numbers is None else Version(".".join(map(str, numbers)))


def _release(package: str) -> Callable[[Config], Version | None]:
    """A package's version."""
    return lambda config: version(getattr(config, package))


def _comm(name: str, words: str) -> Fact:
    """A switch of EP overlap, which Bridge's section `comm_overlap` may set as well."""
    return Fact(lambda c: c.expert_overlap(name), (name, f"comm_overlap.{name}"), words=words)


def _recompute_list(config: Config) -> tuple[str, ...] | None:
    """The list as it stands, whatever the granularity; else what the granularity means."""
    knob = "recompute_modules"
    return config.names(knob) if config.known(knob) else config.recompute_modules()


def _virtual_stages(config: Config) -> bool | None:
    """A layout text has virtual stages of its own."""
    if config.value("pipeline_model_parallel_layout"):
        return True
    unset = config.null("virtual_pipeline_model_parallel_size")
    return None if unset is None else not unset


_RECOMPUTE: Final = ("recompute_granularity", "recompute_modules", "moe_layer_recompute")
_OFFLOAD: Final = ("fine_grained_activation_offloading", "offload_modules")

FACTS: Final[Mapping[str, Fact]] = {
    # versions, framework, hardware
    "core": Fact(_release("core"), option="--core-version", words="Megatron-Core"),
    "bridge": Fact(_release("bridge"), option="--bridge-version", words="Megatron-Bridge"),
    "te": Fact(_release("te"), option="--te-version", words="Transformer Engine"),
    "torch": Fact(_release("torch"), option="--torch-version", words="PyTorch"),
    "capability": Fact(lambda c: version(c.capability), option="--gpu-model", words="compute capability"),
    "framework": Fact(lambda c: c.framework, option="--config"),
    "packed": Fact(lambda c: c.packed_sequences, option="--packed-sequences"),
    "stage": Fact(lambda c: c.stage, option="--stage"),
    # sizes; a size that is null is 1, of ETP it is TP
    "tp": Fact(lambda c: c.tp, (_TP,), words="TP"),
    "cp": Fact(lambda c: c.cp, (_CP,), words="CP"),
    "pp": Fact(lambda c: c.pp, (_PP,), words="PP"),
    "ep": Fact(lambda c: c.ep, (_EP,), words="EP"),
    "etp": Fact(lambda c: c.etp, (_ETP, _TP), words="ETP"),
    "dp": Fact(lambda c: c.dp, ("world_size", _TP, _CP, _PP), words="DP"),
    "edp": Fact(lambda c: c.edp, ("world_size", _ETP, _EP, _PP), words="EDP"),
    "virtual_stages": Fact(
        _virtual_stages,
        ("virtual_pipeline_model_parallel_size", "pipeline_model_parallel_layout"),
        words="virtual stages",
    ),
    "expert_parallel": Fact(lambda c: c.expert_parallel, (_EP,), "--ep", "experts over several ranks"),
    "pipeline_parallel": Fact(lambda c: c.pipeline_parallel, (_PP,), "--pp", "pipeline stages"),
    # features
    "moe": Fact(lambda c: c.moe(), ("num_moe_experts",), words="several experts"),
    "ep_overlap": _comm("overlap_moe_expert_parallel_comm", "EP overlap"),
    "delayed_wgrad": _comm("delay_wgrad_compute", "delayed weight gradients"),
    "early_reduction": Fact(
        lambda c: c.grad_reduce_overlap,
        ("ddp.overlap_grad_reduce", "comm_overlap.overlap_grad_reduce"),
        words="overlap_grad_reduce",
    ),
    "low_precision": Fact(lambda c: c.low_precision(), ("fp8", "fp4"), "--precision", "low precision"),
    "fp8_matrices": Fact(lambda c: c.fp8(), ("fp8",), "--precision", "FP8"),
    "full_recompute": Fact(lambda c: c.full_recompute, (_RECOMPUTE[0],), words="full recompute"),
    # lists, as the framework understands them
    "recomputed": Fact(lambda c: c.recompute_modules(), _RECOMPUTE, words="recomputed modules"),
    "recompute_list": Fact(_recompute_list, _RECOMPUTE, words="recompute_modules"),
    "offloaded": Fact(lambda c: c.offloads(), _OFFLOAD, words="offloaded modules"),
}
"""By name. A name has one meaning in every table."""
