"""Formats and units of the matrix work: low precision, tensor cores, grouped and fused GEMMs."""

from typing import Final

from heuristics.facts.dictionary import enter, fact
from heuristics.fixes.change import Change
from heuristics.guides.precision import ROUTER, choose_precision
from heuristics.run.run import Run
from traces.settings.harness_recipes import PRECISIONS
from traces.settings.knobs import known_in
from traces.settings.settings import Values
from traces.toml_tables import TableRow, read_table


class _Spelling(TableRow):
    """A row of `precision.toml`, which says what its fields are."""

    megatron_lm: Values
    bridge: str
    bits: int
    te_version: str
    harness: str | None = None


_SPELLINGS: Final = read_table("heuristics.fixes", "precision.toml", dict[str, _Spelling])
_GATHER: Final = "fp8_param"
_REUSE: Final = "ddp.reuse_grad_buf_for_mxfp8_param_ag"
_ROUTING: Final[Values] = {
    "moe_router_dtype": ROUTER,
    "moe_router_padding_for_quantization": True,
}


# ---- low precision ----


def low(run: Run) -> Change:
    """The recipe that the table chooses, the router kept in FP32; nothing where that is BF16."""
    recipe = low_recipe(run)
    spelling = _SPELLINGS.get(recipe)
    if not spelling:
        return Change()
    routing = _ROUTING if run.tells("seems_moe") else {}
    return Change(
        {knob: value for knob, value in routing.items() if _is_known(run, knob)},
        megatron_lm={**_knobs(run, spelling), **_left_out(run, recipe)},
        megatron_bridge={"mixed_precision": spelling.bridge},
        harness=(f"--compute_dtype {spelling.harness}",) if spelling.harness else (),
        by_release=True,
        since="0.15.0" if recipe == "nvfp4" else "",
    )


@fact
def low_recipe(run: Run) -> str:
    """The first candidate of the table; in Bridge's scripts, the first that has a preset, else
    BF16.
    """
    presets = run.config.value(PRECISIONS)
    candidates = choose_precision(run).candidates
    if not isinstance(presets, tuple):
        return candidates[0]
    return next(
        (name for name in candidates if name in _SPELLINGS and _SPELLINGS[name].harness in presets),
        "bf16",
    )


def _knobs(run: Run, spelling: _Spelling) -> Values:
    """The recipe's knobs; parameters stay in BF16 where no optimizer is distributed that could
    gather FP8.
    """
    gathers = run.config.distributed_optimizer is not False
    return {
        knob: value
        for knob, value in spelling.megatron_lm.items()
        if knob not in (_GATHER, _REUSE) or (gathers and _is_known(run, knob))
    }


def _is_known(run: Run, knob: str) -> bool:
    return known_in(knob, run.config.core_text) is not False


def _left_out(run: Run, recipe: str) -> Values:
    """Knobs of FP8, where FP4 takes its place: Megatron-Core refuses both at once."""
    if recipe != "nvfp4":
        return {}
    is_fp8 = run.config.on("fp8") or run.config.running_bits == 8
    off = {"fp8": None} if is_fp8 else {}
    return {**off, **dict.fromkeys(filter(run.config.on, (_GATHER, _REUSE)), False)}


enter("precision_guide", choose_precision)


@fact
def low_spelling(run: Run) -> _Spelling | None:
    """How frameworks spell the recipe; None where that is no low precision."""
    return _SPELLINGS.get(low_recipe(run))


@fact
def gathers_fp8(run: Run) -> bool:
    """Whether it gathers parameters in FP8: a recipe of Bridge does, flags need not."""
    spelling = low_spelling(run)
    if not spelling:
        return False
    by_flag = run.settings.framework == "megatron_lm"
    return _GATHER in (_knobs(run, spelling) if by_flag else spelling.megatron_lm)
