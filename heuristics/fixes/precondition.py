"""Something a fix needs, whether a run has it, and the forms it takes. What is unknown stays
unknown.
"""

from collections.abc import Mapping
from typing import Final

from heuristics.config.versions import Package
from heuristics.result.judged import NeedState
from traces.frozen import frozen

_STATES: Final[Mapping[bool | None, NeedState]] = {True: "met", False: "unmet", None: "unknown"}


@frozen
class Release:
    """A package, from a version such as "2.8.0" on."""

    package: Package
    version: str


@frozen
class Precondition:
    """Something a fix needs.

    `met_by`: what would meet it, a fix id or a change; `told_by`: an option, knob or recording that
    would tell. `blocks`: the fix is not to be tried while it is unknown; `late`: not before others.
    `source`: of the rule that asks for it. `release`: the release it is about, where it asks for
    nothing else. `order`: it only asks that another fix comes first, and so for nothing where that
    fix cannot be made. `is_active`: it asks that the run does not do already what the fix would
    change. `absent`: where it is not met, there is no such option in what runs.
    """

    text: str
    state: NeedState
    met_by: str = ""
    told_by: str = ""
    blocks: bool = False
    source: str = ""
    release: Release | None = None
    late: bool = False
    order: bool = False
    is_active: bool = False
    absent: bool = False

    @property
    def stops(self) -> bool:
        return self.state == "unmet" or (self.blocks and self.state == "unknown")

    @property
    def cure(self) -> str:
        """What to do about it: to learn it where it is unknown, else to meet it."""
        return (self.state == "unknown" and self.told_by) or self.met_by


Needs = tuple[Precondition, ...]


def holds(
    text: str, fact: bool | None, met_by: str = "", told_by: str = "", blocks: bool = False
) -> Precondition:
    return Precondition(text, _STATES[fact], met_by, told_by, blocks)
