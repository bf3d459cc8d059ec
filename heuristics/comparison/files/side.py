"""One side: its configuration as the framework has it, with defaults of its release where nobody
set a thing.

Megatron-LM's scripts and dumped configurations name every setting. A YAML or overrides of
Megatron-Bridge, and a launcher of its recipes, name a few: what the other side sets and this one
leaves out is filled in with Megatron-Core's default of the release, where there is one and it is a
plain one, and said to be a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final

from heuristics.comparison.files.measured import known_changes
from heuristics.config.about import Given
from heuristics.config.given import is_whole
from heuristics.config.trust import files_by_trust
from heuristics.config.versions import PACKAGES
from heuristics.config.view import Config, Trust
from heuristics.rules.check import check_rules
from heuristics.run.run import Run
from traces.settings.derive import DEFAULT
from traces.settings.knobs import VIRTUAL_STAGES, knobs, release
from traces.settings.settings import Setting, Settings, Value
from traces.training_log.log import TrainingLog

OVERLAP: Final = "comm_overlap."
UNSET: Final = "not set"
"""Where a variable of the environment is said that no file sets."""


@dataclass(frozen=True)
class FileSide:
    """What is given of one side. `settings`: of its configuration, which outweighs its log's.

    `versions`: of packages, as its files tell them. `name`: what it is called by. `shown`: a
    setting's value as a document may have it, None for a text that is withheld.
    """

    name: str
    config: str | None = None
    settings: Settings = field(default_factory=Settings)
    log: TrainingLog | None = None
    given: Given = field(default_factory=Given)
    versions: Mapping[str, str] = field(default_factory=dict)
    problems: int = 0
    shown: Callable[[str, Value], Any] = lambda knob, value: value

    @cached_property
    def run(self) -> Run:
        """The run as its own files configure it."""
        return self._run(self.files)

    @property
    def files(self) -> Settings:
        return files_by_trust(self.settings, self.log.settings if self.log else None)

    @property
    def has_configuration(self) -> bool:
        return bool(self.files.by_knob)

    @property
    def legal(self) -> bool | None:
        """Whether no rule of its release refuses it; None without a configuration."""
        if not self.has_configuration:
            return None
        return not any(rule.level == "error" for rule in check_rules(self.run))

    def against(self, other: FileSide) -> Config:
        """Its configuration, with defaults for what the other side, or a known change, names."""
        asked = {
            *other.run.config.written.by_knob,
            *chain.from_iterable(change.knobs for change in known_changes().values()),
        }
        filled = dict(_defaults(self, asked - {*self.files.by_knob}))
        return self._run(Settings(filled).under(self.files)).view(Trust.ALL)

    def _run(self, settings: Settings) -> Run:
        own = dict[str, Any]()
        for package in PACKAGES:
            name = f"{package}_version"
            own[name] = getattr(self.given, name) or self.versions.get(package)
        return Run(given=replace(self.given, **own), settings=settings, log=self.log)


def _defaults(side: FileSide, left_out: Iterable[str]) -> Iterator[tuple[str, Setting]]:
    """What has a default in the release of a side.

    A knob with a flag that only switches it off differs between the frameworks, and so does one of
    a group: it stays unknown where the file is not whole. A variable is not set where no file sets
    it.
    """
    if not side.has_configuration:
        return
    core, whole = release(side.run.config.core_text), is_whole(side.files)
    for name in sorted(left_out):
        knob = knobs().get(name)
        if f"{OVERLAP}{name}" in side.files:
            continue  # Bridge writes that one over it
        if name.startswith("env."):
            yield name, Setting(None, UNSET)
        elif name == VIRTUAL_STAGES:
            yield name, Setting(None, DEFAULT)
        elif knob is not None and (whole or (knob.is_core and not knob.off)):
            there = core is None or knob.is_known_in(core)
            if there and (default := knob.default_in(core)) is not None:
                yield name, Setting(*default, DEFAULT)
