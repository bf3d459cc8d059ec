"""What the lines of a fix in an earlier result set: knob to value, by each way to write it."""

from collections.abc import Mapping
from typing import Final, Protocol

from traces.settings.printed import change_of
from traces.settings.settings import Framework, Value

_FRAMEWORKS: Final[Mapping[str, Framework]] = {
    "megatron_lm": "megatron_lm",
    "megatron_bridge": "megatron_bridge",
    "bridge_harness": "megatron_bridge",
}


class Spelled(Protocol):
    """One change in its spellings, of the catalogue or of a result."""

    @property
    def megatron_lm(self) -> tuple[str, ...]:
        """Flags of Megatron-LM."""

    @property
    def megatron_bridge(self) -> tuple[str, ...]:
        """Overrides of Megatron-Bridge."""

    @property
    def bridge_harness(self) -> tuple[str, ...]:
        """Flags of Bridge's performance harness."""

    @property
    def environment(self) -> tuple[str, ...]:
        """Variables and launchers."""


def ways_of(spelled: Spelled) -> tuple[Mapping[str, Value], ...]:
    """The knobs that each way of writing a change sets; a way that sets none is left out."""
    found = (
        change_of((*getattr(spelled, way), *spelled.environment), framework)
        for way, framework in _FRAMEWORKS.items()
    )
    return tuple(one for one in found if one)


def sets_of(spelled: Spelled) -> dict[str, Value]:
    """All knobs that a change sets, whatever the way it is written."""
    return {knob: value for way in ways_of(spelled) for knob, value in way.items()}
