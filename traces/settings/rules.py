"""A rule of a framework: from settings, to the knobs it changes and why."""

from collections.abc import Callable
from dataclasses import dataclass

from traces.settings.knobs import Release
from traces.settings.settings import KnobView, Settings, Value


@dataclass(frozen=True, slots=True)
class Change:
    """A knob that a framework sets to another value. `why`: what makes it, and where."""

    knob: str
    value: Value
    why: str


class Facts(KnobView):
    """Settings as a rule asks them, and the release of Megatron-Core."""

    def __init__(self, settings: Settings, core: Release) -> None:
        super().__init__(settings)
        self.core = core


Rule = Callable[[Facts], tuple[Change, ...]]
