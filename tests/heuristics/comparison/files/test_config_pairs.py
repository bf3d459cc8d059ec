"""Pairs of published threads with a known cause: the explaining difference first, as their truths say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from heuristics.comparison.files.comparison import compare_files
from heuristics.result.compared_files import ComparedFiles
from tests.configurations.pairs import PAIRS, sides, truth
from traces.missing import known
from traces.settings.settings import Value

NAMES = [pair.name for pair in PAIRS]


def first_of(compared: ComparedFiles) -> str | None:
    return compared.explanations[0].id if compared.explanations else None


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_the_explaining_difference_stands_first(pair: Path) -> None:
    expected, compared = truth(pair), compare_files(*sides(pair))
    assert first_of(compared) in expected["first"]
    assert compared.verdict == expected["verdict"]
    log_of_new = known(compared.new.log)
    if "drift" in expected:
        assert log_of_new is not None
        drift = known(log_of_new.drift)
        assert drift is not None
        assert drift.state == expected["drift"]


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_without_logs_it_is_undecided_and_the_cause_stands_first_by_what_it_can_do(pair: Path) -> None:
    expected, compared = truth(pair), compare_files(*sides(pair, with_logs=False))
    assert compared.verdict == "undecided"
    assert "--base-log" in compared.record
    assert {one.fit for one in compared.explanations} == {"open"}
    assert {*expected["first"]} & {one.id for one in compared.explanations}


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_swapped_sides_mirror(pair: Path) -> None:
    base, new = sides(pair)
    one, other = compare_files(base, new), compare_files(new, base)
    assert [change.what for change in one.changed] == [change.what for change in other.changed]
    assert [(c.base, c.new) for c in one.changed] == [(c.new, c.base) for c in other.changed]
    assert {e.id for e in one.explanations} == {e.id for e in other.explanations}
    size, mirrored = known(one.step_delta_ns), known(other.step_delta_ns)
    assert (size is None) == (mirrored is None)
    if size is not None and mirrored is not None:
        assert size == -mirrored
    lows = {e.id: known(e.step_low_frac) for e in other.explanations}
    for each in one.explanations:
        low = lows[each.id]
        own = known(each.step_high_frac)
        if low is not None and own is not None:
            assert log(1 + own) == pytest.approx(-log(1 + low))


BESIDE: dict[str, dict[str, Value]] = {
    "router_fusion": {"moe_router_fusion": True},
    "permute_fusion": {"moe_permute_fusion": True},
    "no_permute_fusion": {"moe_permute_fusion": False},
    "loss_fusion": {"cross_entropy_loss_fusion": True},
    "activation_offload": {"fine_grained_activation_offloading": True, "offload_modules": ("moe_act",)},
    "mtp": {"mtp_num_layers": 1},
    "no_mtp": {"mtp_num_layers": None},
    "moe_act_recompute": {"recompute_granularity": "selective", "recompute_modules": ("moe_act",)},
    "numa_binding": {"launcher.numa_binding": True},
    "graphs": {"cuda_graph_impl": "transformer_engine"},
    "low_precision": {"fp8": "e4m3", "fp8_recipe": "mxfp8"},
    "tensor_parallel": {"tensor_model_parallel_size": 4},
}
"""Known changes that are made on the new side as well, with its log as it is."""


def beside(pair: Path, first: list[str]) -> Iterator[ComparedFiles]:
    """The pair with each other change that adds an explanation, and is none of what its cause is about."""
    base, new = sides(pair)
    alone = {one.id for one in compare_files(base, new).explanations}
    for id, values in BESIDE.items():
        is_of_it = any(id.removeprefix("no_") in one or one.endswith(id[-9:]) for one in first)
        if is_of_it:
            continue
        compared = compare_files(base, replace(new, settings=new.settings.changed(values, "beside")))
        if {one.id for one in compared.explanations} - alone:
            yield compared


def test_a_second_known_change_does_not_take_the_place_of_the_cause() -> None:
    found = []
    for pair in PAIRS:
        expected = truth(pair)["first"]
        found += [first_of(one) in expected for one in beside(pair, expected)]
    assert len(found) >= 70
    assert sum(found) >= 0.95 * len(found)
