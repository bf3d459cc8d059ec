"""Overlaps that are overwritten, and those that hide nothing: why, and what to change before tuning.

Sources: Megatron-LM at core_v0.18.2, pipeline_parallel/combined_1f1b.py (the first forward and the last
backward run alone) and distributed/distributed_data_parallel.py; its pull request 6311 (one hardware queue);
Megatron-Bridge at 067f987d, training/comm_overlap.py and docs/performance-guide.md (norms and collectives).
"""

from typing import Final, NamedTuple

from heuristics.findings.finding import Case, Detector
from heuristics.fixes.overlap import NORM_MARGIN
from heuristics.guides.parallel import connections
from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run
from heuristics.walls.price import WALL
from traces.spelling import percent

OVERWRITTEN: Final = {
    "overlap_moe_expert_parallel_comm": "EP overlap",
    "delay_wgrad_compute": "delayed weight gradients",
    "tp_comm_overlap": "TP overlap",
}
"""Fields of the model that Megatron-Bridge's CommOverlapConfig writes, False where it says nothing."""
_GRADIENTS: Final = ("overlap_grad_reduce", "overlap_param_gather")


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


_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
_MARGINS: Final = ("env.NVTE_FWD_LAYERNORM_SM_MARGIN", "env.NVTE_BWD_LAYERNORM_SM_MARGIN")


class Cause(NamedTuple):
    """Why an overlap hides nothing, and the change that meets it."""

    why: str
    change: str


_ONE_MICROBATCH: Final = Cause(
    "a step has one microbatch, and the exchanges of one hide under the compute of another",
    "a larger global batch, or a smaller micro-batch",
)
_PACKED: Final = Cause("Energon's packing turns it off", "an unpacked data path")
_CHECKS: Final = (
    "check that the trace holds training steps with several microbatches, that layer ranges are merged, and "
    "that CUDA_DEVICE_MAX_CONNECTIONS is above 1"
)
_IGNORED: Final = Cause(
    "Megatron-Bridge takes comm_overlap's values of data parallelism only with the distributed optimizer",
    "ddp.use_distributed_optimizer=true",
)
_NORMS: Final = Cause(
    "no SM margin is set for norms, which then wait until the collective has left all SMs",
    " ".join(f"{knob.removeprefix('env.')}={NORM_MARGIN.value:.0f}" for knob in _MARGINS),
)


def expert_overlap(case: Case) -> ConfigFinding | None:
    """Expert all-to-all is to run under compute, and runs alone."""
    run = case.run
    if not run.asked.ep_overlap or run.observed.ep_overlap is not False:
        return None
    section = f"comm_overlap.{_OVERLAP}"
    place = run.asked.where(section if run.asked.known(section) else _OVERLAP)
    packed = "overlap-energon-off" in case.lines
    causes = [*([_PACKED] if packed else []), *_of_schedule(run)]
    return _finding(
        "CFG-ep-overlap-not-active",
        "EP overlap is configured, and expert all-to-all runs with nothing beside it",
        f"{_OVERLAP} in {place}; the trace hides next to nothing of expert all-to-all"
        + (f"; {case.line_of('overlap-energon-off')} turns it off" if packed else ""),
        causes,
        _CHECKS,
    )


def data_overlap(case: Case) -> ConfigFinding | None:
    """Gradients or parameters are to travel under compute, and still hold the step up."""
    run = case.run
    wanted = {
        "dp_reduce_scatter": run.asked.overlap("overlap_grad_reduce"),
        "dp_all_gather": run.asked.overlap("overlap_param_gather"),
    }
    kinds = tuple(kind for kind, on in wanted.items() if on)
    cost_ns = run.cost_ns("communication", kinds) if kinds else None
    if cost_ns is None or not run.window_ns or cost_ns / run.window_ns < WALL.value:
        return None
    is_ignored = run.asked.framework == "megatron_bridge" and run.asked.distributed_optimizer is False
    norms = not any(run.asked.value(knob) for knob in _MARGINS)
    causes = [
        *([_IGNORED] if is_ignored else []),
        *_one_queue(run),
        *([_NORMS] if norms else []),
    ]
    return _finding(
        "CFG-dp-overlap-not-active",
        "DP overlap is configured, and data-parallel collectives still hold the step up",
        f"{' and '.join(kinds)} are exposed for {percent(cost_ns / run.window_ns)} of the step",
        causes,
        "check buckets (stages after the first have one), and that the exposed part is not the last one",
    )


def _one_queue(run: Run) -> list[Cause]:
    """One queue as the cause, where nothing else of the run asks for one."""
    several = connections(run, ep_overlap=run.asked.ep_overlap)
    if several == 1 or not run.asked.env_is("CUDA_DEVICE_MAX_CONNECTIONS", "1"):
        return []
    why = "CUDA_DEVICE_MAX_CONNECTIONS is 1: one hardware queue, so nothing runs beside anything"
    return [Cause(why, f"CUDA_DEVICE_MAX_CONNECTIONS={several}")]


def _of_schedule(run: Run) -> list[Cause]:
    single = [_ONE_MICROBATCH] if run.asked.microbatches == 1 else []
    return [*single, *_one_queue(run)]


def _finding(id: str, text: str, evidence: str, causes: list[Cause], checks: str) -> ConfigFinding:
    why = "; ".join((evidence, *(one.why for one in causes)))
    return ConfigFinding(
        id, "requested_not_active", text, why, "; ".join(one.change for one in causes) or checks
    )


IDLE: Final[tuple[Detector, ...]] = (expert_overlap, data_overlap)
OVERWRITTEN_ONES: Final[tuple[Detector, ...]] = (
    *(overwritten(knob) for knob in OVERWRITTEN),
    gradients_overwritten,
)
