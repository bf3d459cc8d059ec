"""Rules of plug-ins: rows of the TOML files in their package, written as the tables beside this file."""

import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from importlib.resources import files

from heuristics.plugins import WrongPlugin, left_out_if_wrong, name_of, offered
from heuristics.rules.condition import READERS
from heuristics.rules.rule import Rule
from traces.toml_tables import WrongRow, read_rows


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
