"""`capture`: the line that records a run, with the reason and the cost of each option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.simulate.recording import Row
from diagnoser.cli import run
from tests.places import GOLDEN, Reviewed
from tests.recordings.moe_pattern import moe_recording
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


def test_the_doctor_ends_in_the_line_of_capture(
    export: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = moe_recording(steps=2, layers=1)
    for answered in (Question.WALLS, Question.MEMORY):
        if answered is Question.MEMORY:  # all but memory is there
            row: Row = {"start": 0, "end": 10, "nameId": "read", "globalTid": recorded.global_id(4200, 4200)}
            recorded.rows["OSRT_API"] = [row]
            recorded.range("iteration 1", 0, 10)
            recorded.event_record(1, 1, 7, correlation_id=1)
        path = export(recorded, f"{answered}.sqlite")
        doctor = printed(capsys, "doctor", str(path))
        asked = printed(capsys, "capture", "--for", answered)
        start = asked.index("nsys profile")
        assert asked[start : asked.index("\n\n", start)] in doctor
        assert f"moe-diag capture --for {answered}" in doctor
