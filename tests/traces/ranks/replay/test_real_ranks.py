"""Real ranks: the figures that were added up by hand beside the recordings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.places import DATA
from tests.recordings.ranks import analyse_run, summaries_in
from traces.missing import Missing, known
from traces.ranks.replay.run import measure_run
from traces.ranks.summaries.summary import RankSummary
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


def test_eight_ranks_of_one_step_caused_what_was_added_up_and_nobody_is_named(recordings: Path) -> None:
    run = analyse_run(summaries_of(recordings, *GROUPS["dlrm8"]["files"]))
    assert [rank.rank for rank in run.ranks] == list(range(8))
    caused_us = [(known(rank.caused_ns) or 0) / US for rank in run.ranks]
    assert caused_us == pytest.approx([0, 0, 0, 0, 4987, 6276, 0, 35543], abs=20)
    assert run.clocks.aligned
    assert isinstance(run.clocks.residual_ns, int)
    assert run.clocks.residual_ns < 5 * US
    assert isinstance(run.late, Missing)
    assert run.problems == ()


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
    measured = measure_run(summaries_of(recordings, *group["files"]))
    matched = measured.together.matched
    assert len(matched) == group["calls"]
    waited_ns = np.bincount(matched.place, weights=measured.waits.wait_ns)
    apart_ns = group["calls"] * group["ends_spread_ns"]  # an exchange ends on each rank by itself
    assert waited_ns == pytest.approx(group["wait_ns"], abs=apart_ns)
