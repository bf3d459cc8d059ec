"""Contradictions of overlaps: overwritten, silently dropped, not running, or left off by a recipe."""

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.guides.connections import connections as wanted_connections
from heuristics.guides.facts import ep_share
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.settings.settings import Settings
from traces.spelling import percent

OVERWRITTEN: Final = {
    "overlap_moe_expert_parallel_comm": "EP overlap",
    "delay_wgrad_compute": "delayed weight gradients",
    "tp_comm_overlap": "TP overlap",
}
"""Fields of the model that Megatron-Bridge's CommOverlapConfig writes, False where it says nothing."""
_GRADIENTS: Final = ("overlap_grad_reduce", "overlap_param_gather")
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
_CONNECTIONS: Final = "env.CUDA_DEVICE_MAX_CONNECTIONS"


def overwritten(knob: str) -> Detector:
    """An overlap set on the model while a CommOverlapConfig writes over it."""

    def detect(case: Case) -> ConfigFinding | None:
        run, field = case.run, f"comm_overlap.{knob}"
        asked = case.run.asked.written.value(knob) is True
        if not asked or run.asked.on(knob) is not False or run.asked.value(field) is True:
            return None
        says = (
            f"false ({run.asked.where(field)})"
            if run.asked.known(field)
            else "false, unless its recipe sets it"
        )
        return ConfigFinding(
            f"CFG-overwritten-{knob.replace('_', '-')}",
            "overwritten",
            f"{OVERWRITTEN[knob]} is set on the model, and CommOverlapConfig writes over it: {says}",
            f"model.{knob} in {case.run.asked.written.said(knob)}; training/comm_overlap.py, setup",
            f"comm_overlap.{knob}=true in place of model.{knob}",
        )

    return detect


def gradients_overwritten(case: Case) -> ConfigFinding | None:
    """What DDP says of its overlaps while a CommOverlapConfig says the opposite, but for one recipe."""
    run, written = case.run, case.run.asked.written
    for knob in _GRADIENTS:
        ddp, ours = written.value(f"ddp.{knob}"), run.asked.value(f"comm_overlap.{knob}")
        of_recipe = written.said(f"ddp.{knob}") == written.said(f"comm_overlap.{knob}")
        if of_recipe and written.value("launcher.recipe") is not None:
            continue
        if isinstance(ours, bool) and isinstance(ddp, bool) and ddp != ours:
            return ConfigFinding(
                "CFG-overwritten-ddp-overlap",
                "overwritten",
                f"ddp.{knob} is {_on(ddp)}, and CommOverlapConfig writes {_on(ours)} over it",
                f"ddp.{knob} in {written.said(f'ddp.{knob}')}, comm_overlap.{knob} in "
                f"{run.asked.where(f'comm_overlap.{knob}')}",
                f"set it once, in comm_overlap.{knob}",
            )
    return None


def _on(state: bool) -> str:
    return "on" if state else "off"


def _tensor_asked(case: Case) -> bool:
    said = case.run.asked.written.value("comm_overlap.tp_comm_overlap")
    return said is True or (said is None and case.run.asked.on("tp_comm_overlap") is True)


def tensor_overlap_dropped(case: Case) -> ConfigFinding | None:
    """TP overlap without TP or sequence parallelism in Bridge; Megatron-LM refuses it, which a rule tells."""
    run = case.run
    if run.config.framework == "megatron_lm":
        return None
    tp, dropped = run.config.tp, "tp-overlap-off" in case.lines
    without = "TP is 1" if tp == 1 else "sequence parallelism is off"
    idle = tp == 1 or run.config.on("sequence_parallel") is False
    if not dropped and not (_tensor_asked(case) and idle):
        return None
    return ConfigFinding(
        "CFG-tp-overlap-off",
        "inert",
        "TP overlap is asked for where Megatron-Bridge turns it off",
        case.line_of("tp-overlap-off") if dropped else without,
        "sequence_parallel with TP of at least 2 and Transformer Engine (COM-5), or leave it out",
    )


def recipe_left_off(case: Case) -> ConfigFinding | None:
    """EP overlap off by default while expert all-to-all is a wall."""
    run, share = case.run, ep_share(case.run)
    if share is None or share < WALL.value or run.observed.ep_overlap is not False:
        return None
    if not _left_off(case) or run.asked.expert_parallel is False:
        return None
    return ConfigFinding(
        "CFG-ep-overlap-left-off",
        "default_left_off",
        "EP overlap is off, as most public recipes leave it, while expert all-to-all holds the step up",
        f"expert all-to-all is exposed for {percent(share)} of the step; {_off_at(case.run.asked.written)}",
        "COM-1, where what it needs is met",
    )


def _left_off(case: Case) -> bool:
    """Off, or named nowhere in Megatron-Bridge's configuration; not where the model's field asks for it."""
    if case.run.asked.written.value(_OVERLAP) is True:
        return False
    asked = case.run.asked.ep_overlap
    return asked is False or (asked is None and case.run.asked.written.framework == "megatron_bridge")


def _off_at(said: Settings) -> str:
    for knob in (f"comm_overlap.{_OVERLAP}", _OVERLAP):
        if knob in said:
            return f"{knob} in {said.said(knob)}"
    return "nothing in the configuration names it"


def connections(case: Case) -> ConfigFinding | None:
    """One hardware queue with EP overlap; what is refused, rules tell.

    Source: Megatron-LM, megatron/training/arguments.py at d98e8a64; README of its MoE for EP overlap.
    """
    run = case.run
    if str(run.asked.value(_CONNECTIONS)) != "1" or not run.asked.ep_overlap or _sharded(run):
        return None
    capability = run.config.capability
    cut = [run.asked.positive(knob) or 1 for knob in ("tensor_model_parallel_size", "context_parallel_size")]
    old = capability is not None and capability[0] < 10
    several = wanted_connections(run, ep_overlap=True)
    if max(cut) > 1 and old:
        text = (
            "EP overlap wants it larger, TP and CP before Blackwell want it to be 1: 1 gives up the overlap"
        )
        fix = f"measure 1 against {several}, or EP overlap without TP and CP"
    else:
        text, fix = "EP overlap needs it above 1, or nothing runs beside anything", str(several)
    return ConfigFinding(
        "CFG-max-connections",
        "inert",
        f"CUDA_DEVICE_MAX_CONNECTIONS: {text}",
        f"in {run.asked.where(_CONNECTIONS)}",
        fix,
    )


def _sharded(run: Run) -> bool:
    return bool(run.asked.on("ddp.use_megatron_fsdp") or run.asked.on("use_torch_fsdp2"))


DETECTORS: Final[tuple[Detector, ...]] = (
    *(overwritten(knob) for knob in OVERWRITTEN),
    gradients_overwritten,
    tensor_overlap_dropped,
    recipe_left_off,
    connections,
)
