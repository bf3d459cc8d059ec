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


def test_there_are_ninety_cases_in_order() -> None:
    assert [case["number"] for case in CASES] == list(range(1, 91))


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


def test_what_is_unusable_is_what_we_are_stricter_on() -> None:
    unusable = {cast(int, case["number"]) for case in CASES if case.get("unusable")}
    assert unusable == set(STRICTER) - {42}
    host = {cast(int, case["number"]) for case in CASES if case.get("host")}
    assert host == {55, 57, 58, 59, 60, 64, 66}


def test_transformer_engine_that_is_too_old_is_told() -> None:
    assert set(core_errors(55, te="2.9.0")) == {"graphs-wgrad-te-version"}
    assert core_errors(55, te="2.10.0") == {}
    assert core_errors(58, te="1.10.0").keys() == {"fp8-grouped-gemm-te"}
    assert core_errors(58, te="1.11.0") == {}


@pytest.mark.parametrize(
    ("number", "accepted", "refused"),
    [
        (27, "0.13.0", "0.14.0"),
        (25, "0.15.3", "0.16.0"),
        (25, "0.18.0", "0.17.0"),
        (75, "0.15.0", "0.14.0"),
        (41, "0.15.3", "0.16.1"),
        (43, "0.15.3", "0.16.1"),
        (45, "0.15.3", "0.16.1"),
        (47, "0.15.3", "0.16.1"),
        (48, "0.15.3", "0.16.1"),
        (49, "0.15.3", "0.16.1"),
        (52, "0.15.3", "0.16.1"),
        (52, "0.18.0", "0.17.0"),
        (23, "0.16.1", "0.17.0"),
        (30, "0.18.0", "0.17.0"),
        (79, "0.12.0", "0.15.0"),
        (10, "0.16.0", "0.15.3"),
        (85, "0.17.0", "0.16.1"),
    ],
)
def test_verdicts_changed_with_the_version(number: int, accepted: str, refused: str) -> None:
    assert core_errors(number, core=accepted) == {}
    assert core_errors(number, core=refused) or "hybridep-version" in errors(number, core=refused)


def test_delayed_wgrad_in_graphs_was_not_looked_at_before_0_16() -> None:
    assert core_errors(55, te="2.9.0", core="0.15.3") == {}
    assert set(core_errors(55, te="2.9.0", core="0.16.1")) == {"graphs-wgrad-te-version"}


def test_full_recompute_with_graphs_is_refused_in_0_15_and_0_16() -> None:
    assert set(core_errors(53, core="0.15.3")) == {"graphs-recompute-0.15"}
    assert set(core_errors(53, core="0.16.1")) == {"graphs-full-recompute"}


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
