"""The line that records a run for a question: a command of nsys, or a call of the PyTorch
profiler.
"""

from collections.abc import Collection
from typing import Final

from traces.frozen import frozen
from traces.recording.options import (
    SPARE,
    START,
    Option,
    Question,
    Section,
    TrainedWith,
    asked,
    options,
)
from traces.texts import Texts

PROGRAM: Final = "python train.py"
"""Stands for what starts the training."""
SCRIPT: Final = "record.sh"
_LAUNCHERS: Final = {
    False: ("torchrun --nproc-per-node=8 --no-python", "RANK"),
    True: ("srun", "SLURM_PROCID"),
}
"""Under Slurm or not: what starts a process for each rank, and the variable that then holds its
number."""
_ANSWERED_BY: Final = {
    "memory events": Question.MEMORY,
    "GPU counter samples": Question.METRICS,
}
"""What was not recorded -> the question that records it; all the rest is recorded for walls."""
_KINETO_EXTRA: Final = {
    "event records": (
        "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)"
    ),
    "memory events": "profile_memory=True",
}


@frozen
class Recording:
    """How to record for a question.

    `nsys`: the command of one rank. `start`: what starts all ranks. `script`: the lines of
    `record.sh`, which `start` then runs; empty where every rank starts nsys itself. `options` and
    `export` are nsys's own; `flags` the framework's, and `code` what a training loop of PyTorch
    needs in their place.
    """

    nsys: str
    start: str
    script: Texts
    options: tuple[Option, ...]
    flags: tuple[Option, ...]
    code: Texts
    export: tuple[Option, ...]


def recording(
    question: Question = Question.WALLS,
    framework: TrainedWith = TrainedWith.MEGATRON_LM,
    *,
    slurm: bool = False,
) -> Recording:
    """How to record for a question, under torchrun or Slurm."""
    row = asked(question)
    launcher, variable = _LAUNCHERS[slurm]
    of_nsys = options(Section.NSYS, question, variable)
    command = " ".join(("nsys profile", *(option.text for option in of_nsys)))
    script = (f'[ "${variable}" = 0 ] || exec "$@"', f'exec {command} "$@"') if row.one else ()
    return Recording(
        nsys=f"{command} {PROGRAM}",
        start=f"{launcher} {f'sh {SCRIPT}' if row.one else command} {PROGRAM}",
        script=script,
        options=of_nsys,
        flags=options(framework, question, variable),
        code=_loop(question, row.steps) if framework is TrainedWith.PYTORCH else (),
        export=options(Section.EXPORT, question, variable),
    )


def question_for(lacking: Collection[str]) -> Question:
    """The question that records what is missing; `lacking`: rows of `Capture`. Walls come first."""
    wanted = (_ANSWERED_BY.get(row, Question.WALLS) for row in lacking)
    return min(wanted, key=[*Question].index, default=Question.WALLS)


def passes(lacking: Collection[str]) -> tuple[Question, ...]:
    """The other recordings that hold what is missing: memory and counters are each a pass of their
    own.
    """
    first = question_for(lacking)
    wanted = (_ANSWERED_BY.get(row, first) for row in lacking)
    return tuple(question for question in wanted if question is not first)


def _loop(question: Question, steps: int) -> Texts:
    """The training loop with marked steps; where the whole program is recorded, with their names
    alone.
    """
    mine = "" if question is Question.RANKS else " and rank == 0"
    named = ('    with torch.cuda.nvtx.range(f"iteration {step}"):', "        train_step(batch)")
    head = "for step, batch in enumerate(loader):"
    if not steps:
        return (head, *named)
    return (
        head,
        *(f"    if step == {START}{mine}:", "        torch.cuda.profiler.start()"),
        *named,
        *(f"    if step == {START + steps - 1}{mine}:", "        torch.cuda.profiler.stop()"),
    )


def schedule() -> str:
    """The schedule of the PyTorch profiler, whose steps are all whole, so that none is recorded to
    spare.
    """
    return (
        f"torch.profiler.schedule(wait=20, warmup=3, active={asked(Question.WALLS).steps - SPARE})"
    )


def profiler_call(lacking: Collection[str]) -> Texts:
    """The lines of one call of the PyTorch profiler; `lacking`: rows of `Capture` to record as
    well.
    """
    extra = (f"    {argument}," for row, argument in _KINETO_EXTRA.items() if row in lacking)
    return (
        "prof = torch.profiler.profile(",
        "    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],",
        f"    schedule={schedule()},",
        *extra,
        ")  # and prof.step() once per step",
    )
