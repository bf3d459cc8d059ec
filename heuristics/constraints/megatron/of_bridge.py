"""Sections of Megatron-Bridge that write into the model's configuration before it is built.

Source: Megatron-Bridge v0.6.0, src/megatron/bridge/training/mixed_precision.py (the registered recipes and
update_config_with_precision_overrides) and comm_overlap.py (CommOverlapConfig.setup).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.constraints.megatron.core_fields import is_core_field
from traces.settings.effective_bridge import recipe
from traces.settings.settings import Settings, Value

_OVERLAP: Final = (
    "tp_comm_overlap",
    "overlap_p2p_comm",
    "batch_p2p_comm",
    "defer_embedding_wgrad_compute",
    "wgrad_deferral_limit",
    "overlap_moe_expert_parallel_comm",
    "delay_wgrad_compute",
)
_OFF_UNLESS_SAID: Final = ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute")
"""CommOverlapConfig, where there is one, sets these to False unless they are said in it."""


def laid_over(said: Mapping[str, Value], settings: Settings) -> dict[str, Value]:
    """The model's fields as Bridge leaves them: its precision and overlap sections win over the model's."""
    fields = {**said, **_of_recipe(settings.value("mixed_precision"))}
    for knob, setting in settings.by_knob.items():
        group, _, field = knob.partition(".")
        if group == "mixed_precision" and is_core_field(field):
            fields[field] = setting.value
    return {**fields, **_of_overlap(settings)}


def _of_recipe(name: Value) -> dict[str, Value]:
    """All of them: a format that a recipe leaves off is off, whatever the model says."""
    fields = recipe(name) if isinstance(name, str) else {}
    return {field: value for field, value in fields.items() if is_core_field(field)}


def _of_overlap(settings: Settings) -> dict[str, Value]:
    own = {knob.partition(".")[2]: knob for knob in settings.by_knob if knob.startswith("comm_overlap.")}
    off: dict[str, Value] = dict.fromkeys(_OFF_UNLESS_SAID, False) if own else {}
    said = {field: settings.value(own[field]) for field in _OVERLAP if field in own}
    return {**off, **{field: value for field, value in said.items() if value is not None}}
