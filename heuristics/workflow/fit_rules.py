"""Phase 1 of the workflow: make the run fit, by what costs least first."""

from typing import Final

from heuristics.guides.memory_use import (
    ASK_MEMORY,
    HEAD_ROOM,
    ROOM_TO_HALVE,
    fits,
    has_room_to_halve,
    too_large,
    used_frac,
)
from heuristics.guides.recompute_modules import MODULES, label_of
from heuristics.run.run import Run
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated
from heuristics.workflow.sanity_line import judge_sanity_line
from traces.spelling import chosen, gigabytes, percent

OFFLOADS: Final = {
    "cpu_offloading": "layers",
    "fine_grained_activation_offloading": "activations",
    "optimizer.optimizer_cpu_offload": "optimizer state",
}
"""Knob -> what it moves to the CPU."""


def judge_fits(run: Run) -> Judged:
    """Out of memory, seldom enough of it, or running with room."""
    found = fits(run)
    if found is False:
        advice = "make it fit before anything else: less fragmentation, then selective recompute"
        return violated(_out_of_memory(run), advice, "MEM-2")
    used = used_frac(run)
    if used is not None and used > 1 - HEAD_ROOM.value:
        return violated(
            f"{percent(1 - used)} of the memory is free, under {chosen(HEAD_ROOM.value)}",
            "free some: the next uneven step runs out of memory",
            "MEM-2",
        )
    if used is not None:
        return met(f"it fits with {percent(1 - used)} of the memory free")
    if found:
        return met("it runs; how much memory stays free is not known")
    return unknown("it is unknown whether it fits", ASK_MEMORY)


def _out_of_memory(run: Run) -> str:
    errors = run.log.out_of_memory if run.log else ()
    if not errors and (estimated := too_large(run)) is not None:
        has = gigabytes(estimated.capacity_bytes)
        return f"at least {gigabytes(estimated.least_bytes)} are needed by the estimate, of {has}"
    if not errors:
        return "memory is too small for it"
    stage = errors[0].stage.replace("_", " ")
    where = "" if stage == "unknown" else f", the first in {stage}"
    return f"the log holds {len(errors)} out-of-memory error{'s' if len(errors) > 1 else ''}{where}"


def judge_smallest_model_parallel(run: Run) -> Judged:
    """Tensor and pipeline parallelism that a half would still do for is too much."""
    tp, pp = (
        run.config.positive("tensor_model_parallel_size"),
        run.config.positive("pipeline_model_parallel_size"),
    )
    if tp == 1 and pp == 1:
        return met("TP1 and PP1: there is nothing smaller")
    if tp is None or pp is None:
        return unknown("TP or PP is not known", "--tp and --pp, or the configuration")
    room, used = has_room_to_halve(run), used_frac(run)
    cut = f"TP{tp} x PP{pp} = {tp * pp}"
    if room and used is not None:
        half, smaller = ("TP", f"TP{tp // 2}") if tp > 1 else ("PP", f"PP{pp // 2}")
        return violated(
            f"{cut} ranks hold one copy, and a rank uses {percent(used)} of its memory, at most "
            f"{chosen(ROOM_TO_HALVE.value)}",
            f"halve {half} ({smaller}): fewer, larger kernels and more data parallelism",
            "MEM-15",
        )
    if room is None:
        return unknown(f"{cut}; how much memory is free is not known", ASK_MEMORY)
    return met(f"{cut}, and memory has no room for half of it")


def judge_selective_before_full(run: Run) -> Judged:
    """Whole layers run again only where selected parts do not save enough."""
    full = run.config.full_recompute
    if full is None:
        return unknown("recompute is not known", "recompute_granularity of the configuration")
    if not full:
        return met("recompute is selective" if run.config.recompute_modules() else "no full recompute")
    if fits(run) is False:
        return met("full recompute, and still it does not fit: offload or more ranks come next")
    parts = "layernorm and mlp" if run.config.moe() is False else "moe_act and layernorm"
    return violated(
        "full recompute runs every layer's forward twice, about 30 % more compute, its exchanges too",
        f"selective recompute of {parts} (mla_up_proj with latent attention) first",
        "MEM-2",
    )


def judge_recompute_modules(run: Run) -> Judged:
    """The cheap parts first, the whole MoE layer last: it repeats dispatch and combine."""
    if run.config.full_recompute:
        return not_applicable("recompute is not selective")
    modules = run.config.recompute_modules()
    if modules is None:
        return unknown("what is recomputed is not known", "recompute_modules of the configuration")
    if not modules:
        return not_applicable("nothing is recomputed")
    labels = tuple(label if (label := label_of(name)) in MODULES else "an unknown label" for name in modules)
    if "moe" in labels:
        return violated(
            f"recompute of {', '.join(labels)} repeats dispatch and combine: six exchanges a layer, not four",
            "moe_act and layernorm in place of moe; moe only where nothing else makes it fit",
            "MEM-2",
        )
    return met(f"recompute of {', '.join(labels)}")


def judge_offload_last(run: Run) -> Judged:
    """Offload only where recompute of parts is in use and does not save enough."""
    on = [what for knob, what in OFFLOADS.items() if run.config.on(knob)]
    if not on:
        if all(run.config.on(knob) is False for knob in OFFLOADS):
            return met("nothing is offloaded")
        return unknown("whether anything is offloaded is not known", f"{', '.join(OFFLOADS)}")
    said, shown = run.config.word("recompute_granularity"), run.active.recompute_modules
    what = f"{' and '.join(on)} go to the CPU"
    if said or shown:
        return met(f"{what}, with recompute")
    if run.config.known("recompute_granularity") or shown == ():
        return violated(f"{what}, and nothing is recomputed", "selective recompute before offload", "MEM-2")
    return unknown(f"{what}; recompute is not known", "recompute_granularity of the configuration")


FIT_RULES: Final = (
    WorkflowRule("fit-first", "fit", "The run fits, with room", "002 and 003, Phase 1", judge_fits),
    WorkflowRule(
        "fit-smallest-model-parallel",
        "fit",
        "The smallest model parallelism that still fits",
        "002 and 003, Phase 1, 1",
        judge_smallest_model_parallel,
    ),
    WorkflowRule(
        "fit-selective-before-full",
        "fit",
        "Selective recompute before full recompute",
        "002 and 003, Phase 1, 2",
        judge_selective_before_full,
    ),
    WorkflowRule(
        "fit-recompute-modules",
        "fit",
        "The cheap parts are recomputed first",
        "002 and 003, Phase 1, Recompute guidance",
        judge_recompute_modules,
    ),
    WorkflowRule(
        "fit-offload-last",
        "fit",
        "Offload only when recompute and parallelism are not enough",
        "002 and 003, Phase 1, 3",
        judge_offload_last,
    ),
    WorkflowRule(
        "fit-single-gpu-sanity",
        "fit",
        "The layout is tried on one GPU before the cluster",
        "002 and 003, Phase 1, 4",
        judge_sanity_line,
    ),
)
"""In the order of the documents."""
