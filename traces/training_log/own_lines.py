"""What a log's own lines say of the run beside its iterations: its ranks, and its first error.

Megatron-LM prints its ranks once, on rank 0 (validate_args in megatron/training/arguments.py,
core_v0.12.0 to d98e8a64); Megatron-Bridge prints only sizes of tensor and pipeline groups
(training/initialize.py, v0.3.1 to 067f987d). Its timers print `(min, max) time across ranks (ms):`
and a line each (core/timers.py).
"""

import builtins
from statistics import median
from typing import Final

from traces.patterns import compiled
from traces.settings.knobs import GLOBAL_BATCH
from traces.settings.settings import Setting, Settings
from traces.training_log.iterations import SteadyStep
from traces.training_log.log import Message, TrainingLog, holds_one

_OF_SIZES: Final = ("using world size: ", " model parallel with size ", ") is not divisible by")
_BATCH_TIMER: Final = "batch-generator ."
WORDS: Final = (*map(str.encode, (*_OF_SIZES, _BATCH_TIMER)), b"Error: ", b"Exception: ")
_BATCH: Final = compiled(r"batch-generator \.{2,60}: \(([0-9.]{1,20}), ([0-9.]{1,20})\)")
_SIZES: Final = {
    "world_size": compiled(
        r"(?:using world size: |world[_ ]size \()([0-9]{1,9})(?:,|\) is not divisible)"
    ),
    "data_parallel_size": compiled(r"[ ,]data-parallel size: ([0-9]{1,9})"),
    "context_parallel_size": compiled(r" context-parallel size: ([0-9]{1,9})"),
    "tensor_model_parallel_size": compiled(
        r"(?:tensor-model-parallel size: |> initialized tensor model parallel with size )"
        r"([0-9]{1,9})"
    ),
    "pipeline_model_parallel_size": compiled(
        r"(?:pipeline-model-parallel size: |> initialized pipeline model parallel with size )"
        r"([0-9]{1,9})"
    ),
}
_OF_ENCODER: Final = compiled(r"encoder-(?:tensor|pipeline)-model-parallel size: ")
_RAISED: Final = compiled(
    r"^(?:\[?(?:rank ?)?[0-9]{1,7}\]?: ?)?(?:\w{1,40}\.){0,6}(\w{1,40}(?:Error|Exception)): ",
)
"""The last line of a traceback, behind the rank that torchrun or srun puts before it."""
_BUILT_IN: Final = frozenset(
    name for name in dir(builtins) if name.endswith(("Error", "Exception"))
)
_TORCH: Final = frozenset(
    {"OutOfMemoryError", "DistBackendError", "DistStoreError", "ChildFailedError"}
)


def sizes_in(text: str, where: str) -> dict[str, Setting]:
    """Ranks in all and of each parallel group, as one line says them; `where`: such as
    `run.log:7`."""
    settings = {}
    if holds_one(text, _OF_SIZES):
        own = _OF_ENCODER.sub("", text)
        for knob, pattern in _SIZES.items():
            if size := pattern.search(own):
                settings[knob] = Setting(int(size[1]), where)
    return settings


def batch_ns_in(text: str) -> int | None:
    """How long the slowest rank took to make its batches of a step: a timer of Megatron's, in
    ms.
    """
    match = _BATCH.search(text) if _BATCH_TIMER in text else None
    try:
        if not match:
            return None
        return round(float(match[2]) * 1e6)
    except ValueError:  # dots alone
        return None


def error_in(number: int, text: str) -> Message | None:
    """The error that a line ends a traceback with; its class only where Python or PyTorch name
    it.
    """
    match = _RAISED.match(text)
    if not match:
        return None
    named = match[1] in _BUILT_IN or match[1] in _TORCH
    return Message("unknown-error", number, {"error": match[1]} if named else {})


def logged_run(log: TrainingLog, steady: SteadyStep | None) -> Settings:
    """What a log says that the run did, not what it was asked for: its ranks, and the steady steps'
    batch.
    """
    printed = (log.settings or Settings()).by_knob
    settings = {knob: printed[knob] for knob in _SIZES if knob in printed}
    batches = {iteration.global_batch_size for iteration in steady.used} if steady else set()
    if steady and len(batches) == 1 and (batch := batches.pop()):
        settings[GLOBAL_BATCH] = Setting(batch, f"{log.name}:{steady.used[-1].line}")
    return Settings(settings)


def loading_frac(log: TrainingLog, steady: SteadyStep | None) -> float | None:
    """The part of a typical step that waits for data; None where nothing printed tells it."""
    if log.loading_fracs:
        return median(log.loading_fracs)
    if not log.batch_ns or not steady:
        return None
    return min(1.0, median(log.batch_ns) / steady.median_ns)


def overlaps_on(log: TrainingLog) -> dict[str, int]:
    """Overlaps that a line says are set up, by knob, each with its line.

    A printed configuration says what was asked for. Of EP overlap no release prints that it runs
    (all calls that log in combined_1f1b.py, model_chunk_schedule_plan.py and comm_overlap.py,
    2026-08).
    """
    lines = {}
    if wrapped := log.first("ddp-config"):
        for knob, state in wrapped.said.items():
            if state == "True":
                lines[f"ddp.{knob}"] = wrapped.line
    if made := log.first("tp-overlap-on", "tp-overlap-default"):
        lines["tp_comm_overlap"] = made.line
    return lines
