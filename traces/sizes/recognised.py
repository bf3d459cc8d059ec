"""What a configuration leaves out of a model that its sizes tell: the model's own values."""

from collections.abc import Mapping
from functools import cache
from typing import Final

from traces.settings.harness_recipes import models
from traces.settings.settings import Settings, Value, Values, settings
from traces.texts import Texts

_SHAPE: Final = ("num_layers", "hidden_size", "num_moe_experts")
_TELLING: Final = (
    "num_attention_heads",
    "ffn_hidden_size",
    "moe_ffn_hidden_size",
    "moe_router_topk",
    "vocab_size",
)
"""What tells models of one shape from each other."""
_CHOSEN: Final = ("mtp_num_layers",)
"""What a run of the same model may leave out: the recipe of its pre-training alone has it."""


@cache
def _by_shape() -> Mapping[tuple[Value, ...], tuple[str, Values]]:
    """Models by layers, hidden size and experts; none of which there are two."""
    by_shape = dict[tuple[Value, ...], tuple[str, Values]]()
    for name, values in models().items():
        by_shape[tuple(map(values.get, _SHAPE))] = (name, values)
    return by_shape


def filled_in(known: Settings) -> tuple[Settings, Texts]:
    """The settings with what the model of these sizes has, and what was taken so; what is said
    stays.

    Of a model without experts the heads tell it too.
    """
    name, values = _by_shape().get(tuple(map(known.value, _SHAPE)), ("", {}))
    added, assumptions = dict[str, Value](), list[str]()
    for knob, value in values.items():
        if knob in known and knob in _TELLING and known.value(knob) != value:
            return known, ()
        if knob not in known and knob not in _CHOSEN:
            added[knob] = value
            assumptions.append(f"{knob} as {name} has it (not given)")
    return settings(added, name).under(known), tuple(assumptions)
