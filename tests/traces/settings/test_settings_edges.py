"""Edges of what a configuration means: views of it, values, facts that follow,
and what frameworks fill in."""

from __future__ import annotations

from typing import Any, Final

import pytest

from traces.settings.draft import MOST_PROBLEMS, Draft
from traces.settings.expressions import pattern_of, sum_of
from traces.settings.knobs import is_before_tables, knobs, release
from traces.settings.precision import bits_of, low_bytes
from traces.settings.settings import KnobView, Setting, Settings, Value, settings
from traces.settings.shell import read_script
from traces.settings.values import NotAValue, Raw, fullest_rank, unrolled, value_of

NAMES: Final[dict[str, Value]] = {
    **{"yes": True, "no": False, "null": None, "zero": 0, "three": 3, "half": 0.5, "word": "a, [b]"},
    **{"off": "Off", "text": "1", "list": ("a", 1), "env.A": "1", "env.B": None, "env.C": 0},
}
VIEW: Final = KnobView(Settings({**settings(NAMES, "a:1").by_knob, "usual": Setting(1, "default")}))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (VIEW.on("yes"), True), (VIEW.on("no"), False), (VIEW.on("null"), False), (VIEW.on("nobody"), None),
        (VIEW.on("nobody", "null"), False), (VIEW.on("nobody", "no", "yes"), False), (VIEW.on("null", "yes"),
         True),
        (VIEW.on("zero"), False), (VIEW.on("half"), True), (VIEW.on("off"), False), (VIEW.on("text"), True),
        (VIEW.any_on("no", "nobody", "yes"), True), (VIEW.any_on("no", "nobody"), False),
         (VIEW.any_on("nobody"), None),
        (VIEW.null("null"), True), (VIEW.null("no"), False), (VIEW.null("nobody"), None),
        (VIEW.one_of("three", 2, 3), True), (VIEW.one_of("three", 2), False), (VIEW.one_of("nobody", None),
         None),
        (VIEW.number("half"), 0.5), (VIEW.number("yes"), None), (VIEW.number("text"), None),
        (VIEW.count("three"), 3), (VIEW.count("half"), None), (VIEW.count("yes"), None),
        (VIEW.positive("three"), 3), (VIEW.positive("zero"), None), (VIEW.positive("yes"), None),
        (VIEW.positive("null", "three"), 3), (VIEW.positive("zero", "three"), None), (VIEW.positive("half"),
         None),
        (VIEW.above("three", 2), True), (VIEW.above("three", 3), False), (VIEW.above("null", 0), False),
        (VIEW.above("nobody", 0), None), (VIEW.above("word", 0), None),
        (VIEW.word("text"), "1"), (VIEW.word("three"), None),
        (VIEW.names("word"), ("a", "b")), (VIEW.names("list"), ("a", "1")), (VIEW.names("null"), ()),
        (VIEW.names("three"), ()), (VIEW.names("nobody"), None),
        (VIEW.holds("list", "a"), True), (VIEW.holds("list", "b"), False), (VIEW.holds("nobody", "a"), None),
        (VIEW.env("A"), "1"), (VIEW.env("B"), ""), (VIEW.env("C"), "0"), (VIEW.env("D"), None),
        (VIEW.env_is("A", "1"), True), (VIEW.env_is("A", "2"), False), (VIEW.env_is("D", "1"), None),
        (VIEW.size("three"), 3), (VIEW.size("null"), 1), (VIEW.size("zero"), None), (VIEW.size("nobody"),
         None),
        (VIEW.where("yes"), "a:1"), (VIEW.where("usual"), "the framework's defaults"),
        (VIEW.where("nobody"), "the options"), (VIEW.group("env."), ("env.A", "env.B", "env.C")),
    ],
)  # fmt: skip
def test_a_view_answers_with_none_for_what_is_unknown(asked: object, answer: object) -> None:
    assert (type(asked), asked) == (type(answer), answer)


def test_other_settings_win_and_keep_their_place_and_framework() -> None:
    below, above = settings({"a": 1, "b": 2}, "file", "megatron_lm"), settings({"b": None}, "option")
    found = below.under(above)
    assert (found.value("a"), found.value("b"), found.said("b"), found.said("c")) == (1, None, "option", "")
    assert (found.framework, above.under(below).framework) == ("megatron_lm", "megatron_lm")
    assert "b" in found
    assert "c" not in found


def test_problems_are_told_once_and_a_hundred_at_most() -> None:
    draft, strict = Draft("a.sh"), Draft("a.sh", is_strict=True)
    for one in (draft, strict):
        one.problem(1, "twice", effect="stops")
        one.problem(1, "twice", effect="stops")
        one.problem(2, "always", effect="stops", always=True)
    assert [(one.where, one.effect) for one in draft.problems] == [("a.sh:1", "unread"), ("a.sh:2", "stops")]
    assert [one.effect for one in strict.problems] == ["stops", "stops"]
    for line in range(int(MOST_PROBLEMS.value) - 2):
        draft.problem(line, "more")
    assert not draft.is_full
    draft.problem(None, "one more")
    assert draft.is_full
    assert (draft.problems[-1].where, draft.problems[-1].text) == ("a.sh", "more problems from here on")
    draft.problem(None, "another")
    assert len(draft.problems) == MOST_PROBLEMS.value + 1


# values


@pytest.mark.parametrize(
    ("knob", "raw", "value"),
    [
        ("num_layers", 10**15, 10**15), ("num_layers", 10**15 + 1, NotAValue), ("num_layers", -4, -4),
        ("num_layers", str(10**15), 10**15), ("num_layers", str(10**15 + 1), NotAValue),
        ("num_layers", "1_000", 1000), ("num_layers", [4], 4), ("num_layers", [], NotAValue),
        ("num_layers", True, NotAValue), ("num_layers", "null", None), ("num_layers", " ", None),
        ("optimizer.lr", "1e-3", 0.001), ("optimizer.lr", True, NotAValue), ("optimizer.lr", "inf",
         NotAValue),
        ("optimizer.lr", 1, 1.0), ("num_layers", 4.0, 4),
        ("bf16", "yes", True), ("bf16", "Off", False), ("bf16", 1, True), ("bf16", "2", NotAValue),
        ("params_dtype", "torch.bfloat16", "bf16"),
        ("params_dtype", {"_target_": "torch.half"}, "fp16"), ("params_dtype", {"_name_": "bf16"}, "bf16"),
        ("moe_layer_freq", "([0]*1+[1]*2)", (0, 1, 1)), ("moe_layer_freq", 2, 2), ("moe_layer_freq", [1],
         (1,)),
        ("recompute_modules", "moe_act, layernorm", ("moe_act", "layernorm")),
        ("recompute_modules", ["moe_act layernorm"], ("moe_act", "layernorm")),
        ("recompute_modules", "['moe_act']", ("moe_act",)), ("recompute_modules", "(mlp,)", ("mlp",)),
        ("data.path", "/a", "given"), ("data.path", [], None), ("data.path", "null", None),
    ],
)  # fmt: skip
def test_a_value_is_read_up_to_its_limits(knob: str, raw: Raw, value: Any) -> None:
    if value is NotAValue:
        with pytest.raises(NotAValue):
            value_of(knobs()[knob], raw)
    else:
        found = value_of(knobs()[knob], raw)
        assert (type(found), found) == (type(value), value)


def test_the_fullest_rank_computes_most_layers_the_embedding_counting_none() -> None:
    assert fullest_rank("Et|tt|ttt|tmL", 2) == 5  # stages 1 and 3, beside 2 and 3 with MTP and loss
    assert fullest_rank("Ett|tL", 2) == 2
    assert fullest_rank("Et|x", 2) is None


def test_a_layout_has_4096_letters_at_most() -> None:
    assert unrolled("Et*4088L") == "E" + "t" * 4088 + "L"  # with the eight letters of its text
    assert unrolled("Et*4089L") is None


@pytest.mark.parametrize(
    ("text", "result"),
    [("7 / -2", -3), ("-7 / -2", 3), ("-7 % 2", -1), ("7 % -2", 1), ("10**15", None), ("A", 5),
     ("$A+${B}", 8),
     ("1000000000000000", None), ("999999999999999 + 1", 10**15), ("999999999999999 + 2", None)],
)  # fmt: skip
def test_a_sum_is_cut_towards_zero_up_to_its_largest(text: str, result: int | None) -> None:
    assert sum_of(text, {"A": 5, "B": 3}.get) == result


def test_a_pattern_of_layers_has_4096_entries_at_most() -> None:
    assert len(pattern_of("[0,1]*2048")) == 4096
    with pytest.raises(ValueError):  # noqa: PT011
        pattern_of("[0,1]*2048+[1]")


@pytest.mark.parametrize(
    ("version", "known", "before"),
    [("0.11.9", (0, 12, 0), True), ("0.12.0", (0, 12, 0), False), ("core_v0.16.1rc2", (0, 16, 1), False),
     ("0.9", (0, 12, 0), True), ("main", (0, 20, 0), False), ("1.2", (1, 2, 0), False), ("x", None, False),
     (None, None, False), ("2", (2, 0, 0), False)],
)  # fmt: skip
def test_a_release_older_than_the_tables_counts_as_their_first(
    version: str | None, known: tuple[int, ...] | None, before: bool
) -> None:
    assert (release(version), is_before_tables(version)) == (known, before)


def test_an_element_of_more_than_eight_bits_is_not_low() -> None:
    assert [low_bytes(one) for one in ("nvfp4", "fp8", "bf16", "mixed", None)] == [0.5, 1, None, None, None]
    assert bits_of("mixed") is None


# scripts


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("A=1\n[ $X ] && A=2\nrun $A", False), ("A=1\n[[ $X ]] || A=2\nrun $A", False),
        ("A=1\ntest $X && B=1 && A=2\nrun $A", False), ("A=1\n[ $X ] ; A=2\nrun $A", True),
        ("A=1\nif a; then b; fi\nA=2\nif A; then b; fi\nrun $A", True),
        ("A=1\nif a; then if b; then c; fi; A+=2; fi\nrun $A", False),
         ("A=1\ncase $X in a) A=2;; esac\nrun $A", False), ("A=1\n\"$@\"\ncd x && A=2\nrun $A", True),
        ("A=1\nfi\n\\if x\n\"\"if x\ni'f' x\nfor\nA=2\nrun \"$A", True),
         ("A=1\nfor A in 1 2; do run $A; done", False), ("while a; do A=2; done; run $A", True),
        ("A=1\nif a; then A=1; fi\nrun $A", True), ("if a; then A=2; fi\nrun $((A+1))", False),
         ("A=$(date)${B%x}\nrun $A", False), ("A=1\nrun $A >", True),
    ],
)  # fmt: skip
def test_a_word_is_told_unless_a_condition_of_the_script_decides_it(script: str, told: bool) -> None:
    (command,) = [one for one in read_script(script).commands if one.words[0].text == "run"]
    assert command.words[-1].is_told == told


def test_lines_are_kept_through_quotes_arrays_and_nested_commands() -> None:
    script = 'A=(--a\n  --b)\nB="--c\n\n--d"\nrun "${A[@]}" $B --e\nbash -c "run\n--f"\n'
    words = [(word.text, word.line) for command in read_script(script).commands for word in command.words]
    first = [("run", 6), ("--a", 1), ("--b", 2), ("--c", 3), ("--d", 5), ("--e", 6)]
    assert words == [*first, ("run", 7), ("--f", 8)]
    assert read_script("export A=' \n '").exported["A"].line == 1


@pytest.mark.parametrize(
    ("script", "exported"),
    [
        ("A=1\nexport A", {"A": "1"}), ("export A\nA=2", {"A": "2"}), ("declare -x A=3", {"A": "3"}),
        ("declare -i A=3", {}), ("local Ax=3", {}), ("A=1", {}), ("export A=1 B=2", {"A": "1", "B": "2"}),
        ("export A=1\nA=2", {"A": "2"}),
    ],
)  # fmt: skip
def test_only_what_is_exported_is_in_the_environment(script: str, exported: dict[str, str]) -> None:
    assert {name: word.text for name, word in read_script(script).exported.items()} == exported
