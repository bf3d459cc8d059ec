"""Modules that Megatron-Core can recompute, with what makes each legal, and those that graphs capture."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from heuristics.config.families import MLA, NO_SHARED, QWEN, by_family
from heuristics.config.logic import all_of
from heuristics.config.versions import numbers
from heuristics.facts.dictionary import fact
from heuristics.recipes import Published
from heuristics.run.run import Run
from traces.toml_tables import read_keyed


@fact
def replays(run: Run) -> bool | None:
    """Whether CUDA graphs replay, of whatever implementation."""
    if run.config.graph_impl is not None:
        return run.config.graph_impl != "none"
    return None if run.active.graph_frac is None else run.active.graph_frac > 0


def captured_alone(run: Run, module: str) -> bool | None:
    """Whether Transformer Engine's graphs capture a module by itself; None where the modules are unknown."""
    if replays(run) is False or run.config.graph_impl not in (None, "transformer_engine"):
        return False
    modules = run.config.graph_modules
    return None if modules is None else module in modules


INSIDE_MOE: Final = frozenset({"moe_act", "shared_experts"})
"""Labels that recompute of the whole MoE layer covers."""
OF_EXPERTS: Final = INSIDE_MOE | {"moe"}
"""Labels that only a model with experts has."""

_GDN: Final = ("qwen3_next",)
_GDN_NAMES: Final = ("gdn", "gdn2", "gated_delta_net")


class Module(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `modules.toml`, which says what its fields are."""

    id: str
    needs: str
    source: str = "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64"
    usual: bool = False
    avoid: str = ""
    option: str = ""
    costs: Published | None = None


def _scaling_allows(run: Run) -> bool | None:
    """Recompute that drops its output, in FP8: not with delayed scaling, from Transformer Engine 2.6."""
    precision, te = run.precision, run.config.version_text("te")
    if precision == "fp8_delayed":
        return False
    if precision in (None, "mixed"):
        return None
    if not precision.startswith(("fp8", "mxfp8")):
        return True
    if te is not None and numbers(te) < numbers("2.6.0"):
        return False
    return None if precision in ("fp8", "fp8_per_tensor") or te is None else True


def _up_projection(run: Run) -> bool | None:
    configured = run.config.on("multi_latent_attention")
    return by_family(run.config.family, MLA, QWEN) if configured is None else configured


def has_dense_layers(run: Run) -> bool | None:
    """Whether some layers have no experts."""
    return True if run.active.moe is False else run.config.dense_layers


@fact
def has_shared_experts(run: Run) -> bool | None:
    """Whether every token also goes to shared experts."""
    return False if run.active.moe is False else run.config.shared_experts


def _shared_experts(run: Run) -> bool | None:
    if run.config.core_before("0.14.0") or run.config.on("moe_shared_expert_overlap"):
        return False
    return has_shared_experts(run)


def _gated_delta_net(run: Run) -> bool | None:
    variant = run.config.first("experimental_attention_variant")
    of_family = by_family(run.config.family, _GDN, (*MLA, *NO_SHARED))
    known = of_family if variant is None else variant in _GDN_NAMES
    return False if run.config.core_before("0.19.0") else known


def _whole_moe(run: Run) -> bool | None:
    overlap = False if run.config.core_before("0.17.0") else run.active.ep_overlap
    router = captured_alone(run, "moe_router")
    return all_of(
        run.active.moe, None if overlap is None else not overlap, None if router is None else not router
    )


CORE_ATTENTION: Final = "core_attn"


def attention_unfused(run: Run) -> bool:
    """Whether attention keeps its scores: no fused or flash kernel computes it."""
    return run.config.first("attention_backend") == "unfused"


def is_avoided(label: str, run: Run) -> bool:
    """Whether a label is not recommended although legal: the core of attention only where it is fused."""
    return bool(MODULES[label].avoid) and not (label == CORE_ATTENTION and attention_unfused(run))


_LEGAL: Final[Mapping[str, Callable[[Run], bool | None]]] = {
    "moe_act": lambda run: all_of(run.active.moe, run.active.grouped_gemm, _scaling_allows(run)),
    "layernorm": _scaling_allows,
    "mla_up_proj": _up_projection,
    "mlp": has_dense_layers,
    "shared_experts": _shared_experts,
    "gdn_norm_out": _gated_delta_net,
    "moe": _whole_moe,
    CORE_ATTENTION: lambda run: True,
}
MODULES: Final = read_keyed("heuristics.guides", "modules.toml", Module)
"""By label."""


def meets(label: str, run: Run) -> bool | None:
    """Whether a run meets what a label needs; None where unknown."""
    return _LEGAL[label](run) if label in _LEGAL else None


def recomputed_now(run: Run) -> frozenset[str]:
    """Labels that the trace shows recomputed; none where that is unknown or whole layers are."""
    if run.active.recompute_full:
        return frozenset()
    return frozenset(run.active.recompute_modules or ())


def is_short(run: Run) -> bool:
    """Whether what is recomputed now does not do: given so, or memory ran out."""
    return bool(run.config.memory_tight) or run.does_not_fit


@fact
def exhausted(run: Run) -> bool:
    """Whether every selective module is recomputed already or known to be impossible."""
    now = recomputed_now(run)
    covered = now | INSIDE_MOE if "moe" in now else now
    return all(is_avoided(label, run) or label in covered or meets(label, run) is False for label in MODULES)
