"""What delayed weight gradients need (document 001)."""

from __future__ import annotations

from collections.abc import Callable
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


def _and(*asked: Callable[[Run], bool | None]) -> Callable[[Run], bool | None]:
    return lambda run: all_of(*(one(run) for one in asked))


def _wgrad_graphed(run: Run) -> bool | None:
    return all_of(run.config.delayed_wgrad, _graphed(run, "attn"))


def _no_bias(run: Run) -> bool | None:
    biases = [run.config.on(knob) for knob in ("add_bias_linear", "add_qkv_bias")]
    return False if True in biases else None if None in biases else True


def _gradient_overlap(run: Run) -> bool | None:
    return run.config.on("ddp.overlap_grad_reduce")


_WGRAD: Final = "delayed weight gradients"

DELAYED_WGRAD: Final = (
    Need(
        "delayed-wgrad-overlap",
        _WGRAD,
        "Delayed weight gradients: EP overlap is on",
        "001, Prerequisites",
        lambda run: run.config.delayed_wgrad,
        lambda run: run.config.ep_overlap,
        lambda run: f"EP overlap {switch(run.config.ep_overlap)}",
        "EP overlap first: COM-1",
        "overlap_moe_expert_parallel_comm of the configuration",
        "COM-1",
    ),
    Need(
        "delayed-wgrad-grad-reduce",
        _WGRAD,
        "Delayed weight gradients with overlapped gradient reduction: Transformer Engine 2.8",
        "001, Prerequisites",
        _and(lambda run: run.config.delayed_wgrad, _gradient_overlap),
        from_release("te", "2.8.0"),
        says_version("te", "Transformer Engine"),
        "Transformer Engine 2.8 (Megatron-LM; Megatron-Bridge asks for 2.7)",
        "--te-version",
    ),
    Need(
        "delayed-wgrad-fusion",
        _WGRAD,
        "Delayed weight gradients with fused accumulation: Transformer Engine 2.7",
        "001, Prerequisites",
        _and(lambda run: run.config.delayed_wgrad, _fused_gradients),
        from_release("te", "2.7.0"),
        says_version("te", "Transformer Engine"),
        "Transformer Engine 2.7",
        "--te-version",
    ),
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
