"""All rules, read once from the tables beside this file and from plug-ins; the verdict of each by
version.

A plug-in's rules are rows of the TOML files in its package, written as these tables.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from operator import attrgetter
from typing import Final, Literal, NamedTuple

import tomli
from msgspec import Struct
from msgspec.structs import force_setattr
from packaging.version import Version

from heuristics.config.logic import all_of, each_once, negated
from heuristics.config.versions import PACKAGE_NAMES, PACKAGES, Package
from heuristics.config.view import Config
from heuristics.facts.configuration import version
from heuristics.facts.dictionary import DICTIONARY
from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, offered
from heuristics.result.configured import RuleLevel
from heuristics.rules.condition import READERS, Condition
from heuristics.rules.terms import knobs_first
from heuristics.words import say
from traces.settings.settings import Value, Values
from traces.settings.spelling import spelled
from traces.texts import Texts
from traces.toml_tables import WrongRow, keyed, read_keyed, read_rows, read_table
from traces.training_log.known_lines import KnownLine, KnownLines, shared_lines

By = Literal["core", "megatron_lm", "megatron_bridge", "arguments", "dispatcher", "te", "ours"]
"""Who refuses: Megatron-Core's configuration, the arguments of Megatron-LM, Megatron-Bridge, each
of these two (`arguments`), Megatron-Core while it builds or runs a layer (`dispatcher`),
Transformer Engine (`te`), or nobody but us before the run fails."""

_FRAMEWORKS: Final = ("megatron_lm", "megatron_bridge")
_UPGRADES: Final = {"te": "ENV-3", "torch": "ENV-1"}
"""Package -> the correction that is a newer one."""


_READ: Final = (
    ("Megatron-Core, ", "Megatron-LM, megatron/core/", "core_v", "0.12.0", "0.20.0", "d98e8a64"),
    (
        "Megatron-LM, training/",
        "Megatron-LM, megatron/training/",
        "core_v",
        "0.12.0",
        "0.20.0",
        "d98e8a64",
    ),
    (
        "Megatron-Bridge, ",
        "Megatron-Bridge, src/megatron/bridge/",
        "v",
        "0.3.1",
        "0.7.0",
        "067f987d",
    ),
)
"""What was read for messages: a place as rules name it, by its path, from the oldest release to
main.

The tag before a release, the oldest, the one that main will be, and main.
"""


@cache
def sources() -> Mapping[By, Mapping[str, str]]:
    """Where rules are written, by who refuses there and by the names that rows give in braces."""
    return read_table("heuristics.rules", "sources.toml", dict[By, dict[str, str]])


@cache
def _places() -> tuple[Mapping[str, By], Mapping[str, str]]:
    """Who refuses at each name, and its place."""
    refusing, places = dict[str, By](), dict[str, str]()
    for by, placed in sources().items():
        refusing |= dict.fromkeys(placed, by)
        places |= placed
    return refusing, places


class Releases(NamedTuple):
    """Of a run, None where unknown."""

    core: Version | None
    bridge: Version | None
    framework: str | None


def releases_of(config: Config) -> Releases:
    """What a configuration is for."""
    return Releases(version(config.core), version(config.bridge), config.framework)


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the tables, under its id.

    `feature`: the rule is about runs that have it; then `needs` must hold, or `forbids` must not.
    `text`: the sentence of every view. `level`: `guide` where only a published guide asks for it.
    `since`, `until`: the first release that has the rule and the first that has it no more, None
    without; of Megatron-Core (and so Megatron-LM), of Megatron-Bridge where that refuses.
    `message`: texts of which one stands in the exception that a log shows, as the framework has
    them; `printed`: the files and releases that print it, where these are not those of `source`
    from `since` on; `lines`: ids of `known_lines.toml`, of messages that other rules print as well.
    `cure`: what would meet it in any run, where `set`, `cures` or the release that it needs do not
    say it; `cures`: its ways, each with what a run must have for it; `example`: values that do in
    this run, by name; `set`: knobs that do, where their values do not depend on the run; `along`:
    who switches the feature on sets them with it. `fix`: the catalogue's id, `CFG-n` or `ENV-n`.
    `guide`: where a published guide asks for it. `same`: ids of findings and of steps of the
    workflow that tell the same. `source`: names of `sources.toml` stand in braces; without one it
    is that of `by`. `by`: without it, who refuses at the place that `source` names first.
    """

    id: str
    text: str
    by: By = "core"
    cure: str = ""
    source: str = ""
    feature: Condition | None = None
    needs: Condition | None = None
    forbids: Condition | None = None
    level: RuleLevel | Literal["guide"] = "error"
    since: Version | None = None
    until: Version | None = None
    message: Texts = ()
    printed: str = ""
    lines: Texts = ()
    set: Values = {}
    along: bool = False
    cures: Mapping[str, Condition] = {}
    example: (
        Literal[
            "expert_ranks_that_fit",
            "hierarchy_that_fits",
            "domain_ranks_that_fit",
            "stages_that_work",
        ]
        | None
    ) = None
    fix: str = ""
    guide: str = ""
    same: Texts = ()

    def __post_init__(self) -> None:
        by, places = _places()
        if self.by == "core":
            first = self.source.partition("}")[0].removeprefix("{")
            force_setattr(self, "by", by.get(first, "core"))
        try:
            source = (self.source or f"{{{self.by}}}").format_map(places)
        except KeyError as error:
            raise ValueError(f"source {error} is not in sources.toml") from None
        force_setattr(self, "source", source)
        words = (words_of(knob, value, self.by) for knob, value in self.set.items())
        cure = self.cure or ", or ".join(self.cures) or " and ".join(words)
        if not cure and (needed := self.needs_release):
            cure = say("rules.later-release", package=PACKAGE_NAMES[needed[0]], release=needed[1])
            force_setattr(self, "fix", self.fix or _UPGRADES[needed[0]])
        force_setattr(self, "cure", cure)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All that it asks of a configuration."""
        return tuple(part for part in (self.feature, self.needs, self.forbids) if part)

    @property
    def knobs(self) -> Texts:
        """Knobs that it speaks of."""
        return each_once(knob for part in self.conditions for knob in part.knobs)

    @property
    def needs_release(self) -> tuple[Package, str] | None:
        """The release that it asks for, where it asks for one alone: `torch >= '2.6.0'`."""
        needs = self.needs
        if not needs or len(needs.words) != 1:
            return None
        for package in PACKAGES:
            if needs.names == (package,):
                return package, str(*needs.words)
        return None

    @property
    def met_by(self) -> str:
        """The catalogue's fix that meets it, else its cure in words."""
        if self.fix[:3] in ("", "CFG", "ENV", "CAP"):
            return self.cure
        return self.fix

    def cure_of(self, config: Config) -> str:
        """What would meet it in this run: of several ways those that the run is known to have."""
        ways = (way for way, needed in self.cures.items() if needed.holds(config))
        cure = ", or ".join(ways) or self.cure
        example = DICTIONARY[self.example].of(config) if self.example else None
        if example:
            return say("rules.in-this-run", cure=cure, example=example)
        return cure

    @property
    def all_lines(self) -> Texts:
        """Ids of all lines that it prints."""
        if self.message:
            return (self.id, *self.lines)
        return self.lines

    @property
    def line(self) -> KnownLine:
        """Its own message, as a line of a log."""
        printed = self.printed or "; ".join(map(self._printed, self.source.split("; ")))
        return KnownLine(self.message, printed, self.id)

    def _printed(self, source: str) -> str:
        """A place of `source` by its path, with the releases that were read and print the
        message.
        """
        for place, path, tag, oldest, next_one, main in _READ:
            if source.startswith(place):
                own = (tag == "v") == (self.by == "megatron_bridge")
                first = (own and self.since) or Version(oldest)
                releases = main if first >= Version(next_one) else f"{tag}{first} to {main}"
                return f"{path}{source.removeprefix(place)}, {releases}"
        return source

    def asked(self, config: Config) -> bool | None:
        """Whether the configuration has what the rule is about."""
        if not self.feature:
            return True
        return self.feature.holds(config)

    def holds(self, config: Config) -> bool | None:
        """Whether what it asks for is so, of a run that has the feature."""
        if self.needs:
            return self.needs.holds(config)
        if self.forbids:
            return negated(self.forbids.holds(config))
        return None

    def broken(self, config: Config) -> bool | None:
        """Whether a configuration breaks it, in a release that has it."""
        is_asked = self.asked(config)
        if is_asked is False:  # of most rules, and the rest need not be asked
            return False
        return all_of(is_asked, negated(self.holds(config)))

    def asks(self, config: Config) -> Texts:
        """Unknown knobs, then options, that would decide it."""
        asks = list[str]()
        for condition in self.conditions:
            asks += condition.asks(config)
        if self.by in _FRAMEWORKS and config.framework is None:
            asks.append("--config")
        if self.until and config.core is None:
            asks.append("--core-version")
        return knobs_first(asks)

    def in_force(self, releases: Releases) -> bool | None:
        """Whether the releases have it; None where the release is unknown and the newest has it no
        more.
        """
        release = releases.bridge if self.by == "megatron_bridge" else releases.core
        if not release:
            if self.until:
                return None
            return True
        return (self.since is None or self.since <= release) and (
            self.until is None or release < self.until
        )

    def applies(self, releases: Releases) -> bool | None:
        """Whether these releases and this framework have it; None where that is unknown."""
        of_framework = self.by in _FRAMEWORKS
        if of_framework and releases.framework not in (None, self.by):
            return False
        forced = self.in_force(releases)
        if forced and of_framework and releases.framework is None:
            return None
        return forced

    def verdict(self, config: Config) -> bool | None:
        """Whether a configuration breaks it in its version and framework; None where unknown.

        An unknown version counts as the newest; a rule that the newest no longer has is then
        unknown.
        """
        applies = self.applies(releases_of(config))
        broken = applies is not False and self.broken(config)
        if applies or broken is False:
            return broken
        return None


ById = Mapping[str, Rule]
Rules = tuple[Rule, ...]
"""Several, in an order that means something."""


def words_of(knob: str, value: Value, by: By) -> str:
    """What sets a knob: an override where Bridge refuses, else words."""
    if knob.startswith("env."):
        return f"{knob.removeprefix('env.')}={value}"
    if by == "megatron_bridge" and "." in knob:
        return f"{knob}={'null' if value is None else str(value).lower()}"
    if value is None:
        return say("rules.left-out", knob=knob)
    return f"{knob} {spelled(value)}"


def added_rules(ours: ById) -> ById:
    """By id, in the order of plug-ins and of the names of their tables."""
    added = dict[str, Rule]()
    for entry in offered("moe_diag.rules"):
        with left_out_if_wrong(entry):
            added |= _of_plugin(entry, {**ours, **added})
    return added


def _of_plugin(entry: EntryPoint, taken: ById) -> ById:
    tables = [file for file in files(entry.load()).iterdir() if file.name.endswith(".toml")]
    if not tables:
        raise WrongPlugin(f"{entry.value} holds no TOML file of rules")
    added = dict[str, Rule]()
    for table in sorted(tables, key=attrgetter("name")):
        written = keyed(tomli.loads(table.read_text(encoding="utf-8")))
        for id, row in written.items():
            if id in {**taken, **added}:
                raise WrongPlugin(f"rule {id!r} is there already: give it an id of its own")
            row["source"] = "; ".join(filter(None, (name_of(entry), row.get("source", ""))))
        try:
            added |= read_rows(written, dict[str, Rule], table.name, READERS)
        except WrongRow as error:
            raise WrongPlugin(str(error)) from error
    return added


SUBJECTS: Final = (
    "layout",
    "pipeline",
    "router",
    "dispatcher",
    "flex",
    "ep_overlap",
    "delayed_wgrad",
    "graphs",
    "recompute",
    "offload",
    "precision",
    "optimizer_ddp",
    "fsdp",
    "mtp_context",
    "training",
    "environment",
    "reported",
)
"""Tables, in the order in which their rules are reported."""


@cache
def rules() -> ById:
    """Every rule by its id: ours, then those of plug-ins. Raises `WrongRow`."""
    ours = dict[str, Rule]()
    for subject in SUBJECTS:
        ours |= rows(subject)
    return {**ours, **added_rules(ours)}


@cache
def rows(subject: str) -> ById:
    """The rules of one table, by id. Raises `WrongRow`."""
    return read_keyed("heuristics.rules", f"{subject}.toml", Rule, READERS)


@cache
def known_lines() -> KnownLines:
    """Lines of a log: each rule's own message, then those that several rules print or none."""
    return KnownLines((*(rule.line for rule in rules().values() if rule.message), *shared_lines()))
