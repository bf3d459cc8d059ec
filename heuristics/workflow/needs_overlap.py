"""What overlap of expert all-to-all needs (documents 001 and 004)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heuristics.run.run import Run
from heuristics.workflow.layout import virtual_stages
from heuristics.workflow.need import Need, from_release, negation, says_version, switch


def _above_one(knob: str) -> Callable[[Run], bool | None]:
    def holds(run: Run) -> bool | None:
        size = run.config.count(knob)
        if size is None:
            return False if run.config.known(knob) else None
        return size > 1

    return holds


def _count(knob: str, name: str) -> Callable[[Run], str]:
    return lambda run: (
        f"{name} {'not known' if not run.config.known(knob) else run.config.count(knob) or 'not set'}"
    )


def _is_unset(knob: str) -> Callable[[Run], bool | None]:
    return lambda run: (
        None
        if not run.config.known(knob)
        else run.config.word(knob) is None and run.config.count(knob) is None
    )


def _dispatcher_fits(run: Run) -> bool | None:
    asked = run.config.dispatcher
    return None if asked is None else asked != "allgather"


def _half_precision(run: Run) -> bool | None:
    if run.config.precision in ("bf16", "fp16") or run.config.on("bf16") or run.config.on("fp16"):
        return True
    return False if run.config.on("bf16") is False and run.config.on("fp16") is False else None


def _method(run: Run) -> str:
    held = _is_unset("recompute_method")(run)
    return "not known" if held is None else "not set" if held else "set"


def _precision_says(run: Run) -> str:
    held = _half_precision(run)
    return "neither BF16 nor FP16" if held is False else "BF16 or FP16" if held else "precision not known"


def _virtual(run: Run) -> bool | None:
    pp, vpp = run.config.positive("pipeline_model_parallel_size"), virtual_stages(run)
    if pp is None or pp == 1:
        return None if pp is None else True
    return None if vpp is None else vpp > 1


def _not_full(run: Run) -> bool | None:
    if run.config.known("recompute_granularity"):
        return run.config.word("recompute_granularity") != "full"
    shown = run.active.recompute_full
    return None if shown is None else not shown


def _mtp(run: Run) -> bool | None:
    layers = run.config.count("mtp_num_layers")
    return (True if run.config.known("mtp_num_layers") else None) if layers is None else layers <= 1


_SEEDS: Final = "001 and 004, Prerequisites"
_TELL: Final = "the configuration"


def _overlap(
    name: str,
    title: str,
    holds: Callable[[Run], bool | None],
    says: Callable[[Run], str],
    advice: str,
    tells: str = _TELL,
    seed: str = _SEEDS,
    fix: str = "",
) -> Need:
    return Need(
        f"ep-overlap-{name}",
        "EP overlap",
        title,
        seed,
        lambda run: run.config.ep_overlap,
        holds,
        says,
        advice,
        tells,
        fix,
    )


EP_OVERLAP: Final = (
    _overlap(
        "ep",
        "EP overlap: EP above 1",
        _above_one("expert_model_parallel_size"),
        _count("expert_model_parallel_size", "EP"),
        "EP above 1, or no overlap",
        "--ep",
    ),
    _overlap(
        "experts",
        "EP overlap: more than one expert",
        _above_one("num_moe_experts"),
        _count("num_moe_experts", "experts"),
        "a model with experts, or no overlap",
        "num_moe_experts of the configuration",
    ),
    _overlap(
        "dispatcher",
        "EP overlap: dispatcher alltoall or flex",
        _dispatcher_fits,
        lambda run: f"dispatcher {run.config.dispatcher or 'not known'}",
        "moe_token_dispatcher_type alltoall or flex",
        fix="COM-2",
    ),
    _overlap(
        "precision",
        "EP overlap: BF16 or FP16",
        _half_precision,
        _precision_says,
        "bf16",
        "--precision, or the configuration",
    ),
    _overlap(
        "torch",
        "EP overlap: PyTorch 2.6 or later, or it hangs",
        from_release("torch", "2.6.0"),
        says_version("torch", "PyTorch"),
        "PyTorch 2.6.0 or later",
        "--torch-version",
        "001, Prerequisites",
    ),
    _overlap(
        "vpp",
        "EP overlap: virtual stages where there are pipeline stages",
        _virtual,
        lambda run: (
            f"{_count('pipeline_model_parallel_size', 'PP')(run)}, VPP {virtual_stages(run) or 'not known'}"
        ),
        "virtual stages",
        "--pp and --vpp",
        "001 and 004, Prerequisites; 004, Pitfalls, 2",
        "COM-6",
    ),
    _overlap(
        "no-full-recompute",
        "EP overlap: no full recompute",
        _not_full,
        lambda run: "recompute is full" if _not_full(run) is False else "no full recompute is known",
        "selective recompute",
        "recompute_granularity of the configuration",
        "001, Prerequisites",
        "MEM-2",
    ),
    _overlap(
        "no-recompute-method",
        "EP overlap: no recompute method",
        _is_unset("recompute_method"),
        lambda run: f"recompute_method {_method(run)}",
        "recompute_method: null",
        "recompute_method of the configuration",
        "001, Prerequisites",
        "MEM-2",
    ),
    _overlap(
        "no-recompute-layers",
        "EP overlap: no count of recomputed layers",
        _is_unset("recompute_num_layers"),
        _count("recompute_num_layers", "recompute_num_layers"),
        "recompute_num_layers: null",
        "recompute_num_layers of the configuration",
        "001, Prerequisites",
        "MEM-2",
    ),
    _overlap(
        "shared-experts",
        "EP overlap: no overlap of shared experts",
        negation(lambda run: run.config.shared_overlap),
        lambda run: f"moe_shared_expert_overlap {switch(run.config.shared_overlap)}",
        "moe_shared_expert_overlap: false",
        "moe_shared_expert_overlap of the configuration",
        "001, Prerequisites; 004, Pitfalls, 1",
        "COM-1",
    ),
    _overlap(
        "mtp",
        "EP overlap: at most one MTP layer",
        _mtp,
        _count("mtp_num_layers", "MTP layers"),
        "one MTP layer or none, or no overlap",
        "mtp_num_layers of the configuration",
        "001, Prerequisites",
    ),
)
