"""Rows of `setting_rows.toml`: one a kind of file, of value or of change, with what it means."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from tests.places import DATA
from traces.settings import core_fields, corrections, effective, harness_recipes, knobs, model_names, names
from traces.settings.settings import Setting, Settings, Value

ROWS: Final[dict[str, Any]] = tomllib.loads((DATA / "setting_rows.toml").read_text(encoding="utf-8"))


def read_anew() -> None:
    """Let tables be read again, whatever test came before."""
    for module in (core_fields, knobs, names, corrections, effective, harness_recipes, model_names):
        for one in vars(module).values():
            if hasattr(one, "cache_clear"):
                one.cache_clear()


def plain(values: Mapping[str, Any]) -> dict[str, Value]:
    lists = {knob: tuple(one) if isinstance(one, list) else one for knob, one in values.items()}
    return {knob: None if one == "null" else one for knob, one in lists.items()}


def said(values: Mapping[str, Any]) -> dict[str, Setting]:
    """Settings of a file; with a question mark before its name a default."""
    by_knob = {knob.strip("?"): (one, knob[0] == "?") for knob, one in plain(values).items()}
    return {knob: Setting(one, "default" if usual else "a:1") for knob, (one, usual) in by_knob.items()}


def changed(before: Mapping[str, Setting], after: Settings) -> dict[str, Setting]:
    return {k: one for k, one in after.by_knob.items() if k not in before or before[k].value != one.value}
