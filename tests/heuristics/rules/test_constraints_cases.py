"""The ninety configurations that Megatron-Core 0.16.1 was asked about, and verdicts that changed since."""

from __future__ import annotations

from typing import Final, cast

import pytest

from heuristics.rules.check import check_rules
from heuristics.rules.rules import rules
from tests.configurations.constraints import megatron_cases, messages, whole_run

CASES: Final = megatron_cases()
TE: Final = "2.12.0"

UNVERIFIABLE: Final = {64: "moe_permute_fusion wants the package", 66: "apply_rope_fusion wants the package"}
NO_SUCH_KNOB: Final = {87: "a knob of no version: the reader of the configuration says so"}
STRICTER: Final = {
    6: "flex-backend-name",
    8: "dispatcher-name",
    13: "experts-per-rank",
    42: "graphs-full-iteration-sync-free",
    60: "fp8-recipe-name",
    73: "layers-per-stage",
    74: "layers-per-virtual-stage",
    75: "sequence-parallel-moe-training",
    83: "topk-more-than-experts",
}
"""Accepted by TransformerConfig and not usable: the rule of ours that says so. 42 waits for expert sizes
while it is captured; the others are those that fail in another place."""


def numbered(number: int) -> dict[str, object]:
    return next(case for case in CASES if case["number"] == number)


def errors(number: int, **about: object) -> dict[str, tuple[str, ...]]:
    knobs = cast(dict[str, object], numbered(number)["knobs"])
    run = whole_run(knobs, **{"core": "0.16.1", "te": TE, "torch": "2.13.0", **about})
    return {
        one.id: messages(one) or ("",)
        for one in check_rules(run)
        if one.level == "error" and one.by in ("core", "dispatcher", "ours")
    }


def core_errors(number: int, **about: object) -> dict[str, tuple[str, ...]]:
    return {id: several for id, several in errors(number, **about).items() if rules()[id].by == "core"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['number']:02} {case['name']}")
def test_our_verdict_is_the_tables(case: dict[str, object]) -> None:
    number = cast(int, case["number"])
    answer = case.get("answer_with_te", case["answer"])
    if number in UNVERIFIABLE or number in NO_SUCH_KNOB:
        assert errors(number) == {}
    elif answer == "ok":
        assert core_errors(number) == {}
        assert set(errors(number)) == ({STRICTER[number]} if number in STRICTER else set())
    else:
        said = str(case["message"])
        found = core_errors(number)
        assert found
        assert any(message in said for several in found.values() for message in several), (found, said)


def test_an_unknown_version_is_taken_as_the_newest() -> None:
    knobs = cast(dict[str, object], numbered(23)["knobs"])
    assert "ep-overlap-moe-recompute" in {one.id for one in check_rules(whole_run(knobs))}


def test_the_older_switch_of_recompute_counts_as_the_module_that_it_adds() -> None:
    base = cast(dict[str, object], numbered(22)["knobs"])  # EP overlap, and recompute of moe_act
    assert refused_by_core(base) == set()
    assert refused_by_core({**base, "moe_layer_recompute": True}) == {"ep-overlap-moe-recompute"}


def refused_by_core(knobs: dict[str, object]) -> set[str]:
    run = whole_run(knobs, core="0.19.2", te="2.14.0", torch="2.13.0")
    return {one.id for one in check_rules(run) if one.level == "error" and one.by == "core"}
