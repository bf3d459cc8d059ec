"""`capture`: the line that records a run, with the reason and the cost of each option."""

from __future__ import annotations

import pytest

from diagnoser.cli import run
from tests.places import GOLDEN, Reviewed
from traces.recording.line import recording
from traces.recording.options import Question, TrainedWith

SHOWN = ["capture", "--for", "metrics", "--framework", "bridge", "--slurm"]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words]) == 0
    return capsys.readouterr().out


def test_the_page_is_the_reviewed_one(reviewed: Reviewed, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *SHOWN)
    assert reviewed(GOLDEN / "capture_metrics.txt", text) == text


@pytest.mark.parametrize("question", Question)
@pytest.mark.parametrize("framework", TrainedWith)
def test_every_option_of_a_line_stands_with_its_reason_and_its_cost(
    question: Question, framework: TrainedWith, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "capture", "--for", question, "--framework", framework)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "..." not in text  # nothing is cut
    plain = " ".join(text.split())
    how = recording(question, framework)
    for one in (*how.options, *how.flags):
        assert one.text in plain
        assert f"{one.why}. Cost: {one.cost}." in plain
