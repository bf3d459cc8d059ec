"""Sections of Megatron-Bridge that write into the model's configuration before it is built.

Source: Megatron-Bridge v0.6.0, src/megatron/bridge/training/mixed_precision.py (the registered recipes and
update_config_with_precision_overrides) and comm_overlap.py (CommOverlapConfig.setup).
"""

from collections.abc import Mapping
from typing import Final

from heuristics.rules.megatron.core_fields import is_core_field
from traces.settings.effective_bridge import OFF_UNLESS_SAID, of_precision
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


def laid_over(said: Mapping[str, Value], settings: Settings) -> dict[str, Value]:
    """The model's fields as Bridge leaves them: its precision and overlap sections win over the model's.

    All of a recipe: a format that it leaves off is off, whatever the model says.
    """
    own = {knob: settings.value(knob) for knob in settings.by_knob if knob.startswith("mixed_precision.")}
    written = of_precision(settings.value("mixed_precision"), own)
    core = {knob: value for knob, value in written.items() if is_core_field(knob)}
    return {**said, **core, **_of_overlap(settings)}


def _of_overlap(settings: Settings) -> dict[str, Value]:
    own = {knob.partition(".")[2]: knob for knob in settings.by_knob if knob.startswith("comm_overlap.")}
    off: dict[str, Value] = dict.fromkeys(OFF_UNLESS_SAID, False) if own else {}
    said = {field: settings.value(own[field]) for field in _OVERLAP if field in own}
    return {**off, **{field: value for field, value in said.items() if value is not None}}
