"""Real ranks: the figures that were added up by hand beside the recordings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.by_definition.real_ranks import kernels_of_events, kernels_of_export
from tests.by_definition.real_ranks import matched as matched_by_order
from tests.by_definition.real_recordings import events_of
from tests.places import DATA
from tests.recordings.ranks import summaries_in
from traces.missing import Missing, known
from traces.ranks.run import analyse_run, judge
from traces.ranks.summary import RankSummary
from traces.sections.cause import Cause
from traces.sections.run import Late

US = 1_000
_TABLE: Final[dict[str, list[dict[str, Any]]]] = tomllib.loads(
    (DATA / "real_ranks.toml").read_text(encoding="utf-8")
)
GROUPS: Final = {group["id"]: group for group in _TABLE["group"]}
"""Argued by hand."""


def summaries_of(folder: Path, *names: str) -> list[RankSummary]:
    """Of all ranks in these recordings."""
    return [summary for name in names for summary in summaries_in(folder / name)]


def of_eight(folder: Path, *ranks: int) -> list[RankSummary]:
    return summaries_of(folder, *(f"added/dlrm8/worker{rank}.pt.trace.json.gz" for rank in ranks))


def test_eight_ranks_of_one_step_wait_as_they_were_added_up_and_nobody_is_named(recordings: Path) -> None:
    run = analyse_run(of_eight(recordings, *range(8)))
    waited_us = [5581, 11119, 3275, 9557, 6370, 6034, 3341, 1529]
    assert [rank.rank for rank in run.ranks] == list(range(8))
    for rank, expected in zip(run.ranks, waited_us, strict=True):
        assert rank.waited_ns / US == pytest.approx(expected, abs=10)
    caused_us = [(known(rank.caused_ns) or 0) / US for rank in run.ranks]
    assert caused_us == pytest.approx([0, 0, 0, 0, 4987, 6276, 0, 35543], abs=20)
    assert run.clocks.aligned
    assert isinstance(run.clocks.residual_ns, int)
    assert run.clocks.residual_ns < 5 * US
    assert isinstance(run.late, Missing)
    assert run.problems == ()


def test_two_of_eight_ranks_are_no_evidence_of_who_is_late(recordings: Path) -> None:
    run = analyse_run(of_eight(recordings, 0, 1))
    assert isinstance(run.late, Missing)
    assert [problem.ranks for problem in run.problems] == [(2, 3, 4, 5, 6, 7)]


def test_the_order_of_files_makes_no_difference(recordings: Path) -> None:
    ranks = of_eight(recordings, *range(8))
    plain, turned = analyse_run(ranks), analyse_run(ranks[::-1])
    assert turned.ranks == plain.ranks
    assert (plain.late, plain.wait_ns, plain.clocks) == (turned.late, turned.wait_ns, turned.clocks)


def test_of_two_gpus_in_one_recording_the_second_has_the_slower_host(recordings: Path) -> None:
    run = analyse_run(summaries_of(recordings, "nsysai_mfu_2gpu_before.sqlite"))
    assert isinstance(run.late, Late)
    assert (run.late.cause, run.late.index) == (Cause.SLOW_HOST, 1)
    assert run.collectives == 33
    assert run.late.wait_ns == pytest.approx(11_395_541, rel=0.05)


def test_recordings_of_two_sessions_are_two_runs(recordings: Path) -> None:
    run = analyse_run(summaries_of(recordings, "nsysai_mfu_2gpu_before.sqlite", "nsysai_h100_2gpu_1s.sqlite"))
    assert "mixed_runs" in {problem.kind.value for problem in run.problems}
    assert isinstance(run.late, Missing)


@pytest.mark.parametrize("name", GROUPS)
def test_of_each_group_nothing_is_claimed_that_an_engineer_would_not(name: str, recordings: Path) -> None:
    group = GROUPS[name]
    run = analyse_run(summaries_of(recordings, *group["files"]))
    late = run.late
    assert (late.cause.value if isinstance(late, Late) else "cannot_tell") in group["may_say"]
    if isinstance(late, Late):
        who = late.rank if "ranks" in group else late.index
        assert [who, late.cause.value] not in group["must_not_say"]
    if not group["one_run"]:
        assert any(problem.left_out for problem in run.problems)


@pytest.mark.parametrize("name", [name for name, group in GROUPS.items() if group["calls"]])
def test_of_each_group_calls_are_matched_and_waits_add_up_as_by_hand(name: str, recordings: Path) -> None:
    group = GROUPS[name]
    judged = judge(summaries_of(recordings, *group["files"]))
    matched = judged.together.matched
    assert len(matched) == group["calls"]
    waited_ns = np.bincount(matched.place, weights=judged.waits.wait_ns)
    apart_ns = group["calls"] * group["ends_spread_ns"]  # an exchange ends on each rank by itself
    assert waited_ns == pytest.approx(group["wait_ns"], abs=apart_ns)


@pytest.mark.parametrize("name", [name for name, group in GROUPS.items() if group["calls"]])
def test_the_figures_of_the_table_are_those_of_the_recordings(name: str, recordings: Path) -> None:
    group = GROUPS[name]
    paths = [recordings / file for file in group["files"]]
    if "processes" in group:
        calls = matched_by_order([kernels_of_export(paths[0], pid) for pid in group["processes"]])
    else:
        calls = matched_by_order([kernels_of_events(events_of(path)) for path in paths])
    kinds = group["kinds"]
    assert list(calls.kinds) == (kinds if isinstance(kinds, list) else [kinds] * group["calls"])
    assert calls.transfer.tolist() == group["transfer_ns"]
    assert calls.wait.sum(axis=1).tolist() == group["wait_ns"]
    places = group["ranks"] if "ranks" in group else group["devices"]
    assert [places[place] for place in calls.late.tolist()] == group["late"]
    assert calls.charged.tolist() == group["charged_ns"]
    assert int(calls.ends_spread.max()) == group["ends_spread_ns"]
    for cause in group.get("cause", []):
        assert int(calls.wait[:, cause["calls"]].sum()) == cause["wait_ns"]
