"""What is configured of a run, as values that can be compared: settings, versions, options; and its trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import structs

from heuristics.result.configured import Configuration
from heuristics.result.result import Result
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.trace import Trace

Value = bool | int | float | str | None | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by knob. `sources`: where each is set; one whose value is withheld is in `withheld` only."""

    values: Mapping[str, Value]
    sources: Mapping[str, str]
    withheld: frozenset[str]


NONE: Final = Settings({}, {}, frozenset())


def settings_of(result: Result) -> Settings:
    """The settings of its configuration; none without one."""
    configuration = known(result.configuration)
    if configuration is None:
        return NONE
    return Settings(
        values={one.knob: plain(one.value) for one in configuration.settings if not one.withheld},
        sources={one.knob: one.said for one in configuration.settings},
        withheld=frozenset(one.knob for one in configuration.settings if one.withheld),
    )


def given_of(result: Result) -> dict[str, Value]:
    """What was given of the run, by field of `Given`."""
    return {field: plain(value) for field, value in result.given.items()}


def versions_of(configuration: Configuration) -> dict[str, str]:
    """The versions that a configuration names, by package."""
    named = structs.asdict(configuration.versions)
    return {package: version for package, version in named.items() if isinstance(version, str)}


def trace_of(result: Result, rank: Rank) -> Trace | None:
    """The trace that a rank is of."""
    return next((one for one in result.traces if one.name == rank.trace), next(iter(result.traces), None))


def plain(value: Any) -> Value:
    """A value in which lists, as JSON has them, are tuples."""
    return tuple(plain(one) for one in value) if isinstance(value, list | tuple) else value
