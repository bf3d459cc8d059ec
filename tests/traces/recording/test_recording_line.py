"""The line that records: what each question needs, and that the nsys of this machine takes it."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from traces.recording.line import Recording, passes, profiler_call, question_for, recording
from traces.recording.options import Question


def of_nsys(how: Recording) -> list[str]:
    """Every word of nsys's own, wherever it is started."""
    return [word for one in how.options for word in shlex.split(one.text)]


def test_memory_is_recorded_from_the_start_and_all_else_in_a_range() -> None:
    for question in Question:
        words = of_nsys(recording(question))
        ranged = question is not Question.MEMORY
        assert ("cudaProfilerApi" in words, "--capture-range-end=stop" in words) == (ranged, ranged)
        assert ("--cuda-memory-usage=true" in words) == (not ranged)
        assert ("--kill=none" in words) == (not ranged)  # --duration alone ends the training


@pytest.mark.parametrize("question", Question)
def test_graphs_are_recorded_by_node_and_samples_are_taken_of_the_host_alone(question: Question) -> None:
    words = of_nsys(recording(question))
    assert {"--cuda-graph-trace=node", "--cpuctxsw=none"} <= {*words}
    sampled = {"--sample=process-tree", "--python-sampling=true"}
    assert ("--sample=none" in words) == (question is not Question.HOST)
    assert sampled <= {*words} if question is Question.HOST else not sampled & {*words}


def test_the_script_starts_nsys_on_rank_0_alone() -> None:
    how = recording(Question.METRICS)
    script = "\n".join(how.script).replace("exec nsys", "echo nsys").replace("exec ", "echo ")
    said = {
        rank: subprocess.run(
            ["sh", "-c", script, "record.sh", "python", "train.py"],
            env={"RANK": rank, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[0]
        for rank in ("0", "1")
    }
    assert said["0"] == how.nsys
    assert said["1"] == "python train.py"


def test_what_is_missing_is_recorded_in_as_few_passes_as_it_takes() -> None:
    missing = ["OS calls", "memory events", "GPU counter samples"]
    assert (question_for(missing), passes(missing)) == (Question.WALLS, (Question.MEMORY, Question.METRICS))
    assert (question_for(missing[1:]), passes(missing[1:])) == (Question.MEMORY, (Question.METRICS,))
    assert (question_for([]), passes([])) == (Question.WALLS, ())


def test_the_call_of_the_pytorch_profiler_is_python() -> None:
    for lacking in ([], ["memory events"], ["memory events", "event records"]):
        text = "\n".join(profiler_call(lacking))
        compile(text, "call", "exec")
        assert ("profile_memory=True" in text) == bool(lacking)
