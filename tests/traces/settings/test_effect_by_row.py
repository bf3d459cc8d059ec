"""Settings in effect by rows of `setting_rows.toml`."""

from __future__ import annotations

from tests.configurations.setting_rows import ROWS, changed, plain, read_anew, said
from traces.settings.derive import add_derived, with_ranks
from traces.settings.draft import Draft
from traces.settings.effective import effective, finalized
from traces.settings.settings import Settings, settings


def test_a_framework_makes_of_settings_what_its_code_says() -> None:
    read_anew()
    for values, framework, core, becomes in ROWS["effective"]:
        before = Settings(said(values), framework or None)
        after = effective(before, core or None)
        if framework == "finalized":
            after = finalized(Settings(before.by_knob), core or None)
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
