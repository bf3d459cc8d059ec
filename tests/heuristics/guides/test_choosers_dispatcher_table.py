"""The dispatcher table as a whole: its order, what is asked for, what is refused, what both guides say."""

from __future__ import annotations

import pytest

from heuristics.config.about import Guidance
from heuristics.config.observed import Observed
from heuristics.guides.dispatcher import choose_dispatcher
from heuristics.guides.table import fire, table
from tests.doubles.runs import BOTH, run_of, run_that


def test_a_missing_package_is_a_limit_of_the_environment() -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=64, flex_package=False))
    assert (choice.first, choice.rule) == ("alltoall", "package-missing")
    running = run_of(Observed(dispatcher="deepep"), gpu="H100", ep=64, flex_package=False)
    assert choose_dispatcher(running).first == "deepep"


def test_a_refused_first_choice_gives_way_to_the_next_and_says_so() -> None:
    choice = choose_dispatcher(run_of(gpu="H100", ep=64, routing="drop_pad"))
    assert choice.first == "alltoall"
    assert choice.notes[0].startswith("deepep cannot be used here (")
    assert choice.notes[0].endswith("alltoall instead")


def test_what_is_unknown_and_matters_is_asked_for_by_option() -> None:
    assert choose_dispatcher(run_of(gpu="H100")).asks == ("--flex-package", "--family", "--ep")
    assert choose_dispatcher(run_of(gpu="H100", ep=16, family="other", flex_package=True)).asks == ()


@pytest.mark.parametrize("edition", BOTH)
def test_every_row_of_the_table_can_fire(edition: Guidance) -> None:
    rules = table("dispatcher")[edition]
    ids = [rule.id for rule in rules]
    assert len(ids) == len(set(ids))
    unmet = {"package": True, "stage_now": "tuned", "hardware": None, "family": "other"}
    unmet |= {"ep_size": None, "crosses": True, "runs_low_precision": False, "memory_tight": False}
    for rule in rules:
        assert fire("dispatcher", run_that(rule, unmet), edition).row is rule
