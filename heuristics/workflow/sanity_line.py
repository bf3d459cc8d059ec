"""The single-GPU check of a layout: the command line that does it, with the flag that really exists."""

from heuristics.run.run import Run
from heuristics.workflow.layout import layout_of
from heuristics.workflow.rule import Judged, met, not_applicable, unknown, violated


def sanity_line(run: Run) -> str:
    """Command that builds and steps one rank of the layout on one GPU, without its peers.

    The guides write --fake-init-process-group; the parser, from core_v0.16.0 on, takes --fake-process-group.

    The flag cannot be combined with the flex dispatcher (arguments.py asserts it), so the line says alltoall.
    What is unknown stands as a capital letter to fill in.
    """
    layout = layout_of(run)
    sizes: tuple[tuple[str, int | None, str], ...] = (
        ("--tensor-model-parallel-size", layout.tp, "TP"),
        ("--context-parallel-size", layout.cp, "CP"),
        ("--pipeline-model-parallel-size", layout.pp, "PP"),
    )
    if is_moe := run.config.moe() is not False:
        sizes += (("--expert-model-parallel-size", layout.ep, "EP"),)
        sizes += (("--expert-tensor-parallel-size", layout.etp, "ETP"),)
    words = [f"WORLD_SIZE={layout.world or 'N'} RANK=0 python pretrain_gpt.py --fake-process-group"]
    words += [f"{name} {size or unknown_size}" for name, size, unknown_size in sizes]
    return " ".join([*words, "--moe-token-dispatcher-type alltoall"] if is_moe else words)


def judge_sanity_line(run: Run) -> Judged:
    """Whether it was asked for as the parsers know it; whether it was run nothing tells."""
    line = sanity_line(run)
    if run.config.on("fake_process_group") and run.config.word("moe_token_dispatcher_type") == "flex":
        return violated("--fake-process-group refuses the flex dispatcher", f"with alltoall: {line}")
    if run.config.on("fake_process_group"):
        return met("this is the single-GPU check itself: --fake-process-group is set")
    if run.settings.framework == "megatron_bridge":
        return not_applicable("Megatron-Bridge has no fake process group")
    if layout_of(run).world == 1:
        return not_applicable("the run is on one GPU")
    if run.config.before("core", "0.16.0"):
        return not_applicable("Megatron-Core before 0.16 has no --fake-process-group")
    return unknown("it is unknown whether the layout was tried on one GPU", "the log of that run", line)
