"""Patterns answer as Python's `re` does where both know the grammar, whatever the text is made of."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.patterns import (
    BLANKS,
    LETTERS,
    Pattern,
    WrongPattern,
    compiled,
    compiled_rows,
    first_found,
    literal,
    starred,
    unlike,
)

ALIKE = (r"(a+)(?P<mark>[-_])?", r"[^ab]+", r"(?i)(?:^|-)(b|é)", r"(?s)a.*?b", r"(x)|(-)")
TEXTS = st.text(st.sampled_from("aAbB-_ xé\u4e16\ud800\udcff\n😀"), max_size=12)


@given(st.sampled_from(ALIKE), TEXTS)
def test_places_and_groups_are_those_of_re(text: str, of: str) -> None:
    ours, theirs = compiled(text), re.compile(text)
    found, expected = [*ours.finditer(of)], [*theirs.finditer(of)]
    assert [one.span() for one in found] == [one.span() for one in expected]
    assert [one.groups() for one in found] == [one.groups() for one in expected]
    assert [one.groupdict() for one in found] == [one.groupdict() for one in expected]
    assert ours.sub("<$>", of) == theirs.sub("<$>", of)
    assert ours.split(of) == [one or "" for one in theirs.split(of)]
    for asked in ("search", "match", "fullmatch"):
        one, other = getattr(ours, asked)(of), getattr(theirs, asked)(of)
        assert (one and one.span()) == (other and other.span())


@given(st.text(st.characters(codec=None), max_size=20))
def test_half_a_character_changes_no_place_and_stays_in_what_was_found(text: str) -> None:
    assert "".join(compiled(r"(?s).").findall(text)) == text
    assert compiled("(?s)^.*$").sub(lambda found: found[0], text) == text


def test_a_wrong_pattern_is_an_error_of_ours_and_the_engine_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for wrong in ("(", "(\udcff", "(?<!a)b", "(?=a)", r"(a)\1", "a{1001}", "a**", "[b-a]"):
        with pytest.raises(WrongPattern, match=r"\S"):
            Pattern(wrong)
    assert capfd.readouterr() == ("", "")


@given(st.text(st.characters(codec=None), max_size=9), st.text("ab", max_size=3))
def test_a_literal_finds_itself_and_a_star_stands_for_anything(text: str, more: str) -> None:
    assert compiled(literal(text)).fullmatch(text)
    assert starred(f"a*{text.replace('*', '')}").fullmatch(f"a{more}{text.replace('*', '')}")


@pytest.mark.parametrize("rest", ["", "t", "to", "tos", "x", "tx", "top", "t op", "TOP"])
def test_what_is_unlike_a_word_is_what_does_not_begin_with_it(rest: str) -> None:
    assert (compiled(unlike("top")).match(rest) is None) == rest.startswith("top")


def test_classes_of_letters_and_blanks_know_every_script() -> None:
    assert compiled(f"[{LETTERS}]+").fullmatch("größe世界حجمआकार٣e\u0301")
    assert compiled(f"[{BLANKS}]+").fullmatch(" \t\v\x1c\x85\xa0\u3000\u2028")
    assert not compiled(f"[{LETTERS}]").search("-_./ \u3000")


def test_the_first_row_counts() -> None:
    rows = compiled_rows(("both", "a.*b"), ("one", "a|b"))
    assert [first_found(rows, text) for text in ("xaxb", "b", "c")] == ["both", "one", None]


def test_a_pattern_goes_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(Pattern(r"step_(\d+)")))
    assert sent == Pattern(r"step_(\d+)")
    assert sent.search("a step_12")[1] == "12"
