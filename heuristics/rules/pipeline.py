"""What pipeline stages ask for: even ones, stages of their own size, layout strings, virtual stages.

Read at core_v0.12.0 to core_v0.19.0 and d98e8a64: transformer_config.py, pipeline_parallel_layer_layout.py.
"""

from __future__ import annotations

from typing import Final

from heuristics.config.logic import all_of, any_of, negated
from heuristics.config.view import Config
from heuristics.rules.layout import remainder
from heuristics.rules.legacy import CORE, LM, Condition, Rule
from heuristics.rules.pp_layout import StageLayout, parse_layout

_PP: Final = "pipeline_model_parallel_size"
_VPP: Final = "virtual_pipeline_model_parallel_size"
_LAYOUT: Final = "pipeline_model_parallel_layout"
_FIRST: Final = "num_layers_in_first_pipeline_stage"
_LAST: Final = "num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "account_for_embedding_in_pipeline_split"
_LOSS: Final = "account_for_loss_in_pipeline_split"
_BLOCK: Final = "Megatron-Core, transformer/transformer_block.py"
_LAYOUTS: Final = "Megatron-Core, transformer/pipeline_parallel_layer_layout.py"
_DIVISION: Final = ("num_layers", _PP, _LAYOUT, _FIRST, _LAST)


def _even(config: Config) -> bool | None:
    """Whether layers are cut evenly: no layout string, and no stage of its own size."""
    return all_of(config.null(_LAYOUT), config.null(_FIRST), config.null(_LAST))


def _spread_layers(config: Config) -> int | None:
    """Layers that are spread: embedding and loss count as one each where they are accounted for."""
    layers = config.count("num_layers")
    extra = (config.on(_EMBEDDING), config.on(_LOSS))
    return None if layers is None or None in extra else layers + sum(map(bool, extra))


def _layout(config: Config) -> StageLayout | None:
    text = config.value(_LAYOUT)
    return parse_layout(text) if isinstance(text, str) else None


def _with_layout(*conditions: Condition) -> Condition:
    """A layout string that was read, together with all of these."""
    return lambda c: all_of(
        None if not c.known(_LAYOUT) else isinstance(c.value(_LAYOUT), str),
        *(condition(c) for condition in conditions),
    )


def _stages_do_not_divide(config: Config) -> bool | None:
    layout = _layout(config)
    return None if layout is None else remainder(len(layout.stages), config.pp)


def _virtual_unlike_layout(config: Config) -> bool | None:
    layout, said = _layout(config), config.count(_VPP)
    if config.null(_VPP):
        return False
    if layout is None or said is None or not config.pp:
        return None
    found = layout.virtual_stages(config.pp)
    return None if found is None else said != found


def _letters_unlike(letter: str, knob: str) -> Condition:
    def broken(config: Config) -> bool | None:
        layout = _layout(config)
        wanted = 0 if config.null(knob) else config.count(knob)
        return None if layout is None or wanted is None else layout.count(letter) != wanted

    return broken


def _ends_unlike(config: Config) -> bool | None:
    layout = _layout(config)
    if layout is None:
        return None
    letters = "".join(layout.stages)
    ends = letters[:1] == "E" and letters[-1:] == "L"
    return not (ends and layout.count("E") == 1 and layout.count("L") == 1)


def _middle_unfit(config: Config) -> bool | None:
    """Uneven stages: what is left for the stages between must divide, and be none where no stage is left."""
    first, last = config.count(_FIRST), config.count(_LAST)
    layers, stages = config.count("num_layers"), config.pp
    unset = all_of(config.null(_FIRST), config.null(_LAST))
    if unset is not False or not config.null(_LAYOUT):
        return False if unset else None
    if layers is None or stages is None or None in (config.on(_FIRST), config.on(_LAST)):
        return None
    layers -= (first or 0) + (last or 0)
    stages -= (first is not None) + (last is not None)
    if bool(layers) != bool(stages):
        return True
    return bool(stages) and bool(layers % stages)


def _uneven_virtual_unfit(config: Config) -> bool | None:
    first, last, virtual = config.count(_FIRST), config.count(_LAST), config.count(_VPP)
    layers, stages = config.count("num_layers"), config.pp
    known = all(map(config.known, (_FIRST, _LAST, _VPP, _LAYOUT)))
    if not known or layers is None or stages is None:
        return None
    if not virtual or not config.null(_LAYOUT) or (first is None and last is None):
        return False
    ends = [count for count in (first, last) if count is not None]
    stages -= len(ends)
    middle = (layers - sum(ends)) // stages if stages else 0
    return any(count % virtual for count in (*ends, middle))


RULES: Final = (
    Rule(
        "layers-per-stage",
        (*_DIVISION, _EMBEDDING, _LOSS),
        "PP must divide the layers, unless a layout string or uneven stages say otherwise",
        lambda c: all_of(_even(c), remainder(_spread_layers(c), c.pp)),
        "ours",
        f"{_BLOCK}; {LM}",
        "PP that divides the layers, or pipeline_model_parallel_layout",
        fix="COM-6",
    ),
    Rule(
        "layers-per-virtual-stage",
        (*_DIVISION, _VPP, _EMBEDDING, _LOSS),
        "PP x VPP must divide the layers, unless a layout string or uneven stages say otherwise",
        lambda c: all_of(
            _even(c),
            c.more_than_one(c.size(_VPP)),
            remainder(_spread_layers(c), c.pp, c.size(_VPP)),
        ),
        "ours",
        f"{_BLOCK}; {LM}",
        "VPP that divides the layers of a stage, or pipeline_model_parallel_layout",
        fix="COM-6",
    ),
    Rule(
        "virtual-without-stages",
        (_VPP, _PP, "overlap_p2p_comm"),
        "virtual stages need pipeline stages: 2 with overlap_p2p_comm, 3 without",
        lambda c: all_of(
            negated(c.null(_VPP)),
            c.more_than_one(c.size(_VPP)),
            any_of(
                negated(c.more_than_one(c.pp)),
                all_of(negated(c.on("overlap_p2p_comm")), None if c.pp is None else c.pp <= 2),
            ),
        ),
        "megatron_lm",
        LM,
        "more pipeline stages, or no virtual ones",
        fix="COM-6",
    ),
    Rule(
        "virtual-one-stage",
        (_VPP, _PP),
        "virtual stages need more than one pipeline stage",
        lambda c: all_of(negated(c.null(_VPP)), negated(c.more_than_one(c.pp))),
        "dispatcher",
        "Megatron-Core, parallel_state.py",
        "more pipeline stages, or virtual_pipeline_model_parallel_size null",
        fix="COM-6",
    ),
    Rule(
        "layout-text",
        (_LAYOUT,),
        "a layout string has the letters E, t, m, L, bars and repeats only",
        _with_layout(lambda c: _layout(c) is None),
        "core",
        _LAYOUTS,
        "a layout such as Et*3|(tt|)*29m|L",
        since="0.13.0",
        fix="COM-6",
    ),
    Rule(
        "layout-stages",
        (_LAYOUT, _PP),
        "PP must divide the stages of the layout string",
        _with_layout(_stages_do_not_divide),
        "core",
        _LAYOUTS,
        "as many stages as PP x VPP",
        since="0.13.0",
        core_message="pipeline_model_parallel_layout must be divisible",
        fix="COM-6",
    ),
    Rule(
        "layout-virtual-stages",
        (_LAYOUT, _PP, _VPP),
        "VPP contradicts the layout string",
        _with_layout(_virtual_unlike_layout),
        "core",
        CORE,
        "drop virtual_pipeline_model_parallel_size: the layout string says it",
        since="0.13.0",
        core_message="virtual_pipeline_model_parallel_size conflicts with",
        fix="COM-6",
    ),
    Rule(
        "layout-layers",
        (_LAYOUT, "num_layers"),
        "the layout string must have as many t as there are layers",
        _with_layout(_letters_unlike("t", "num_layers")),
        "core",
        _LAYOUTS,
        "one t a layer",
        since="0.13.0",
        core_message="must match num_layers",
        fix="COM-6",
    ),
    Rule(
        "layout-mtp",
        (_LAYOUT, "mtp_num_layers"),
        "the layout string must have as many m as there are MTP layers",
        _with_layout(_letters_unlike("m", "mtp_num_layers")),
        "core",
        _LAYOUTS,
        "one m an MTP layer",
        since="0.13.0",
        core_message="Number of mtp layers in layout must match",
        fix="COM-6",
    ),
    Rule(
        "layout-ends",
        (_LAYOUT,),
        "a layout string begins with its one E and ends with its one L",
        _with_layout(_ends_unlike),
        "core",
        _LAYOUTS,
        "E first and L last",
        since="0.13.0",
        fix="COM-6",
    ),
    Rule(
        "layout-and-uneven",
        (_LAYOUT, _FIRST, _LAST, _EMBEDDING, _LOSS),
        "a layout string goes without any other option of uneven stages",
        lambda c: all_of(
            negated(c.null(_LAYOUT)),
            any_of(negated(c.null(_FIRST)), negated(c.null(_LAST)), c.on(_EMBEDDING), c.on(_LOSS)),
        ),
        "core",
        CORE,
        "the layout string alone",
        since="0.13.0",
        core_message="pipeline_model_parallel_layout cannot be set",
        fix="COM-6",
    ),
    Rule(
        "uneven-and-account",
        (_FIRST, _LAST, _EMBEDDING, _LOSS),
        "stages of their own size do not go with accounting for embedding or loss",
        lambda c: all_of(
            any_of(negated(c.null(_FIRST)), negated(c.null(_LAST))), any_of(c.on(_EMBEDDING), c.on(_LOSS))
        ),
        "core",
        CORE,
        "one of the two",
        core_message="num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage cannot be",
    ),
    Rule(
        "uneven-middle",
        (_FIRST, _LAST, "num_layers", _PP, _LAYOUT),
        "the layers between the first and last stage must divide by the stages between",
        _middle_unfit,
        "core",
        CORE,
        "other counts of the first or last stage, or pipeline_model_parallel_layout",
        fix="COM-6",
    ),
    Rule(
        "account-division",
        ("num_layers", _PP, _LAYOUT, _FIRST, _LAST, _EMBEDDING, _LOSS),
        "PP must divide the layers with embedding and loss accounted for",
        lambda c: all_of(_even(c), any_of(c.on(_EMBEDDING), c.on(_LOSS)), remainder(_spread_layers(c), c.pp)),
        "core",
        CORE,
        "PP that divides them",
        core_message="must be divisible",
    ),
    Rule(
        "account-virtual-division",
        ("num_layers", _PP, _VPP, _LAYOUT, _FIRST, _LAST, _EMBEDDING, _LOSS),
        "VPP must divide the layers of a stage with embedding and loss accounted for",
        lambda c: all_of(
            _even(c),
            any_of(c.on(_EMBEDDING), c.on(_LOSS)),
            negated(c.null(_VPP)),
            remainder(_spread_layers(c), c.pp, c.size(_VPP)),
        ),
        "core",
        CORE,
        "VPP that divides them",
        core_message="must be divisible",
        fix="COM-6",
    ),
    Rule(
        "uneven-virtual-division",
        (_FIRST, _LAST, "num_layers", _PP, _VPP, _LAYOUT),
        "VPP must divide the layers of stages of their own size, and of those between",
        _uneven_virtual_unfit,
        "core",
        CORE,
        "counts that divide by VPP, or pipeline_model_parallel_layout",
        fix="COM-6",
    ),
)
