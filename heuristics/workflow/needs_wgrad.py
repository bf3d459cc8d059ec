"""What delayed weight gradients need beside CUDA graphs (document 001)."""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of
from heuristics.run.run import Run
from heuristics.workflow.need import Need, from_release, says_version, switch


def _fused_gradients(run: Run) -> bool | None:
    return run.config.on("gradient_accumulation_fusion")


def _graphed(run: Run, *modules: str) -> bool | None:
    """Whether Transformer Engine's graphs hold one of some modules."""
    impl, held = run.config.graph_impl, run.config.graph_modules
    if impl is None or impl != "transformer_engine":
        return None if impl is None else False
    return None if held is None else not held or bool({*modules} & {*held})


def _wgrad_graphed(run: Run) -> bool | None:
    return all_of(run.config.delayed_wgrad, _graphed(run, "attn"))


def _no_bias(run: Run) -> bool | None:
    biases = [run.config.on(knob) for knob in ("add_bias_linear", "add_qkv_bias")]
    return False if True in biases else None if None in biases else True


_WGRAD: Final = "delayed weight gradients"

DELAYED_WGRAD: Final = (
    Need(
        "delayed-wgrad-graphed-te",
        f"{_WGRAD} with attention in a graph",
        "Delayed weight gradients with graphed attention: Transformer Engine 2.12",
        "001, Prerequisites",
        _wgrad_graphed,
        from_release("te", "2.12.0"),
        says_version("te", "Transformer Engine"),
        "Transformer Engine 2.12, or attention out of the graphs",
        "--te-version",
    ),
    Need(
        "delayed-wgrad-graphed-fusion",
        f"{_WGRAD} with attention in a graph",
        "Delayed weight gradients with graphed attention: fused accumulation",
        "001, Prerequisites",
        _wgrad_graphed,
        _fused_gradients,
        lambda run: f"gradient_accumulation_fusion {switch(_fused_gradients(run))}",
        "gradient_accumulation_fusion: true",
        "gradient_accumulation_fusion of the configuration",
    ),
    Need(
        "delayed-wgrad-graphed-bias",
        f"{_WGRAD} with attention in a graph",
        "Delayed weight gradients with graphed attention: no attention bias",
        "001, Prerequisites",
        _wgrad_graphed,
        _no_bias,
        lambda run: "a bias is set" if _no_bias(run) is False else "no bias is known",
        "add_bias_linear and add_qkv_bias: false",
        "add_bias_linear and add_qkv_bias of the configuration",
    ),
)
