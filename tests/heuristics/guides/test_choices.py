from __future__ import annotations

import pytest

from heuristics.config.about import Given, Guidance
from heuristics.config.observed import Observed
from heuristics.guides.choices import choose_all
from heuristics.result.judged import Choice
from heuristics.run.run import Run


def choices(guidance: Guidance, **about: object) -> dict[str, Choice]:
    given = Given(guidance=guidance, stage="tuned", **about)  # type: ignore[arg-type]
    return {one.about: one for one in choose_all(Run(Observed(moe=True), given))}


def test_w18_without_evidence_of_memory_recompute_is_no_question() -> None:
    assert "recompute" not in choices("seed", gpu="H100")
    dense = choose_all(Run(Observed(moe=False), Given(memory_tight=True)))
    assert "dispatcher" not in {one.about for one in dense}


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
