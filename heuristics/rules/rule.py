"""One thing a configuration must not have: a row of the tables, and its verdict by version."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from packaging.version import Version

from heuristics.config.facts import Fact, version
from heuristics.config.view import Config
from heuristics.rules.condition import Condition
from traces.settings.settings import Value

Level = Literal["error", "warning", "ignored"]
"""`ignored`: the framework changes the setting, or drops it, without an error."""

By = Literal["core", "megatron_lm", "megatron_bridge", "arguments", "dispatcher", "te", "ours"]
"""Who refuses: Megatron-Core's configuration, the arguments of Megatron-LM, Megatron-Bridge, each of these
two (`arguments`), Megatron-Core while it builds or runs a layer (`dispatcher`), Transformer Engine (`te`), or
nobody but us before the run fails."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row.

    `feature`: the rule is about runs that have it; then `needs` must hold, or `forbids` must not. `text`:
    the sentence of every view. `level`: `guide` where only a published guide asks for it. `since`, `until`:
    the first release that has the rule and the first that has it no more, None without; of Megatron-Core
    (and so Megatron-LM), of Megatron-Bridge where that refuses. `lines`: ids of `known_lines.toml`, which
    has the framework's own message. `cure`: what would meet it in any run; `cures`: its ways, each with what
    a run must have for it; `example`: values that do in this run, in words; `set`: knobs that do, where their
    values do not depend on the run; `along`: who switches the feature on sets them with it. `fix`: the
    catalogue's id, `CFG-n` or `ENV-n`. `guide`: where a published guide asks for it. `same`: ids of findings
    and of steps of the workflow that tell the same.
    """

    id: str
    text: str
    by: By
    cure: str
    source: str
    feature: Condition | None = None
    needs: Condition | None = None
    forbids: Condition | None = None
    level: Level | Literal["guide"] = "error"
    since: Version | None = None
    until: Version | None = None
    lines: tuple[str, ...] = ()
    set: Mapping[str, Value] = field(default_factory=dict)
    along: bool = False
    cures: Mapping[str, Condition] = field(default_factory=dict)
    example: Fact | None = None
    fix: str = ""
    guide: str = ""
    same: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that it asks of a configuration."""
        return tuple(one for one in (self.feature, self.needs, self.forbids) if one)

    @property
    def knobs(self) -> tuple[str, ...]:
        """Knobs that it speaks of."""
        return tuple(dict.fromkeys(knob for one in self.conditions for knob in one.knobs))

    @property
    def met_by(self) -> str:
        """The catalogue's fix that meets it, else its cure in words."""
        return self.cure if self.fix[:3] in ("", "CFG", "ENV", "CAP") else self.fix

    def cure_of(self, config: Config) -> str:
        """What would meet it in this run: of several ways those that the run is known to have."""
        ways = [way for way, needed in self.cures.items() if needed.holds(config)]
        cure = alternatives(ways) or self.cure
        example = self.example.of(config) if self.example else None
        return f"{cure}: here {example}" if example else cure

    def asked(self, config: Config) -> bool | None:
        """Whether the configuration has what the rule is about."""
        return True if self.feature is None else self.feature.holds(config)

    def holds(self, config: Config) -> bool | None:
        """Whether what it asks for is so, of a run that has the feature."""
        if self.needs:
            return self.needs.holds(config)
        forbidden = self.forbids.holds(config) if self.forbids else None
        return None if forbidden is None else not forbidden

    def broken(self, config: Config) -> bool | None:
        """Whether a configuration breaks it, in a release that has it."""
        asked = self.asked(config)
        if asked is False:
            return False
        holds = self.holds(config)
        return False if holds else None if holds is None or asked is None else True

    def asks(self, config: Config) -> tuple[str, ...]:
        """Unknown knobs, then options, that would decide it."""
        asks = [one for condition in self.conditions for one in condition.asks(config)]
        if self.by in ("megatron_lm", "megatron_bridge") and config.framework is None:
            asks.append("--config")
        if self.until and config.core is None:
            asks.append("--core-version")
        return tuple(dict.fromkeys(sorted(asks, key=lambda one: one.startswith("--"))))


def alternatives(ways: Iterable[str]) -> str:
    """Ways to meet a rule, as one cure."""
    return ", or ".join(ways)


def verdict(rule: Rule, config: Config) -> bool | None:
    """Whether a configuration breaks a rule in its version and framework; None where unknown.

    An unknown version counts as the newest; a rule that the newest no longer has is then unknown.
    """
    applies = has_rule(rule, version(config.core), version(config.bridge), config.framework)
    if applies is False:
        return False
    broken = rule.broken(config)
    return broken if applies or broken is False else None


def in_force(rule: Rule, core: Version | None, bridge: Version | None) -> bool | None:
    """Whether the releases have a rule; None where the release is unknown and the newest has it no more."""
    release = bridge if rule.by == "megatron_bridge" else core
    if release is None:
        return None if rule.until else True
    early = rule.since is not None and release < rule.since
    late = rule.until is not None and release >= rule.until
    return not early and not late


def has_rule(rule: Rule, core: Version | None, bridge: Version | None, framework: str | None) -> bool | None:
    """Whether these releases and this framework have a rule; None where that is unknown."""
    if rule.by in ("megatron_lm", "megatron_bridge") and framework not in (None, rule.by):
        return False
    forced = in_force(rule, core, bridge)
    of_any = rule.by not in ("megatron_lm", "megatron_bridge")
    return forced if of_any or framework or not forced else None
