"""Rules of plug-ins: rows of the TOML files in their package, written as the tables beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, offered
from heuristics.rules.rule import Rule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable


def added_rules(read: Callable[[Mapping[str, Any]], Rule], ours: Mapping[str, Rule]) -> dict[str, Rule]:
    """By id, in the order of plug-ins and of the names of their tables. `read`: a row, as it is written."""
    found: dict[str, Rule] = {}
    for entry in offered("moe_diag.rules"):
        with left_out_if_wrong(entry):
            found |= _of_plugin(entry, read, {**ours, **found})
    return found


def _of_plugin(
    entry: EntryPoint, read: Callable[[Mapping[str, Any]], Rule], taken: Mapping[str, Rule]
) -> dict[str, Rule]:
    tables = sorted(_tables(entry), key=lambda one: one.name)
    if not tables:
        raise WrongPlugin(f"{entry.value} holds no TOML file of rules")
    found: dict[str, Rule] = {}
    for table in tables:
        for row in tomllib.loads(table.read_text(encoding="utf-8"))["rule"]:
            rule = _read(row, entry, read)
            if rule.id in {**taken, **found}:
                raise WrongPlugin(f"rule {rule.id!r} is there already: give it an id of its own")
            found[rule.id] = rule
    return found


def _read(row: Mapping[str, Any], entry: EntryPoint, read: Callable[[Mapping[str, Any]], Rule]) -> Rule:
    source = "; ".join(filter(None, (name_of(entry), row.get("source", ""))))
    try:
        return read({**row, "source": source})
    except ValueError as error:
        raise WrongPlugin(f"rule {row.get('id', 'without an id')!r}: {error}") from error


def _tables(entry: EntryPoint) -> list[Traversable]:
    return [one for one in files(entry.load()).iterdir() if one.name.endswith(".toml")]
