"""Recordings: how to make one (`capture`), is one good enough (`doctor`), one of our own (`workload`)."""

from pathlib import Path
from typing import Annotated

import typer

from diagnoser.options import AskedFor, CacheDir, Framework, NsysPath, OneTrace, Slurm, option
from diagnoser.options.command import command
from diagnoser.options.requests import Analysis
from diagnoser.output import say, show, show_page
from diagnoser.output.progress import progress_display
from heuristics.result.exits import Exit
from traces.errors import UsageError
from traces.recording.options import Question, TrainedWith


def capture(
    question: AskedFor = Question.WALLS, framework: Framework = TrainedWith.MEGATRON_LM, slurm: Slurm = False
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


@command(bounded=True)
def doctor(trace: OneTrace, nsys: NsysPath = None, cache_dir: CacheDir = None) -> None:
    """Is this recording good enough, for which wall.

    Names no bottleneck. Lists what is missing and what that makes impossible, how the recording or its export
    went wrong, whether host and GPU clocks agree, what the profiler itself noted, whether the recording is
    good, usable or useless for each wall, and the line that records what is missing, as capture prints it.
    """
    from diagnoser.running.pipeline import examined

    with progress_display() as progress:
        found = examined(trace, Analysis(trace, nsys=nsys, cache_dir=cache_dir, progress=progress))
    show_page(found)


def workload(
    state: Annotated[str, option("NAME", "The known state to record.")],
    out: Annotated[Path | None, option("FILE", "A name ending in .json.gz, by PyTorch.")] = None,
    profile: Annotated[Path | None, option("DIR", "A new folder, by nsys, with a diagnosis.")] = None,
    ranks: Annotated[int | None, option("N", "With --profile: ranks, 2 unless given.")] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps to record.")] = 6,
    device: Annotated[str, typer.Option(metavar="cuda|cpu", help="cpu records no kernels.")] = "cuda",
    megatron: Annotated[bool, typer.Option("--megatron", help="Megatron-Core's own MoE layer.")] = False,
    nsys: NsysPath = None,
) -> int:
    """Record a small real MoE training step; needs PyTorch.

    \b
    moe-diag workload --state eager --out eager.json.gz
        one rank, recorded by the PyTorch profiler
    moe-diag workload --state eager --profile eager --ranks 8
        Megatron-Core's GPT with its experts over 8 GPUs, each rank under
        nsys profile, then exported and diagnosed
    moe-diag workload --state eager --profile eager --device cpu
        the same without a GPU: phases as NVTX ranges, gloo between two ranks,
        no kernels; so it ends as analyze does on that, with exit code 4

    States: eager, cuda_graph, recompute, many_small_experts, few_large_experts, host_counts,
    copy_same_stream, copy_second_stream. A .known.json beside each recording says what was done, and what
    could not be. Recordings are scrubbed of paths, hosts, users and environment; what nsys wrote itself is
    not, and lies apart in DIR/raw.

    --profile needs pip install 'moe-diag[megatron]' and an nsys, and with --device cuda a GPU for each rank.
    """
    if (out is None) == (profile is None):
        raise UsageError("one of --out FILE (PyTorch profiler) and --profile DIR (nsys) is needed.")
    if out is not None:
        if ranks is not None:
            raise UsageError("--ranks is of --profile: the PyTorch profiler records one rank here.")
        from traces.workload import workload as real

        show(real.workload(state, out, step_count=steps, device=device, megatron=megatron) + "\n")
        return Exit.DONE
    assert profile is not None
    from diagnoser.running.profiled import ABSTAINED, profiled, summary
    from traces.workload.record import Request

    request, rank_count = Request(state, device, steps, megatron=True), 2 if ranks is None else ranks
    with progress_display() as progress:
        code = profiled(request, profile, rank_count=rank_count, nsys=nsys, progress=progress)
    show(f"{summary(profile, code)}\n")
    if code == ABSTAINED:
        say((profile / "analysis.txt").read_text(encoding="utf-8"))
    return code
