"""`moe-diag workload`: a small real training step, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diagnoser.output import Target, write


def workload(
    state: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="The known state to record.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", show_default=False, help="A name ending in .json.gz.")],
    steps: Annotated[int, typer.Option(metavar="N", help="Steps to record.")] = 6,
    device: Annotated[str, typer.Option(metavar="cuda|cpu", help="cpu records no kernels.")] = "cuda",
    megatron: Annotated[bool, typer.Option("--megatron", help="Megatron-Core's own MoE layer.")] = False,
) -> None:
    """Record a small real MoE training step; needs PyTorch.

    States: eager, cuda_graph, recompute, many_small_experts, few_large_experts, host_counts,
    copy_same_stream, copy_second_stream. The recording is scrubbed; a .known.json beside it says what was
    done.
    """
    from traces.workload import workload as real

    said = real.workload(state, out, step_count=steps, device=device, megatron=megatron)
    write(Target("text", None), f"{said}\n", force=False)
