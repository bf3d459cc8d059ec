"""The words of a result for what is measured: unit, meaning, computation. Their home is
`measures.toml`.

Findings and states, which are no measures, have theirs in `glossary.toml`.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec.structs import replace

from traces.toml_tables import TableRow, read_table

_UNITS: Final = ("_ns", "_frac", "_bytes", "_count")


class Measure(TableRow, array_like=True):
    """One measure. `title`: its name where people read; `unit` is empty for words and tables.

    `limits` are `module:NAME` of a `Limit`. A row is an array of all but its name and group.
    """

    title: str
    unit: str
    what: str
    how: str
    limits: tuple[str, ...] = ()
    name: str = ""
    group: str = ""


def glossary() -> Mapping[str, Mapping[str, str]]:
    """Words of a result that are no measures, findings and states, each with its meaning."""
    return _sections("glossary.toml")


def words_of(section: str) -> Mapping[str, str]:
    """What pages call the keys of a kind."""
    return _sections("words.toml")[section]


@cache
def _sections(file: str) -> Mapping[str, Mapping[str, str]]:
    return read_table("reports", file, dict[str, dict[str, str]])


GROUPS: Final = words_of("group")
"""Groups of measures and their titles, in the order of a report."""


@cache
def measures() -> Mapping[str, Measure]:
    """All measures by name, in the order of `GROUPS`."""
    by_name = {}
    for group in GROUPS:
        for name, measure in _table()[group].items():
            if isinstance(measure, Measure):
                by_name[name] = replace(measure, name=name, group=group)
    return by_name


def elsewhere() -> Mapping[str, str]:
    """Section.key -> what the key means in that section, where that is not the measure of its
    name.
    """
    return {
        key: meaning for key, meaning in _table()["elsewhere"].items() if isinstance(meaning, str)
    }


def named(name: str) -> list[Measure]:
    """The measure of that name; else all that have it but for the unit at the end: `masked`,
    `fill`.
    """
    known = measures()
    if name in known:
        return [known[name]]
    return _by_stem().get(_stem(name), [])


@cache
def _by_stem() -> Mapping[str, list[Measure]]:
    by_stem = defaultdict[str, list[Measure]](list)
    for measure in measures().values():
        by_stem[_stem(measure.name)].append(measure)
    return by_stem


def _stem(name: str) -> str:
    """The name without its unit. The longest kernel of a kind is evidence of that kind."""
    for unit in _UNITS:
        name = name.removesuffix(unit)
    return name.removeprefix("longest_")


@cache
def _table() -> Mapping[str, Mapping[str, Measure | str]]:
    return read_table("reports", "measures.toml", dict[str, dict[str, Measure | str]])
