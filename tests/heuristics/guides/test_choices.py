from __future__ import annotations

import pytest

from heuristics.guides.choices import Choice, choose_all
from heuristics.run.given import Given, Guidance
from heuristics.run.observed import Observed
from heuristics.run.run import Run


def choices(guidance: Guidance, **about: object) -> dict[str, Choice]:
    given = Given(guidance=guidance, stage="tuned", **about)  # type: ignore[arg-type]
    return {one.about: one for one in choose_all(Run(Observed(moe=True), given))}


def test_there_is_one_choice_of_each_table() -> None:
    assert list(choices("seed", gpu="H100")) == ["dispatcher", "cuda_graphs", "precision", "recompute"]


@pytest.mark.parametrize(
    ("guidance", "answer", "other"),
    [
        ("seed", "deepep", "measure deepep against hybridep"),
        ("main-2026-08", "measure deepep against hybridep", "deepep"),
    ],
)
def test_where_the_editions_differ_both_are_told(guidance: Guidance, answer: str, other: str) -> None:
    found = choices(guidance, gpu="H100", ep=16, flex_package=True)["dispatcher"]
    assert (found.answer, found.other) == (answer, other)


def test_where_they_agree_there_is_no_other() -> None:
    assert choices("seed", gpu="GB200", ep=64, flex_package=True)["dispatcher"].other == ""
