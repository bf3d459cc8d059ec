"""Formats and units of the matrix work: low precision, tensor cores, grouped and fused GEMMs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.needs import needed
from heuristics.fixes.precondition import Precondition, already, already_so, holds, is_not, te_at_least
from heuristics.guides.facts import is_low_precision
from heuristics.guides.modules import captured_alone, recomputed_now
from heuristics.guides.precision import ROUTER, RecipeName, choose_precision
from heuristics.run.run import Run
from heuristics.run.sizes import seems_moe
from heuristics.walls.compute import LAYOUT
from traces.limits import Limit
from traces.measure.tensor_cores import HALF_SINCE, TF32_SINCE
from traces.settings.harness_recipes import PRECISIONS
from traces.settings.knobs import known_in
from traces.settings.precision import BITS, bits_of
from traces.settings.settings import Value
from traces.spelling import chosen

GROUPS: Final = Limit(
    8, "compute capability, major", "Megatron-LM, megatron/training/arguments.py: asserted for grouped GEMM"
)
INTERLEAVED: Final = Limit(32, "units", "Megatron-Bridge, scripts/performance/utils/overrides.py at 067f987d")
FUSES: Final = Limit(
    10, "compute capability, major", "Megatron-LM, megatron/core/transformer/transformer_config.py: SM100"
)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """Knobs of Megatron-LM, Bridge's name of the recipe, harness code, Transformer Engine needed."""

    megatron_lm: Mapping[str, Value]
    bridge: str
    harness: str | None
    te_version: str


_GATHER: Final = "fp8_param"
_REUSE: Final = "ddp.reuse_grad_buf_for_mxfp8_param_ag"
_ROUTING: Final[Mapping[str, Value]] = {
    "moe_router_dtype": ROUTER,
    "moe_router_padding_for_quantization": True,
}


def _fp8(form: str, recipe: str) -> dict[str, Value]:
    return {"fp8": form, "fp8_recipe": recipe, _GATHER: True}


_SPELLINGS: Final[dict[RecipeName, _Spelling]] = {
    "fp8_delayed": _Spelling(
        _fp8("hybrid", "delayed"), "bf16_with_fp8_delayed_scaling_mixed", None, "1.11.0"
    ),
    "fp8_current": _Spelling(
        _fp8("hybrid", "tensorwise"), "bf16_with_fp8_current_scaling_mixed", "fp8_cs", "2.2.0"
    ),
    "fp8_blockwise": _Spelling(
        _fp8("e4m3", "blockwise"), "bf16_with_fp8_subchannel_scaling_mixed", "fp8_sc", "2.3.0"
    ),
    "mxfp8": _Spelling({**_fp8("e4m3", "mxfp8"), _REUSE: True}, "bf16_with_mxfp8_mixed", "fp8_mx", "2.1.0"),
    "nvfp4": _Spelling({"fp4": "e2m1", "fp4_recipe": "nvfp4"}, "bf16_with_nvfp4_mixed", "nvfp4", "2.7.0"),
}
"""Megatron-LM, megatron/core/transformer/moe/README.md, and fp8_utils.py for the Transformer Engine that each
recipe needs (grouped GEMM in FP8: 1.11), at d98e8a64; Megatron-Bridge, training/mixed_precision.py and
scripts/performance/utils/precision.py, at 067f987d."""


# ---- low precision ----


def low(run: Run) -> Change:
    """The recipe that the table chooses, the router kept in FP32; nothing where that is BF16."""
    recipe = _recipe(run)
    spelling = _SPELLINGS.get(recipe)
    if spelling is None:
        return Change()
    routing = _ROUTING if seems_moe(run) else {}
    return Change(
        {knob: value for knob, value in routing.items() if _is_known(run, knob)},
        megatron_lm={**_knobs(run, spelling), **_left_out(run, recipe)},
        megatron_bridge={"mixed_precision": spelling.bridge},
        harness=(f"--compute_dtype {spelling.harness}",) if spelling.harness else (),
        by_release=True,
        since="0.15.0" if recipe == "nvfp4" else "",
    )


def _recipe(run: Run) -> RecipeName:
    """The first candidate of the table; in Bridge's scripts, the first that has a preset, else BF16."""
    presets = run.config.value(PRECISIONS)
    candidates = choose_precision(run).candidates
    if not isinstance(presets, tuple):
        return candidates[0]
    return next(
        (one for one in candidates if one in _SPELLINGS and _SPELLINGS[one].harness in presets), "bf16"
    )


def _knobs(run: Run, spelling: _Spelling) -> dict[str, Value]:
    """The recipe's knobs; parameters stay in BF16 where no optimizer is distributed that could gather FP8."""
    gathers = run.config.distributed_optimizer is not False
    return {
        knob: value
        for knob, value in spelling.megatron_lm.items()
        if knob not in (_GATHER, _REUSE) or (gathers and _is_known(run, knob))
    }


def _is_known(run: Run, knob: str) -> bool:
    return known_in(knob, run.config.core_text) is not False


def _left_out(run: Run, recipe: RecipeName) -> dict[str, Value]:
    """Knobs of FP8, where FP4 takes its place: Megatron-Core refuses both at once."""
    if recipe != "nvfp4":
        return {}
    is_fp8 = run.config.on("fp8") or bits_of(run.precision) == BITS["mxfp8"]
    off: dict[str, Value] = {"fp8": None} if is_fp8 else {}
    return off | {knob: False for knob in (_GATHER, _REUSE) if run.config.on(knob)}


def low_needs(run: Run) -> tuple[Precondition, ...]:
    """A GPU that a row names, a wider format until now, a stable run before, and the library for it."""
    recipe, choice = _recipe(run), choose_precision(run)
    spelling, bits, stage = _SPELLINGS.get(recipe), bits_of(run.precision), run.config.stage
    if spelling is None and choice.recipe != "bf16":
        return (holds("Bridge's scripts have a preset in a low precision that the guides name", False),)
    text = "the guides name a low precision for this GPU and stage"
    fact = True if choice.recipe != "bf16" else None if "--gpu-model" in choice.asks else False
    named = holds(text, fact, "--stage tuned" if stage == "bring_up" else "", "--gpu-model")
    if spelling is None:
        return (named,)
    wider = None if bits is None else bits > BITS[recipe]
    stable = None if stage is None else stage == "tuned"
    needs = [
        named,
        holds(f"the GEMMs still run in a wider format than {recipe}", wider, told_by="--precision"),
        holds("a run in a wider precision is stable", stable, told_by="--stage"),
        te_at_least(run, spelling.te_version),
    ]
    by_flag = run.settings.framework == "megatron_lm"  # a recipe of Bridge gathers, flags need not
    if _GATHER in (_knobs(run, spelling) if by_flag else spelling.megatron_lm):
        needs += needed("gathering_optimizer", run)
    dropped = recomputed_now(run) & {"moe_act", "layernorm"}
    if dropped and recipe != "nvfp4":
        needs.append(te_at_least(run, "2.6.0", f" beside recompute of {' and '.join(sorted(dropped))}"))
    return (*needs, *(_padding_needs(run) if seems_moe(run) else ()))


def _padding_needs(run: Run) -> list[Precondition]:
    """Padding of token counts goes with every dispatcher but allgather, and not with every graph."""
    now = run.active.dispatcher
    text = "the dispatcher is not allgather, which does not support padding"
    needs = [is_not(text, None if now == "unknown" else now == "allgather", "COM-2")]
    if now == "alltoall":
        text = "no CUDA graph of moe_preprocess: with alltoall and padding it reads counts on the host"
        graphed = captured_alone(run, "moe_preprocess")
        needs.append(is_not(text, graphed, "graphs of moe_router only, or COM-2"))
    return needs


# ---- tensor cores ----


def not_in_fp32(run: Run) -> tuple[Precondition, ...]:
    """Hardware with TF32, and a run that is not in BF16 already."""
    return (*already(run, "bf16", active=run.precision != "fp32"), _since(run, TF32_SINCE, None))


def wide_on_tensor_cores(run: Run) -> tuple[Precondition, ...]:
    """Hardware that multiplies 16 bits on tensor cores, and matrix work that is wider."""
    share = run.active.wide_frac
    wide = None if share is None else share > 0
    return (
        _since(run, HALF_SINCE, run.active.tensor_cores),
        holds("matrix work runs in FP32 or TF32", wide, told_by="record a whole step"),
    )


def _since(run: Run, since: tuple[int, int], seen: bool | None) -> Precondition:
    """Tensor cores by the GPU's compute capability, else as its kernels show."""
    capability = run.active.capability
    fact = seen if capability is None else capability >= since
    text = f"the GPU has tensor cores: compute capability {since[0]}.{since[1]} or newer"
    return holds(text, fact, told_by="--gpu-model")


# ---- grouped and fused GEMMs, layouts ----


def groupable(run: Run) -> tuple[Precondition, ...]:
    """A GPU and a library that can group them."""
    capability = run.config.capability
    enough = None if capability is None else capability[0] >= GROUPS.value
    needs = (holds(f"compute capability >= {GROUPS.value:.0f}", enough, told_by="--gpu-model"),)
    return (*needs, te_at_least(run, "1.11.0", " in FP8")) if is_low_precision(run) else needs


def not_fused(run: Run) -> tuple[Precondition, ...]:
    """The op fuser and its order of units are not set yet."""
    interleave = "moe_mlp_glu_interleave_size"
    return already_so(interleave, run.config.te_op_fuser is True and run.config.on(interleave) is True)


def fusable(run: Run) -> tuple[Precondition, ...]:
    """The GPU and the format that the fused kernel is made for."""
    capability = run.config.capability
    blackwell = None if capability is None else capability[0] == FUSES.value
    mxfp8 = None if run.precision is None else run.precision == "mxfp8"
    return (
        holds("the GPU is Blackwell", blackwell, told_by="--gpu-model", blocks=True),
        holds("the GEMMs run in MXFP8", mxfp8, "CMP-3", "--precision", blocks=True),
    )


def layout_frac(run: Run) -> float | None:
    """What copies from one memory layout to another take of the windows."""
    return run.active.layout_frac


def layout_copies(run: Run) -> tuple[Precondition, ...]:
    """Copies worth avoiding."""
    share = run.active.layout_frac
    fact = None if share is None else share >= LAYOUT.value
    text = f"kernels that only change the layout take {chosen(LAYOUT.value)} of the time"
    return (holds(text, fact, told_by="record a whole step"),)
