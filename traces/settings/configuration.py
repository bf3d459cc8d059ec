"""What a configuration file tells: settings, and what in it could not be taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from traces.errors import InputError
from traces.limits import Limit
from traces.settings.settings import Framework, Setting, Settings, Value
from traces.settings.view import KnobView

MOST_PROBLEMS: Final = Limit(100, "problems", "ours: a file with more is another kind of file")


ProblemEffect = Literal["unread", "older_name", "stops"]


class NotAConfiguration(InputError):
    """A file that cannot be read as a run's configuration. The message names it and what to give instead."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the file that was not taken as it stands.

    `where`: such as `run.sh:31`; `instead`: what to write there, empty where nothing would do. Neither holds
    a value of the file, nor a name that is not made of words we know, or near to them. `effect`: what the
    framework makes of it: nothing, the same as of the newer name, or it stops. `newer`: the knob whose flag
    only later releases have.
    """

    where: str
    text: str
    instead: str = ""
    effect: ProblemEffect = "unread"
    newer: str = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file's settings, its problems in the order of its lines, and its name.

    `versions`: what it tells of releases: `core_at_least` and `core_before` of Megatron-Core by the names it
    uses, `container` of an image it names.
    """

    settings: Settings
    problems: tuple[Problem, ...]
    versions: Mapping[str, str]
    name: str


@dataclass(slots=True)
class Draft:
    """A configuration while it is read. A knob in `unclear` was said, but its value could not be told.

    `is_strict`: its program is one of which we know at what its parser stops.
    """

    name: str
    framework: Framework | None = None
    by_knob: dict[str, Setting] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    is_strict: bool = False

    @property
    def view(self) -> KnobView:
        """What is taken so far, to be asked."""
        return KnobView(Settings(self.by_knob))

    def where(self, line: int | None) -> str:
        """A place to name: `run.sh:31`."""
        return self.name if line is None else f"{self.name}:{line}"

    def put(self, knob: str, value: Value, line: int | None) -> None:
        """Take a value; a later one wins, as in the frameworks."""
        self.by_knob[knob] = Setting(value, self.where(line))
        self.unclear.discard(knob)

    def leave(self, knob: str) -> None:
        """The knob was said and cannot be told: it stays unknown, and gets no default."""
        self.by_knob.pop(knob, None)
        self.unclear.add(knob)

    def has(self, knob: str) -> bool:
        """Whether a knob was said, told or not."""
        return knob in self.by_knob or knob in self.unclear

    @property
    def is_full(self) -> bool:
        """Whether it has as many problems as a reader would read; then none is looked into any more."""
        return len(self.problems) > MOST_PROBLEMS.value

    def problem(
        self,
        line: int | None,
        text: str,
        instead: str = "",
        effect: ProblemEffect = "unread",
        newer: str = "",
        always: bool = False,
    ) -> None:
        """Note a problem once; the last one says that there are more. `always`: every program stops at it."""
        if self.is_full:
            return
        effect = "unread" if effect == "stops" and not (self.is_strict or always) else effect
        found = Problem(self.where(line), text, instead, effect, newer)
        if found in self.problems:
            return
        if len(self.problems) == MOST_PROBLEMS.value:
            found = Problem(self.where(line), "more problems from here on", "correct those before it first")
        self.problems.append(found)

    def finished(self) -> Configuration:
        """What was read."""
        return Configuration(
            Settings(self.by_knob, self.framework), tuple(self.problems), self.versions, self.name
        )
