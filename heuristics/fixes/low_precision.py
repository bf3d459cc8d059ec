"""The change of precision, as both MEM-4 and CMP-3 make it: spellings of each recipe, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heuristics.config.precision import BITS, bits_of
from heuristics.fixes.fix import Knobs, Precondition
from heuristics.fixes.preconditions import at_least, holds, is_not
from heuristics.guides.graph_modules import captured_alone
from heuristics.guides.precision import ROUTER, RecipeName, choose_precision
from heuristics.guides.recompute import recomputed_now
from heuristics.run.run import Run


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Flags of Megatron-LM, Bridge's name of the recipe, harness code, Transformer Engine needed."""

    megatron_lm: tuple[str, ...]
    bridge: str
    harness: str | None
    te_version: str


_GATHERS: Final = ("--fp8-param-gather", "--reuse-grad-buf-for-mxfp8-param-ag")

_SPELLINGS: Final[dict[RecipeName, _Spelling]] = {
    "fp8_delayed": _Spelling(
        ("--fp8-format hybrid", "--fp8-recipe delayed", "--fp8-param-gather"),
        "bf16_with_fp8_delayed_scaling_mixed",
        None,
        "1.11.0",
    ),
    "fp8_current": _Spelling(
        ("--fp8-format hybrid", "--fp8-recipe tensorwise", "--fp8-param-gather"),
        "bf16_with_fp8_current_scaling_mixed",
        "fp8_cs",
        "2.2.0",
    ),
    "fp8_blockwise": _Spelling(
        ("--fp8-format e4m3", "--fp8-recipe blockwise", "--fp8-param-gather"),
        "bf16_with_fp8_subchannel_scaling_mixed",
        "fp8_sc",
        "2.3.0",
    ),
    "mxfp8": _Spelling(
        (
            "--fp8-format e4m3",
            "--fp8-recipe mxfp8",
            "--fp8-param-gather",
            "--reuse-grad-buf-for-mxfp8-param-ag",
        ),
        "bf16_with_mxfp8_mixed",
        "fp8_mx",
        "2.1.0",
    ),
    "nvfp4": _Spelling(
        ("--fp4-format e2m1", "--fp4-recipe nvfp4"), "bf16_with_nvfp4_mixed", "nvfp4", "2.7.0"
    ),
}
"""Megatron-LM, megatron/core/transformer/moe/README.md, and fp8_utils.py for the Transformer Engine that each
recipe needs (grouped GEMM in FP8: 1.11), at d98e8a64; Megatron-Bridge, training/mixed_precision.py and
scripts/performance/utils/precision.py, at 067f987d."""


def low_precision_knobs(run: Run) -> Knobs:
    """Spellings of the recipe that the table chooses, the router kept in FP32; none where that is BF16."""
    recipe = choose_precision(run).recipe
    spelling = _SPELLINGS.get(recipe)
    if spelling is None:
        return Knobs()
    routing = () if run.active.moe is False else _routing(run)
    return Knobs(
        megatron_lm=(
            *_flags(run, spelling),
            *_left_out(run, recipe),
            *(f"--{name.replace('_', '-')}{arg}" for name, arg, _ in routing),
        ),
        megatron_bridge=(
            f"mixed_precision={spelling.bridge}",
            *(f"model.{name}={value}" for name, _, value in routing),
        ),
        bridge_harness=(f"--compute_dtype {spelling.harness}",) if spelling.harness else (),
    )


def _flags(run: Run, spelling: _Spelling) -> tuple[str, ...]:
    """The recipe's flags; parameters stay in BF16 where no optimizer is distributed that could gather FP8."""
    if run.config.distributed_optimizer is not False:
        return spelling.megatron_lm
    return tuple(flag for flag in spelling.megatron_lm if flag not in _GATHERS)


def _left_out(run: Run, recipe: RecipeName) -> tuple[str, ...]:
    """Flags of FP8, where FP4 takes its place: Megatron-Core refuses both at once."""
    if recipe != "nvfp4":
        return ()
    buffers = "ddp.reuse_grad_buf_for_mxfp8_param_ag"
    flags = {
        "--fp8-format": run.config.on("fp8") or bits_of(run.precision) == BITS["mxfp8"],
        "--fp8-param-gather": run.config.on("fp8_param"),
        "--reuse-grad-buf-for-mxfp8-param-ag": run.config.on(buffers),
    }
    return tuple(f"(leave out {flag})" for flag, on in flags.items() if on)


def _routing(run: Run) -> tuple[tuple[str, str, str], ...]:
    """Field, what follows it as a flag, its value: router in FP32, token counts padded for the GEMMs."""
    padding = "fp8" if run.config.core_before("0.16.0") else "quantization"
    return (
        ("moe_router_dtype", f" {ROUTER}", ROUTER),
        (f"moe_router_padding_for_{padding}", "", "true"),
    )


def low_precision_needs(run: Run) -> tuple[Precondition, ...]:
    """A GPU that a row names, a wider format until now, a stable run before, and the library for it."""
    choice = choose_precision(run)
    spelling, bits = _SPELLINGS.get(choice.recipe), bits_of(run.precision)
    needs = [holds("the guides name a low precision for this GPU and stage", _named(run), _cure(run))]
    if spelling is None:
        return tuple(needs)
    wider = None if bits is None else bits > BITS[choice.recipe]
    needs += [
        holds(
            f"the GEMMs multiply in a wider format than {choice.recipe} until now",
            wider,
            "--precision" if wider is None else "",
        ),
        holds(
            "a run in a wider precision is stable",
            None if run.config.stage is None else run.config.stage == "tuned",
            "--stage",
        ),
        at_least("Transformer Engine", run.config.version_text("te"), spelling.te_version, "--te-version"),
    ]
    by_flag = run.settings.framework == "megatron_lm"  # a recipe of Bridge gathers, flags need not
    if "--fp8-param-gather" in (_flags(run, spelling) if by_flag else spelling.megatron_lm):
        text = "the optimizer is distributed, or FSDP's, as parameters are gathered in FP8"
        needs.append(holds(text, run.config.distributed_optimizer, "--use-distributed-optimizer"))
    dropped = recomputed_now(run) & {"moe_act", "layernorm"}
    if dropped and choice.recipe != "nvfp4":
        beside = f"Transformer Engine beside recompute of {' and '.join(sorted(dropped))}"
        needs.append(at_least(beside, run.config.version_text("te"), "2.6.0", "--te-version"))
    if choice.recipe == "nvfp4":
        needs.append(at_least("Megatron-Core", run.config.core_text, "0.15.0", "--core-version"))
    if run.active.moe is not False:
        needs += _padding_needs(run)
    return tuple(needs)


def _named(run: Run) -> bool | None:
    choice = choose_precision(run)
    if choice.recipe != "bf16":
        return True
    return None if "--gpu-model" in choice.asks else False


def _cure(run: Run) -> str:
    return "--stage tuned" if run.config.stage == "bring_up" else "--gpu-model"


def _padding_needs(run: Run) -> list[Precondition]:
    """Padding of token counts goes with every dispatcher but allgather, and not with every graph."""
    dispatcher = run.active.dispatcher
    needs = [
        is_not(
            "the dispatcher is not allgather, which refuses padding",
            None if dispatcher == "unknown" else dispatcher == "allgather",
            "COM-2",
        )
    ]
    if dispatcher == "alltoall":
        text = "no CUDA graph of moe_preprocess: with alltoall and padding it reads counts on the host"
        needs.append(
            is_not(text, captured_alone(run, "moe_preprocess"), "graphs of moe_router only, or COM-2")
        )
    return needs
