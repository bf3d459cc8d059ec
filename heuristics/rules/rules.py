"""All rules, read once from the tables beside this file and from plug-ins; the verdict of each by version.

A plug-in's rules are rows of the TOML files in its package, written as these tables.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr
from packaging.version import Version

from heuristics.config.facts import version
from heuristics.config.view import Config
from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, offered
from heuristics.rules.condition import READERS, Condition
from heuristics.rules.facts import EXAMPLES
from traces.settings.settings import Value
from traces.toml_tables import WrongRow, read_rows, read_table
from traces.training_log.known_lines import KnownLine, KnownLines, shared_lines

Level = Literal["error", "warning", "ignored"]
"""`ignored`: the framework changes the setting, or drops it, without an error."""

By = Literal["core", "megatron_lm", "megatron_bridge", "arguments", "dispatcher", "te", "ours"]
"""Who refuses: Megatron-Core's configuration, the arguments of Megatron-LM, Megatron-Bridge, each of these
two (`arguments`), Megatron-Core while it builds or runs a layer (`dispatcher`), Transformer Engine (`te`), or
nobody but us before the run fails."""

_PRINTED: Final = {
    "Megatron-Core, ": ("Megatron-LM, megatron/core/{}, core_v{} to d98e8a64", "0.12.0"),
    "Megatron-LM, training/": ("Megatron-LM, megatron/training/{}, core_v{} to d98e8a64", "0.12.0"),
    "Megatron-Bridge, ": ("Megatron-Bridge, src/megatron/bridge/{}, v{} to 067f987d", "0.3.1"),
}
"""A place as rules name it -> the file by its path, and the oldest release that was read for its messages."""


@cache
def sources() -> Mapping[str, str]:
    """Where rules are written, by the names that rows give in braces; one for each `By` but `ours`."""
    return read_table("heuristics.rules", "sources.toml", dict[str, str])


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the tables.

    `feature`: the rule is about runs that have it; then `needs` must hold, or `forbids` must not. `text`:
    the sentence of every view. `level`: `guide` where only a published guide asks for it. `since`, `until`:
    the first release that has the rule and the first that has it no more, None without; of Megatron-Core
    (and so Megatron-LM), of Megatron-Bridge where that refuses. `message`: texts of which one stands in the
    exception that a log shows, as the framework has them; `printed`: the files and releases that print it,
    where these are not those of `source` from `since` on; `lines`: ids of `known_lines.toml`, of messages
    that other rules print as well. `cure`: what would meet it in any run; `cures`: its ways, each with what
    a run must have for it; `example`: values that do in this run, by name; `set`: knobs that do, where their
    values do not depend on the run; `along`: who switches the feature on sets them with it. `fix`: the
    catalogue's id, `CFG-n` or `ENV-n`. `guide`: where a published guide asks for it. `same`: ids of findings
    and of steps of the workflow that tell the same. `source`: names of `sources.toml` stand in braces;
    without one it is that of `by`.
    """

    id: str
    text: str
    by: By
    cure: str = ""
    source: str = ""
    feature: Condition | None = None
    needs: Condition | None = None
    forbids: Condition | None = None
    level: Level | Literal["guide"] = "error"
    since: Version | None = None
    until: Version | None = None
    message: tuple[str, ...] = ()
    printed: str = ""
    lines: tuple[str, ...] = ()
    set: Mapping[str, Value] = {}
    along: bool = False
    cures: Mapping[str, Condition] = {}
    example: Literal["expert_ranks_that_fit", "hierarchy_that_fits"] | None = None
    fix: str = ""
    guide: str = ""
    same: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            source = (self.source or f"{{{self.by}}}").format_map(sources())
        except KeyError as error:
            raise ValueError(f"source {error} is not in sources.toml") from None
        force_setattr(self, "source", source)
        force_setattr(self, "cure", self.cure or alternatives(self.cures))

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
        example = EXAMPLES[self.example].of(config) if self.example else None
        return f"{cure}: here {example}" if example else cure

    @property
    def all_lines(self) -> tuple[str, ...]:
        """Ids of all lines that it prints."""
        return (self.id, *self.lines) if self.message else self.lines

    @property
    def line(self) -> KnownLine:
        """Its own message, as a line of a log."""
        places = self.printed or "; ".join(map(self._printed, self.source.split("; ")))
        return KnownLine(self.message, places, self.id)

    def _printed(self, source: str) -> str:
        """A place of `source` by its path, with the releases that were read and print the message."""
        for place, (path, first) in _PRINTED.items():
            if source.startswith(place):
                of_this = place.startswith("Megatron-Bridge") == (self.by == "megatron_bridge")
                return path.format(source.removeprefix(place), (of_this and self.since) or first)
        return source

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


def added_rules(ours: Mapping[str, Rule]) -> dict[str, Rule]:
    """By id, in the order of plug-ins and of the names of their tables."""
    found: dict[str, Rule] = {}
    for entry in offered("moe_diag.rules"):
        with left_out_if_wrong(entry):
            found |= _of_plugin(entry, {**ours, **found})
    return found


def _of_plugin(entry: EntryPoint, taken: Mapping[str, Rule]) -> dict[str, Rule]:
    tables = [one for one in files(entry.load()).iterdir() if one.name.endswith(".toml")]
    if not tables:
        raise WrongPlugin(f"{entry.value} holds no TOML file of rules")
    found: dict[str, Rule] = {}
    for table in sorted(tables, key=lambda one: one.name):
        written = tomllib.loads(table.read_text(encoding="utf-8"))
        for row in written["rule"]:
            row["source"] = "; ".join(filter(None, (name_of(entry), row.get("source", ""))))
        try:
            rules = read_rows(written, dict[str, tuple[Rule, ...]], table.name, READERS)["rule"]
        except WrongRow as error:
            raise WrongPlugin(str(error)) from error
        for rule in rules:
            if rule.id in {**taken, **found}:
                raise WrongPlugin(f"rule {rule.id!r} is there already: give it an id of its own")
            found[rule.id] = rule
    return found


SUBJECTS: Final = (
    *("layout", "pipeline", "router", "dispatcher", "flex", "ep_overlap", "delayed_wgrad", "graphs"),
    *("recompute", "offload", "precision", "optimizer_ddp", "fsdp", "mtp_context", "training"),
    *("environment", "reported"),
)
"""Tables, in the order in which their rules are reported."""


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id: ours, then those of plug-ins. Raises `WrongRow`."""
    ours = {rule.id: rule for subject in SUBJECTS for rule in rows(subject)}
    return {**ours, **added_rules(ours)}


@cache
def rows(subject: str) -> tuple[Rule, ...]:
    """The rules of one table. Raises `WrongRow`."""
    return read_table("heuristics.rules", f"{subject}.toml", dict[str, tuple[Rule, ...]], READERS)["rule"]


@cache
def known_lines() -> KnownLines:
    """Lines of a log: each rule's own message, then those that several rules print or none."""
    return KnownLines((*(rule.line for rule in rules().values() if rule.message), *shared_lines()))
