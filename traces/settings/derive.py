"""What Megatron-LM's arguments imply: what is not said has its default, and some facts follow from
others.

Source of all: megatron/training/arguments.py, validate_args, and argument_utils.py,
core_transformer_config_from_args, at core_v0.16.1 and main.
"""

from math import prod
from typing import Final

from traces.settings.draft import Draft
from traces.settings.knobs import CP, PP, TP, VIRTUAL_STAGES, Release, knobs
from traces.settings.settings import Setting, Settings, Value
from traces.settings.values import stage_count

DEFAULT: Final = "default"
"""Where a setting was said that nobody said."""


def add_defaults(draft: Draft, core: Release | None, before: Release | None = None) -> None:
    """Give knobs that were not said their default: those that the release has, or all where none is
    known.

    `before`: the release is older than this one.
    """
    for knob in knobs().values():
        is_of_release = (core is None or knob.is_known_in(core)) and (
            before is None or knob.since < before
        )
        if is_of_release and not draft.has(knob.id) and (default := knob.default_in(core)):
            (value,) = default
            draft.by_knob[knob.id] = Setting(value, DEFAULT)


def add_derived(draft: Draft, is_complete: bool) -> None:
    """Facts that follow from those said. `is_complete`: what was not said is at its default."""
    _hybrid_pattern(draft)
    _virtual_stages(draft, is_complete)
    _types(draft)
    if draft.view.value("gated_linear_unit") is True:
        _follow(draft, "activation_func", "silu", "gated_linear_unit")
    elif draft.view.value("squared_relu") is True:
        _follow(draft, "activation_func", "squared_relu", "squared_relu")
    elif is_complete and draft.view.value("gated_linear_unit") is False:
        _follow(draft, "activation_func", "gelu", "gated_linear_unit")
    if draft.view.value("group_query_attention") is False:
        _follow(draft, "num_query_groups", None, "group_query_attention", over_default=True)
    if overlap := draft.by_knob.get("overlap_p2p_comm"):
        _follow(draft, "batch_p2p_comm", overlap.value is False, "overlap_p2p_comm")
    if is_complete:
        _follow(draft, "variable_seq_lengths", False, "")


def _hybrid_pattern(draft: Draft) -> None:
    """A pattern tells the layers, over any number, and by its bars the virtual stages."""
    knob = "hybrid_layer_pattern"
    pattern = draft.view.word(knob)
    if not pattern:
        return
    main = pattern.split("/")[0]
    draft.by_knob["num_layers"] = Setting(len(main.replace("|", "")), draft.by_knob[knob].said)
    segments, stages = main.count("|") + 1, draft.view.count(PP)
    if stages and (segments == 1 or segments % stages == 0):
        _follow(draft, VIRTUAL_STAGES, _more_than_one(segments // stages), knob, over_default=True)


_EACH: Final = "num_layers_per_virtual_pipeline_stage"
_STAGED: Final = frozenset({_EACH, "pipeline_model_parallel_layout", "hybrid_layer_pattern"})
"""What virtual stages are told by."""
_COUNTED: Final = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
"""What counts as a layer more where it is on."""


def _virtual_stages(draft: Draft, is_complete: bool) -> None:
    view = draft.view
    if view.known(VIRTUAL_STAGES) or view.value("hybrid_layer_pattern") is not None:
        return
    stages, per_stage = view.count(PP), view.count(_EACH)
    if (layout := view.word("pipeline_model_parallel_layout")) is not None:
        count = stage_count(layout)
        if stages and count and count % stages == 0:
            virtual = _more_than_one(count // stages)
            _follow(draft, VIRTUAL_STAGES, virtual, "pipeline_model_parallel_layout")
    elif per_stage is not None:
        layers = view.count("num_layers")
        layers = layers and layers + sum(view.value(knob) is True for knob in _COUNTED)
        if stages and layers and per_stage > 0 and layers % (stages * per_stage) == 0:
            _follow(draft, VIRTUAL_STAGES, _more_than_one(layers // stages // per_stage), _EACH)
    elif is_complete and not draft.unclear & {*_STAGED, VIRTUAL_STAGES}:
        _follow(draft, VIRTUAL_STAGES, None, "")


def _more_than_one(size: int) -> int | None:
    if size > 1:
        return size
    return None


def with_ranks(settings: Settings) -> Settings:
    """Settings with ranks in all and data-parallel ones that agree with the sizes between.

    Where they do not, as when an option gives one of them, the ranks in all stand.
    """
    draft = Draft("", by_knob=dict(settings.by_knob))
    ranks, copies = draft.view.count("world_size"), draft.view.count("data_parallel_size")
    if ranks is not None and copies is not None and ranks != copies * _ranks_of_copy(draft):
        del draft.by_knob["data_parallel_size"]
    add_ranks(draft)
    return Settings(draft.by_knob, settings.framework)


def add_ranks(draft: Draft) -> None:
    """Ranks in all from the data-parallel ones, or those from all, where the sizes between are
    said.
    """
    if None in map(draft.view.count, _CUTS):
        return
    model, ranks = _ranks_of_copy(draft), draft.view.count("world_size")
    if ranks is not None:
        if ranks % model == 0:
            _follow(draft, "data_parallel_size", ranks // model, "world_size")
        return
    for source in ("data_parallel_size", "comm_overlap.data_parallel_size"):
        if (copies := draft.view.count(source)) is not None:
            _follow(draft, "world_size", copies * model, source)
            return


_CUTS: Final = (TP, PP, CP)


def _ranks_of_copy(draft: Draft) -> int:
    """Ranks that a copy of the dense model is cut over; a size that is unknown counts as 1."""
    return prod(draft.view.count(knob) or 1 for knob in _CUTS)


def _types(draft: Draft) -> None:
    """Parameters and what goes between stages are of the type asked for."""
    bf16, fp16 = map(draft.view.value, ("bf16", "fp16"))
    if bf16 is True:
        _both_types(draft, "bf16", "bf16")
    elif fp16 is True:
        _both_types(draft, "fp16", "fp16")
    elif bf16 is False and fp16 is False:
        _both_types(draft, "fp32", "bf16")


def _both_types(draft: Draft, dtype: str, source: str) -> None:
    _follow(draft, "params_dtype", dtype, source)
    _follow(draft, "pipeline_dtype", dtype, source)


def _follow(draft: Draft, knob: str, value: Value, source: str, over_default: bool = False) -> None:
    """Set a knob that was not said, as said where its source was."""
    known = draft.by_knob.get(knob)
    if known and not (over_default and known.said == DEFAULT):
        return
    if knob not in draft.unclear:
        source_said = draft.by_knob[source].said if source else DEFAULT
        draft.by_knob[knob] = Setting(value, source_said)
