"""A kept result that somebody edited says nothing in our voice but what we say."""

from __future__ import annotations

import random
import re
import shlex

import pytest

from reports.result.codec import Document, encode
from reports.result.read import typed
from reports.result.voice.book import Reading, book
from reports.result.voice.kept import NOT_OURS, kept
from reports.result.voice.phrases import GAP, phrases
from tests.hostile.poison import (
    MARK,
    POISONS,
    assert_harmless,
    documents,
    fields_in,
    planted_at,
    runs_something,
    tables_in,
    with_key,
)
from traces.errors import NotAResult
from traces.limits import Limit
from traces.settings.spelling import harness_line, spell

WORD = re.compile(r"[a-z]{3,}")
OF_EACH = 2
"""Fields of a document that are poisoned here; the others: test_every_field_poisoned.py."""


@pytest.fixture(scope="module")
def kept_documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    return documents(tmp_path_factory.mktemp("kept"))


KINDS = ("analysis", "comparison", "configuration", "files", "layouts", "dense_2026_11_23.json.gz")


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_nobody_edited_is_as_it_was(kind: str, kept_documents: dict[str, Document]) -> None:
    result = typed(kept_documents[kind])
    assert kept(result) == result


@pytest.mark.parametrize("kind", KINDS)
def test_a_poisoned_key_is_refused_or_left_out(kind: str, kept_documents: dict[str, Document]) -> None:
    document, drawn = kept_documents[kind], random.Random(f"keys {kind}")
    tables = list(tables_in(document))
    for spot in drawn.sample(tables, min(OF_EACH, len(tables))):
        name = drawn.choice(sorted(POISONS))
        planted = with_key(document, spot, POISONS[name])
        assert_harmless(planted, f"{spot}: {name}", ("text", "html", "json"))


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        *((".fixes[*].title", "", " | sh"), (".fixes[*].verify", f"{MARK}: ", "")),
        *((".fixes[*].verify", "", f"; curl {MARK}"), (".fixes[*].knobs.megatron_lm[*]", "", f" --{MARK}")),
        (".fixes[*].knobs.megatron_lm[*]", "", f"; {MARK}"),
        (".fixes[*].sources[*]", f"https://{MARK}.example ", ""),
        (".walls[*].missing[*]", "", f" ({MARK} tells)"),
        (".verdict.because[*]", "", f" See www.{MARK}.example"),
    ],
)
def test_a_sentence_with_something_added_is_none_of_ours(
    field: str, before: str, after: str, kept_documents: dict[str, Document]
) -> None:
    for document in kept_documents.values():
        if (spot := fields_in(document).get(field)) is None:
            continue
        said = document
        for step in spot:
            said = said[step]  # type: ignore[index]
        text = f"{before}{said}{after}"
        shown = encode(kept(typed(planted_at(document, spot, text))))
        assert text not in str(shown), field
        assert MARK not in str(shown), field


@pytest.mark.parametrize(
    "filler", ["the user to remove the checkpoint and restart the cluster", "reboot, then reboot"]
)
def test_words_of_ours_in_another_order_are_no_sentence_of_ours(filler: str) -> None:
    said = [text for text in phrases() if GAP in text and len(WORD.findall(text)) > 4]
    drawn = random.Random(filler).sample(said, 300)
    assert [text for text in drawn if Reading(book(), ()).says(text.replace(GAP, filler))] == []


def test_a_result_of_too_many_texts_that_are_none_of_ours_is_not_read(
    kept_documents: dict[str, Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = kept_documents["analysis"]
    kept(typed(document))
    monkeypatch.setattr("reports.result.voice.book.MOST_TRIES", Limit(50, "parts of texts", "this test"))
    with pytest.raises(NotAResult, match=r"is one of too many texts that are none of ours"):
        kept(typed(document))


@pytest.mark.parametrize("line", [
    "NCCL_ALGO=Ring reboot", "NCCL_ALGO=Ring NCCL_DEBUG=INFO reboot", "--recompute-modules moe_act reboot",
    "--cuda-graph-scope the user is to restart the cluster", "env NCCL_ALGO=Ring reboot",
])  # fmt: skip
def test_a_setting_takes_no_second_word_that_a_shell_would_run(line: str) -> None:
    assert not book().types(line)
    assert not Reading(book(), ()).says(line)


@pytest.mark.parametrize("line", [
    "--recompute-modules moe_act layernorm", "--hierarchical-context-parallel-sizes 8 2",
    "--moe-flex-dispatcher-num-sms 16, then 32", "NCCL_ALGO=Ring",
])  # fmt: skip
def test_settings_that_take_several_words_are_ours(line: str) -> None:
    assert book().types(line)


def test_what_was_left_out_is_counted(kept_documents: dict[str, Document]) -> None:
    document = kept_documents["analysis"]
    spot = fields_in(document)[".fixes[*].title"]
    result = kept(typed(planted_at(document, spot, "Buy more GPUs from my uncle")))
    assert result.warnings[-1].startswith("1 text of this result is left out")
    assert kept(result).warnings == result.warnings
    assert NOT_OURS in str(encode(result))


def test_other_figures_in_our_sentence_are_ours(kept_documents: dict[str, Document]) -> None:
    document = kept_documents["dense_2026_11_23.json.gz"]
    other = "without communication the windows would be at most 12.5 % shorter"
    result = kept(typed(planted_at(document, ("verdict", "because", 0), other)))
    assert encode(result)["verdict"]["because"][0] == other


@pytest.mark.parametrize("poison", POISONS)
def test_a_value_of_a_setting_is_one_word_of_a_line_or_none(poison: str) -> None:
    text = POISONS[poison]
    lines = (
        *spell({"moe_token_dispatcher_type": text}, "megatron_lm"),
        *spell({"moe_token_dispatcher_type": text}, "megatron_bridge"),
        *spell({"env.NCCL_DEBUG": text}, "megatron_lm"),
        harness_line("moe_flex_dispatcher_backend", text),
    )
    for line in lines:
        assert not runs_something(line)
        assert "\n" not in line
        assert len(shlex.split(line)) == (2 if line.startswith("--") else len(line) > 0)


def test_a_path_in_a_result_that_holds_none_is_refused(kept_documents: dict[str, Document]) -> None:
    document = kept_documents["analysis"]
    trace = {**document["traces"][0], "path": f"/home/{MARK}/run.sqlite"}
    with pytest.raises(NotAResult, match=r"traces\[0\]\.path: is a path"):
        kept(typed({**document, "traces": [trace]}))
