"""The line that records: what each question needs, and that the nsys of this machine takes it."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from traces.recording.line import Recording, passes, profiler_call, question_for, recording
from traces.recording.options import Question, TrainedWith, asked, options
from traces.settings.knobs import knobs


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


def test_only_the_question_about_ranks_takes_more_than_one() -> None:
    for question in Question:
        for framework in (TrainedWith.MEGATRON_LM, TrainedWith.BRIDGE):
            flags = " ".join(one.text for one in recording(question, framework).flags)
            ranks = re.findall(r"profile[-_]ranks[ =]\[?([\d, ]+)", flags)
            assert [len(re.findall(r"\d+", one)) for one in ranks] == {
                Question.MEMORY: [],
                Question.RANKS: [8],
            }.get(question, [1])


@pytest.mark.parametrize("slurm", [False, True])
def test_the_rank_in_the_name_is_the_launcher_s(slurm: bool) -> None:
    variable, launcher = ("SLURM_PROCID", "srun ") if slurm else ("RANK", "torchrun ")
    for question in Question:
        how = recording(question, slurm=slurm)
        assert f"-o run_%q{{{variable}}}" in how.nsys
        assert how.start.startswith(launcher)
        assert not how.script or f"${variable}" in how.script[0]


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


def test_every_flag_of_megatron_and_bridge_is_a_setting_that_we_know() -> None:
    for question in Question:
        for one in options(TrainedWith.MEGATRON_LM, question, "RANK"):
            for flag in re.findall(r"--[\w-]+", one.text):
                assert flag in {knob.flag for knob in knobs().values()}
        for one in options(TrainedWith.BRIDGE, question, "RANK"):
            for name in re.findall(r"profiling\.\w+", one.text):
                assert name in {knob.bridge for knob in knobs().values()}


def test_the_loop_of_pytorch_marks_as_many_steps_as_are_asked_for() -> None:
    for question in Question:
        code = "\n".join(recording(question, TrainedWith.PYTORCH).code)
        compile(code, "loop", "exec")
        places = [int(one) for one in re.findall(r"step == (\d+)", code)]
        steps = asked(question).steps
        assert places == ([10, 10 + steps - 1] if steps else [])
        assert ("rank == 0" in code) == (steps > 0 and question is not Question.RANKS)


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


def release(text: str) -> tuple[int, ...]:
    """Year and number of a release of nsys."""
    found = re.search(r"(20\d\d)\.(\d+)", text)
    assert found
    return int(found[1]), int(found[2])
