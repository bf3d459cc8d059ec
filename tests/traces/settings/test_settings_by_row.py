"""Settings by rows of `setting_rows.toml`: one a kind of file, of value or of change, with what it means."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.places import DATA
from traces.errors import UsageError
from traces.settings import (
    arguments_block,
    core_fields,
    corrections,
    effective,
    harness_recipes,
    knobs,
    model_names,
    names,
)
from traces.settings.derive import add_derived, with_ranks
from traces.settings.expressions import sum_of
from traces.settings.line_parts import as_word
from traces.settings.precision import configured_precision
from traces.settings.printed import change_of
from traces.settings.read import configuration_of
from traces.settings.settings import Draft, KnobView, NotAConfiguration, Setting, Settings, Value, settings
from traces.settings.spelling import can_spell, harness_line, is_left_out, spell, with_twins
from traces.settings.values import NotAValue, Raw, value_of

ROWS: Final[dict[str, Any]] = tomllib.loads((DATA / "setting_rows.toml").read_text(encoding="utf-8"))


@pytest.fixture
def _anew() -> None:
    """Tables are read again, whatever test came before."""
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


@pytest.mark.usefixtures("_anew")
def test_a_file_gives_what_it_says_with_its_lines_and_problems() -> None:
    for name, row in ROWS["file"].items():
        assert answer_of(row) == {k: v for k, v in row.items() if k not in ("text", "name", "core")}, name


@pytest.mark.usefixtures("_anew")
def test_a_framework_makes_of_settings_what_its_code_says() -> None:
    for values, framework, core, becomes in ROWS["effective"]:
        before = Settings(said(values), framework or None)
        after = effective.effective(before, core or None)
        if framework == "finalized":
            after = effective.finalized(Settings(before.by_knob), core or None)
        found = changed(before.by_knob, after)
        assert {knob: one.value for knob, one in found.items()} == plain(becomes), values
        assert all(one.said not in ("a:1", "") for one in found.values())


def test_facts_that_follow_are_said_where_their_source_is() -> None:
    for values, is_complete, follows in ROWS["derived"]:
        draft = Draft("a", by_knob=said(values))
        add_derived(draft, is_complete)
        assert changed(said(values), Settings(draft.by_knob)) == said(follows), values
    for values, agreed in ROWS["ranks"]:
        found = with_ranks(settings(values, "a:1"))
        assert {knob: one.value for knob, one in found.by_knob.items()} == agreed


@pytest.mark.usefixtures("_anew")
def test_a_change_has_its_lines_in_each_framework_and_release() -> None:
    for change, framework, core, lines in ROWS["spelled"]:
        assert spell(plain(change), framework, core or None) == tuple(lines)
    for knob, framework, core, can in ROWS["can"]:
        assert can_spell(knob, framework, core or None) == can, (knob, framework, core)
    for knob, value, line in ROWS["harness"]:
        assert harness_line(knob, plain({knob: value})[knob]) == line
    for knob, value, is_left in ROWS["left"]:
        assert is_left_out(knob, plain({knob: value})[knob]) == is_left
    for change, twins in ROWS["twins"]:
        assert with_twins(change) == twins
    for lines, framework, sets in ROWS["printed"]:
        assert change_of(lines, framework) == plain(sets), lines


def meaning_of(name: str) -> str:
    try:
        found = model_names.model_named(name)
        return f"{found.id}, {found.name}, {len(found.settings.by_knob)}: {found.caveat}"
    except UsageError as error:
        return str(error)


@pytest.mark.usefixtures("_anew")
def test_a_model_has_many_names_and_a_precision_many_settings() -> None:
    for values, precision in ROWS["precision"]:
        assert configured_precision(KnobView(Settings(said(values)))) == (precision or None), values
    for name, meant in ROWS["model"]:
        assert meaning_of(name).startswith(meant), name


def value_said(knob: str, raw: Raw) -> Value:
    try:
        return value_of(knobs.knobs()[knob], raw)
    except NotAValue as error:
        return f"! {error}"


@pytest.mark.usefixtures("_anew")
def test_a_text_is_a_value_a_sum_a_word_or_a_name_that_may_be_shown() -> None:
    for knob, raw, value in ROWS["value"]:
        assert repr(value_said(knob, raw)) == repr(plain({knob: value})[knob]), (knob, raw)
    for text, number in ROWS["sum"]:
        assert sum_of(text, {"A": 6, "B": 4}.get) == (None if number == "null" else number), text
    for text, word in ROWS["word"]:
        assert as_word(text) == word
    for name, since, until, default in ROWS["fields"]:
        field = core_fields.core_fields().sometimes[name]
        assert (field.since, field.until) == (since, until)
        assert field.default == plain({name: default})[name] or field.default == default
    fields = core_fields.core_fields()
    assert [one in fields for one in ("num_layers", "use_mup", "save")] == [True, True, False]
    assert ("kv_lora_rank" in fields.of_mla, "num_layers" in fields.of_mla) == (True, False)
    for name, near, may_leave in ROWS["shown"]:
        assert names.shown(name, near) == may_leave


def test_the_arguments_of_a_release_are_dated_to_it() -> None:
    ours = [one for one in knobs.knobs().values() if one.dest]
    releases = {one.flag_since for one in ours} | {old.until for one in ours for old in one.older}
    for core, following in pairwise(sorted(releases)):
        there = [one for one in ours if one.flag_since <= core and (one.until or knobs.MAIN) > core]
        names_then = [one.name_in(core) if one.older else one.dest for one in there]
        lines = "".join(f"  {name} ... None\n" for name in names_then)
        text = f"{'-' * 8} arguments {'-' * 8}\n{lines}{'-' * 8} end of arguments {'-' * 8}\n"
        bounds = {"core_at_least": core, "core_before": following}
        dated = {name: arguments_block.spelled(one) for name, one in bounds.items() if one > knobs.FIRST}
        assert configuration_of(text, "a").versions == dated
