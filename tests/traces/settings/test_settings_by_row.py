"""Settings by rows of `setting_rows.toml`: one a kind of file, of value or of change, with what it means."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from tests.configurations.setting_rows import ROWS, plain, read_anew, said
from traces.errors import UsageError
from traces.settings import arguments_block, core_fields, knobs, model_names, names
from traces.settings.expressions import sum_of
from traces.settings.line_parts import as_word
from traces.settings.precision import configured_precision
from traces.settings.printed import change_of
from traces.settings.read import configuration_of
from traces.settings.settings import KnobView, Settings, Value
from traces.settings.spelling import can_spell, harness_line, is_left_out, spell, with_twins
from traces.settings.values import NotAValue, Raw, value_of
from traces.sizes.model import ModelSize, model_size
from traces.sizes.parameters import total_counts


def test_a_change_has_its_lines_in_each_framework_and_release() -> None:
    read_anew()
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
        return f"{found.id}, {found.name}, {len(found.settings.by_knob)}"
    except UsageError as error:
        return str(error)


def test_a_model_has_many_names_and_a_precision_many_settings() -> None:
    read_anew()
    for values, precision in ROWS["precision"]:
        assert configured_precision(KnobView(Settings(said(values)))) == (precision or None), values
    for name, meant in ROWS["model"]:
        assert meaning_of(name).startswith(meant), name
    for one, (name, whole, billions) in zip(model_names.named_models(), ROWS["parameters"], strict=True):
        size = model_size(one.settings.changed({"seq_length": 1}, "a"))
        assert isinstance(size, ModelSize)
        assert size.experts
        counts, routed = total_counts(size), size.experts.topk / size.experts.count
        active = sum(counts.values()) - counts["experts"] * (1 - routed)
        assert (one.id, sum(counts.values()), pytest.approx(active / 1e9, abs=0.06)) == (
            name,
            whole,
            billions,
        )


def value_said(knob: str, raw: Raw) -> Value:
    try:
        return value_of(knobs.knobs()[knob], raw)
    except NotAValue as error:
        return f"! {error}"


def test_a_text_is_a_value_a_sum_a_word_or_a_name_that_may_be_shown() -> None:
    read_anew()
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
    releases = {one.flag_since for one in ours} | {until for one in ours for until in one.older.values()}
    for core, following in zip_longest(sorted(releases), sorted(releases)[1:]):
        there = [one for one in ours if one.flag_since <= core and (one.until is None or one.until > core)]
        names_then = [one.name_in(core) if one.older else one.dest for one in there]
        lines = "".join(f"  {name} ... None\n" for name in names_then)
        text = f"{'-' * 8} arguments {'-' * 8}\n{lines}{'-' * 8} end of arguments {'-' * 8}\n"
        bounds = {"core_at_least": core, "core_before": following}
        dated = {
            name: arguments_block.spelled(one) for name, one in bounds.items() if one and one > knobs.FIRST
        }
        assert configuration_of(text, "a").versions == dated
