"""Something a fix needs, whether a run has it, and the forms it takes. What is unknown stays unknown."""

from dataclasses import dataclass, replace
from typing import Literal

from heuristics.config.versions import PACKAGE_NAMES, Package, numbers
from heuristics.run.run import Run

State = Literal["met", "unmet", "unknown"]


@dataclass(frozen=True, slots=True)
class Release:
    """A package, from a version such as "2.8.0" on."""

    package: Package
    version: str


@dataclass(frozen=True, slots=True)
class Precondition:
    """Something a fix needs.

    `met_by`: what would meet it, a fix id or a change; `told_by`: an option, knob or recording that would
    tell. `blocks`: the fix is not to be tried while it is unknown; `late`: not before others. `source`: of
    the rule that asks for it. `release`: the release it is about, where it asks for nothing else.
    """

    text: str
    state: State
    met_by: str = ""
    told_by: str = ""
    blocks: bool = False
    source: str = ""
    release: Release | None = None
    late: bool = False

    @property
    def stops(self) -> bool:
        """Whether it keeps the fix out of a plan."""
        return self.state == "unmet" or (self.blocks and self.state == "unknown")

    @property
    def cure(self) -> str:
        """What to do about it: to learn it where it is unknown, else to meet it."""
        return (self.state == "unknown" and self.told_by) or self.met_by


def holds(
    text: str, fact: bool | None, met_by: str = "", told_by: str = "", blocks: bool = False
) -> Precondition:
    """Met where `fact` is True, unmet where False, unknown where None."""
    state: State = "unknown" if fact is None else "met" if fact else "unmet"
    return Precondition(text, state, met_by, told_by, blocks)


def is_not(
    text: str, fact: bool | None, met_by: str = "", told_by: str = "", blocks: bool = False
) -> Precondition:
    """Met where `fact` is False."""
    return holds(text, None if fact is None else not fact, met_by, told_by, blocks)


def at_least(package: Package, version: str | None, needed: str, beside: str = "") -> Precondition:
    """Met where a version such as "2.8.0" is `needed` or later; letters after the numbers do not count."""
    fact = None if version is None else numbers(version) >= numbers(needed)
    text, told_by = f"{PACKAGE_NAMES[package]}{beside} >= {needed}", f"--{package}-version"
    need = holds(text, fact, f"an upgrade to {needed} or later", told_by)
    return replace(need, release=Release(package, needed))


def te_at_least(run: Run, needed: str, beside: str = "") -> Precondition:
    """A Transformer Engine, asked for beside something else."""
    return at_least("te", run.config.version_text("te"), needed, beside)


def already(run: Run, *knobs: str, active: bool | None = None) -> tuple[Precondition, ...]:
    """The refusal of a fix whose knob is on already; nothing where it is off or unknown.

    Nor where the trace shows that it is not `active` (False): then the fix may be what makes it so.
    """
    return already_so(knobs[0], active is not False and run.config.on(*knobs) is True)


def already_so(knob: str, fact: bool) -> tuple[Precondition, ...]:
    """The refusal of a fix that the configuration has made already, where that is a fact; else nothing."""
    return (Precondition(f"{knob} is not set yet", "unmet"),) if fact else ()
