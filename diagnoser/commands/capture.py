"""`moe-diag capture`: how to record a run for a question."""

from diagnoser.options import AskedFor, Framework, Slurm
from diagnoser.output import Target, write
from traces.recording.options import Question, TrainedWith


def capture(
    question: AskedFor = Question.WALLS,
    framework: Framework = TrainedWith.MEGATRON_LM,
    slurm: Slurm = False,
) -> None:
    """How to record a run: line of nsys, flags of the framework.

    Prints the line and runs nothing. Each option stands with its reason and its cost.

    \b
    moe-diag capture                              which wall holds the run back: a few steady steps
    moe-diag capture --for memory                 memory in use: from the start of the program
    moe-diag capture --for metrics                counters of the GPU, in a pass of their own
    moe-diag capture --for ranks --slurm          every rank, who is late: a line for srun
    moe-diag capture --for regression             the same line for both runs of a compare
    moe-diag capture --framework pytorch          what to put into a training loop of your own
    """
    from diagnoser.screen import screen
    from reports.content.capture import page
    from reports.write.text import write_text
    from traces.recording.line import recording

    shown = page(question, framework, recording(question, framework, slurm=slurm))
    write(Target("text", None), write_text(shown, screen()), force=False)
