"""Recordings: how to make one (`capture`), is one good enough (`doctor`)."""

from pathlib import Path

from diagnoser.options import Place
from diagnoser.options.command import command
from diagnoser.options.requests import Analysis
from diagnoser.output import show_page
from diagnoser.output.progress import progress_display
from traces.recording.options import Question, TrainedWith


@command()
def capture(
    question: Question = Question.WALLS,
    framework: TrainedWith = TrainedWith.MEGATRON_LM,
    slurm: bool = False,
) -> None:
    """How to record a run: line of nsys, flags of the framework.

    Prints the line and runs nothing. Each option stands with its reason and its cost.

    \b
    moe-diag capture                              which wall holds the run back: ten steady steps
    moe-diag capture --for memory                 memory in use: from the start of the program
    moe-diag capture --for metrics                counters of the GPU, in a pass of their own
    moe-diag capture --for ranks --slurm          every rank, who is late: a line for srun
    moe-diag capture --for regression             twenty steps of both runs: small changes
    moe-diag capture --framework pytorch          what to put into a training loop of your own
    """
    from reports.content.capture import page
    from traces.recording.line import recording

    show_page(page(question, framework, recording(question, framework, slurm=slurm)))


@command()
def doctor(trace: Path, nsys: str | None = None, cache_dir: Place | None = None) -> None:
    """Is this recording good enough, for which wall.

    Names no bottleneck. Lists what is missing and what that makes impossible, how the recording or
    its export went wrong, whether host and GPU clocks agree, what the profiler itself noted,
    whether the recording is good, usable or useless for each wall, and the line that records what
    is missing, as capture prints it.
    """
    from diagnoser.running.pipeline import examined

    with progress_display() as progress:
        page = examined(trace, Analysis(trace, nsys=nsys, cache_dir=cache_dir, progress=progress))
    show_page(page)
