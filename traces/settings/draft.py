"""A configuration while it is read: what was said, what could not be told, what is wrong."""

from dataclasses import dataclass, field
from typing import Final

from traces.limits import Limit
from traces.settings.knobs import Release
from traces.settings.settings import (
    Configuration,
    FileProblem,
    Framework,
    KnobView,
    ProblemEffect,
    Setting,
    Settings,
    Value,
)

MOST_PROBLEMS: Final = Limit(100, "problems", "ours: a file with more is another kind of file")


@dataclass(slots=True)
class Draft:
    """A configuration while it is read. A knob in `unclear` was said, but its value could not be
    told.

    `is_strict`: its program is one of which we know at what its parser stops. `core`: the release
    of Megatron-Core, None where unknown.
    """

    name: str
    framework: Framework | None = None
    by_knob: dict[str, Setting] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)
    is_strict: bool = False
    core: Release | None = None
    names: dict[str, dict[str, tuple[Value, int | None]]] = field(default_factory=dict)
    """By knob the names under which it was said, each with value and line."""
    looked_up: int = 0
    """Unknown names of which the nearest known one was looked for."""

    @property
    def view(self) -> KnobView:
        return KnobView(Settings(self.by_knob))

    def where(self, line: int | None) -> str:
        if line is None:
            return self.name
        return f"{self.name}:{line}"

    def put(self, knob: str, value: Value, line: int | None) -> None:
        """Take a value; a later one wins, as in the frameworks."""
        self.by_knob[knob] = Setting(value, self.where(line))
        self.unclear.discard(knob)

    def note_name(self, knob: str, name: str, line: int | None) -> None:
        """Keep under which name a knob was said just now, where it has a value."""
        if (setting := self.by_knob.get(knob)) and setting.value is not None:
            self.names.setdefault(knob, {})[name] = setting.value, line

    def leave(self, knob: str) -> None:
        """The knob was said and cannot be told: it stays unknown, and gets no default."""
        self.by_knob.pop(knob, None)
        self.unclear.add(knob)

    def has(self, knob: str) -> bool:
        """Whether a knob was said, told or not."""
        return knob in self.by_knob or knob in self.unclear

    def fill(self, settings: Settings) -> None:
        """Take what was not said otherwise."""
        for knob, setting in settings.by_knob.items():
            if not self.has(knob):
                self.by_knob[knob] = setting

    @property
    def is_full(self) -> bool:
        """Whether it has as many problems as a reader would read; then none is looked into any
        more.
        """
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
        """Note a problem once; the last one says that there are more. `always`: every program stops
        at it.
        """
        if self.is_full:
            return
        effect = "unread" if effect == "stops" and not (self.is_strict or always) else effect
        problem = FileProblem(self.where(line), text, instead, effect, newer)
        if problem in self.problems:
            return
        if len(self.problems) == MOST_PROBLEMS.value:
            problem = FileProblem(
                self.where(line), "more problems from here on", "correct those before it first"
            )
        self.problems.append(problem)

    def finished(self) -> Configuration:
        return Configuration(
            Settings(self.by_knob, self.framework), tuple(self.problems), self.versions, self.name
        )
