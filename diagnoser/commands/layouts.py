"""Layouts of a model before anything runs (`plan`)."""

from functools import partial
from pathlib import Path

import diagnoser
from diagnoser.options.command import command
from diagnoser.options.requests import LayoutPlan
from diagnoser.output import say
from diagnoser.output.progress import progress_display
from diagnoser.output.results import Output, plan_results, write_results
from heuristics.result.exits import Exit
from reports.formats import ResultKind


@command(of=ResultKind.LAYOUTS, lacks=("flavor", "ticket", "title", "note", "brief", "emit_config"))
def plan(
    model: str,
    asked: partial[LayoutPlan],
    wanted: partial[Output],
    facts: bool = True,
) -> int:
    """Which layouts of a model fit some GPUs, the best first.

    Lists TP, CP, PP, VPP, EP, micro-batch, recompute and dispatcher that are legal and fit by the
    estimate of memory, in the order of NVIDIA's guides and of published layouts, each with why, its
    memory and what to type. Runs nothing. A configuration's own layout stands among them.

    \b
    moe-diag plan Qwen3-30B-A3B --gpu-model H100 --gpus 16
    moe-diag plan deepseek-ai/DeepSeek-V3 --gpu-model GB200 --gpus 256 --full
    moe-diag plan Mixtral-8x7B --gpu-model H100 --gpus 64 --seq-length 32768 --global-batch 256
    moe-diag plan run.yaml --gpu-model H100 --gpus 512
    moe-diag plan GLM-4.5 --gpu-model B200 --gpus 128 --precision mxfp8 -f json

    Exit code 0: there are layouts; 1: none fits; 2: usage; 3: not readable.
    """
    from diagnoser.running.inputs.facts import with_facts

    want, asked = wanted(), with_facts(asked, facts, of_place=True)
    results = plan_results(ResultKind.LAYOUTS, want, [Path(model)])
    with progress_display() as progress:
        layouts = diagnoser.plan(model, **asked.keywords, progress=progress)
    write_results(layouts.result, results)
    if not layouts.result.counted.fit:
        say("no layout fits (exit code 1)")
        return Exit.NO
    return Exit.DONE
