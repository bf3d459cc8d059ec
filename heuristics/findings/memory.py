"""Contradictions of memory: recompute that nobody asked for, offload or segments that do not show."""

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.run.run import Run
from heuristics.workflow.fit_rules import OFFLOADS
from traces.limits import Limit

STEADY_CALLS: Final = Limit(
    1, "allocator calls a step", "ours: a library's own allocation now and then is no retry of PyTorch's"
)
_GRANULARITY: Final = "recompute_granularity"
_ALLOCATOR: Final = ("env.PYTORCH_CUDA_ALLOC_CONF", "env.PYTORCH_ALLOC_CONF")


def recompute_unasked(case: Case) -> ConfigFinding | None:
    """The whole MoE layer runs again, though no setting says so.

    Only this label: its router and its exchanges are told apart from everything else, while norms or
    activations that run again may belong to a wider module.
    """
    run, shown = case.run, case.run.observed.recompute_modules
    if shown is None or "moe" not in shown or not run.asked.known(_GRANULARITY):
        return None
    granularity, asked = run.asked.word(_GRANULARITY), run.asked.names("recompute_modules")
    if granularity == "full" or (granularity == "selective" and asked is None):
        return None
    if granularity == "selective" and "moe" in (asked or ()):
        return None
    return ConfigFinding(
        "CFG-recompute-unasked",
        "active_not_requested",
        "the MoE layer runs again in the backward, its exchanges too, and no setting asks for it",
        f"{_GRANULARITY} in {run.asked.where(_GRANULARITY)}; router or dispatch run a second time",
        "recompute_modules without moe, or the configuration of this run",
    )


def full_recompute_not_active(case: Case) -> ConfigFinding | None:
    """Full recompute asked for, and nothing runs again."""
    run = case.run
    none_seen = run.observed.recompute_modules == () and run.observed.recompute_full is False
    if run.asked.word(_GRANULARITY) != "full" or not none_seen:
        return None
    return ConfigFinding(
        "CFG-recompute-not-active",
        "requested_not_active",
        "full recompute is asked for, and nothing runs a second time",
        f"{_GRANULARITY} in {run.asked.where(_GRANULARITY)}; every forward of the trace runs once",
        "recompute_method and recompute_num_layers beside it, or leave it out",
    )


def offload_not_active(case: Case) -> ConfigFinding | None:
    """Activation offload asked for, and no copy to the host shows."""
    run = case.run
    knob = next(
        (one for one in ("fine_grained_activation_offloading", "cpu_offloading") if run.asked.on(one)), ""
    )
    if not knob or run.observed.offload is not False:
        return None
    return ConfigFinding(
        "CFG-offload-not-active",
        "requested_not_active",
        "activations are to go to the CPU, and no such copy runs",
        f"{knob} in {run.asked.where(knob)}; the trace has no offload copies",
        "offload_modules that the model has, and tensors above min_offloaded_tensor_size (MEM-6)",
    )


def offload_unasked(case: Case) -> ConfigFinding | None:
    """Offload copies run though every kind of offload is said to be off."""
    run = case.run
    if not run.observed.offload or any(run.asked.on(knob) is not False for knob in OFFLOADS):
        return None
    return ConfigFinding(
        "CFG-offload-unasked",
        "active_not_requested",
        "offload is off in the configuration, and activations travel to the host and back",
        "cpu_offloading, fine-grained and optimizer offload are off; the trace has offload copies",
        "take the trace and the configuration of the same run",
    )


def expandable_segments(run: Run) -> bool | None:
    """Whether PyTorch's allocator is to grow its segments; None where its environment is not known."""
    texts = [run.asked.value(knob) for knob in _ALLOCATOR if run.asked.known(knob)]
    if not texts:
        return None
    return any("expandable_segments:true" in str(text).lower().replace(" ", "") for text in texts)


def segments_not_active(case: Case) -> ConfigFinding | None:
    """Expandable segments asked for, and the allocator still takes and gives memory back in every step."""
    run, calls = case.run, case.run.observed.allocator_calls_per_step
    if not expandable_segments(run) or calls is None or calls < STEADY_CALLS.value:
        return None
    knob = next(one for one in _ALLOCATOR if run.asked.known(one))
    return ConfigFinding(
        "CFG-expandable-segments",
        "requested_not_active",
        "expandable segments are asked for, and cudaMalloc or cudaFree still runs in every step",
        f"{knob.removeprefix('env.')} in {run.asked.where(knob)}; {calls:.0f} allocator calls a step",
        "see that the variable reaches every rank, and that memory is not simply full (MEM-2)",
    )


DETECTORS: Final[tuple[Detector, ...]] = (
    recompute_unasked,
    full_recompute_not_active,
    offload_not_active,
    offload_unasked,
    segments_not_active,
)
