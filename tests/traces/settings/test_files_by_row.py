"""Files by rows of `setting_rows.toml`: each with its settings, their lines and its problems."""

from __future__ import annotations

from typing import Any

from tests.configurations.setting_rows import ROWS, read_anew
from traces.settings.read import configuration_of
from traces.settings.settings import NotAConfiguration


def answer_of(row: dict[str, Any]) -> dict[str, Any]:
    """What a file is read as, in the words of a row."""
    try:
        found = configuration_of(row["text"], row.get("name", "run.sh"), row.get("core"))
    except NotAConfiguration as error:
        return {"refused": str(error).partition(";")[0]}
    by_knob, value = found.settings.by_knob.items(), found.settings.value
    gives = [f"{k} = {s.value} {s.said.rpartition(':')[2]}" for k, s in by_knob if s.said != "default"]
    says = [f"{p.where.rpartition(':')[2]} {p.effect}: {p.text} -> {p.instead}" for p in found.problems]
    newer = [one.newer for one in found.problems if one.newer]
    usual = {knob: "null" if value(knob) is None else value(knob) for knob in row.get("defaults", {})}
    told = {"gives": gives, "says": says, "newer": newer, "versions": found.versions, "defaults": usual}
    return {name: one for name, one in told.items() if one}


def test_a_file_gives_what_it_says_with_its_lines_and_problems() -> None:
    read_anew()
    for name, row in ROWS["file"].items():
        assert answer_of(row) == {k: v for k, v in row.items() if k not in ("text", "name", "core")}, name
