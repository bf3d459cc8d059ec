"""`moe-diag workload`: a small real training step, recorded."""

from pathlib import Path
from typing import Annotated

import typer

from diagnoser.options import NsysPath
from diagnoser.output import Target, say, write
from diagnoser.progress import progress_display
from traces.errors import UsageError


def workload(
    state: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="The known state to record.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="A name ending in .json.gz, by PyTorch."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="DIR", show_default=False, help="A new folder, by nsys, with a diagnosis."),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=False, help="With --profile: ranks, 2 unless given."),
    ] = None,
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

        said = real.workload(state, out, step_count=steps, device=device, megatron=megatron)
        write(Target("text", None), f"{said}\n", force=False)
        return 0
    assert profile is not None
    from diagnoser.profiled import ABSTAINED, profiled, summary
    from traces.workload.record import Request

    request = Request(state, device, steps, megatron=True)
    with progress_display() as progress:
        code = profiled(
            request, profile, rank_count=2 if ranks is None else ranks, nsys=nsys, progress=progress
        )
    write(Target("text", None), f"{summary(profile, code)}\n", force=False)
    if code == ABSTAINED:
        say((profile / "analysis.txt").read_text(encoding="utf-8"))
    return code
