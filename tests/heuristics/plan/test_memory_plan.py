"""Memory that ran out: what its own numbers say of the first fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.memory_use import segments_suffice
from heuristics.plan.plan import make_plan
from heuristics.run.run import Run
from tests.doubles.fixes import complete
from tests.doubles.opinions import a_fix, catalogue_of
from traces.settings.settings import Value
from traces.training_log.log import OutOfMemory, TrainingLog

GIB = 1024**3


def out_of_memory(allocated: int, reserved: int, asked: int, free: int = 1) -> Run:
    """A run that asked for more than there was; sizes in GiB, of a GPU of 80."""
    one = OutOfMemory(
        7,
        "forward",
        capacity_bytes=80 * GIB,
        reserved_bytes=reserved * GIB,
        allocated_bytes=allocated * GIB,
        requested_bytes=asked * GIB,
        free_bytes=free * GIB,
    )
    log = TrainingLog("train.log", 100, out_of_memory=(one,))
    return replace(complete({"seq_length": 4096}), log=log, does_not_fit=True)


@pytest.mark.parametrize(
    ("run", "suffice", "first"),
    [
        (out_of_memory(allocated=60, reserved=77, asked=10), True, "MEM-1"),
        (out_of_memory(allocated=60, reserved=77, asked=18), True, "MEM-1"),
        (out_of_memory(allocated=60, reserved=77, asked=19), False, "MEM-2"),
        (out_of_memory(allocated=76, reserved=77, asked=6), False, "MEM-2"),
        (replace(complete(), does_not_fit=True), None, "MEM-1"),
    ],
)
def test_segments_come_first_only_where_they_can_hold_what_was_asked_for(
    run: Run, suffice: bool | None, first: str
) -> None:
    """Issue item 6: reserved and not allocated, and free, against what was asked for."""
    assert segments_suffice(run) is suffice
    assert make_plan(run, ["memory"], CATALOGUE).fixes[0].fix.id == first


def test_recompute_is_wider_where_no_allocator_can_hold_it() -> None:
    """Issue item 6."""
    held, short = out_of_memory(60, 77, 10), out_of_memory(76, 77, 6)
    modules = [CATALOGUE["MEM-2"].change(run).set["recompute_modules"] for run in (held, short)]
    assert modules == [("moe_act",), ("moe_act", "layernorm")]


def test_a_very_long_sequence_that_does_not_fit_is_cut_first() -> None:
    """Audit W7."""
    run = replace(complete({"seq_length": 131_072}), does_not_fit=True)
    assert make_plan(run, ["memory"], CATALOGUE).fixes[0].fix.id == "MEM-16"


OLD: dict[str, Value] = {"pipeline_model_parallel_size": 1}
"""A run of which EP overlap is the first fix, were it not for its PyTorch."""


def of_exchanges(torch: str | None, **facts: object) -> Run:
    """A run whose expert exchanges cost half of it."""
    run = complete(OLD, torch_version=torch, flex_package=False, nvlink_domain=16, **facts)
    return replace(
        run,
        observed=replace(run.observed, dispatcher="alltoall"),
        cost_by_kind_ns={"communication": {"ep_dispatch": 250, "ep_combine": 250}},
        window_ns=1000,
    )


def test_a_release_that_alone_forbids_the_first_fix_is_a_step_before_it() -> None:
    """Issue item 6."""
    plan = make_plan(of_exchanges("2.5.1"), ["communication"], CATALOGUE)
    first, second, *_ = plan.fixes
    assert (first.fix.id, first.fix.title) == ("ENV-1", "Upgrade to PyTorch 2.6.0 or later")
    assert (second.fix.id, second.after) == ("COM-1", ("ENV-1",))
    assert second.knobs.megatron_lm
    assert "COM-1" not in [one.fix.id for one in plan.refused]


def test_what_the_run_allows_as_it_is_comes_before_an_upgrade() -> None:
    fixes = {"COM-1": CATALOGUE["COM-1"], **catalogue_of(a_fix("COM-4", "communication"))}
    plan = make_plan(of_exchanges("2.5.1"), ["communication"], fixes)
    assert [one.fix.id for one in plan.fixes] == ["COM-4", "ENV-1", "COM-1"]
    assert [one.after for one in plan.fixes] == [(), (), ("ENV-1",)]


@pytest.mark.parametrize("torch", ["2.6.0", None])
def test_a_release_that_will_do_or_is_unknown_is_no_step(torch: str | None) -> None:
    plan = make_plan(of_exchanges(torch), ["communication"], CATALOGUE)
    assert [one.fix.id for one in plan.fixes if one.fix.id.startswith("ENV")] == []
    assert plan.fixes[0].fix.id == "COM-1"


def test_what_an_upgrade_does_not_unlock_stays_refused() -> None:
    run = of_exchanges("2.5.1")
    whole = replace(run, settings=run.settings.changed({"recompute_granularity": "full"}, "config.yaml:2"))
    plan = make_plan(whole, ["communication"], CATALOGUE)
    assert [one.fix.id for one in plan.fixes if one.fix.id.startswith("ENV")] == []
    assert "COM-1" in [one.fix.id for one in plan.refused]
