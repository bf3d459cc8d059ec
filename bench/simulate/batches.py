"""How a step gets its batch: what it waits for, the copy, and what a loader's thread does beside it."""

from __future__ import annotations

from typing import Final

from bench.simulate.draws import uniform
from bench.simulate.host_program import Engine
from bench.simulate.script import COMPUTE, HELPER, Script

_HELPS: Final = {"none": 0, "copies": 0, "dali": 6, "torch": 6}
"""Kernels that a loader's thread launches for a batch."""
_PACKED: Final = 8
"""Images of bytes, compressed, beside what a network takes."""
_HELPER_MS: Final = 1.0
"""What it takes beside them, at the least."""
_MIB: Final = 1 << 20


def first_batch(script: Script) -> None:
    """The workers start and make the first batch, before the first step."""
    if script.knobs.first_batch_ms:
        script.pause(script.knobs.first_batch_ms, "data", "data loader")


def batch(script: Script) -> None:
    """Let the loader's thread make batches ahead, wait for this step's and copy it."""
    knobs = script.knobs
    _help(script)
    if knobs.data_stall_ms and _is_late(script):
        script.pause(knobs.data_stall_ms, "data", "data loader")
    blocking = "h2d" if knobs.pageable_host else None
    script.copy(Engine.COPY_TO_DEVICE, _batch_bytes(script), COMPUTE, "batch", blocking=blocking)


def _is_late(script: Script) -> bool:
    """In turns, since the slowest worker's batch is; or by chance, in this share of the steps."""
    knobs = script.knobs
    if knobs.late_batch_frac:
        return uniform(f"{knobs.seed}/{script.step}/late batch") < knobs.late_batch_frac
    return script.step % knobs.loader_workers == 0


def _batch_bytes(script: Script) -> int:
    return round(script.knobs.batch_mib * _MIB)


def _help(script: Script) -> None:
    """A loader's thread makes a batch ahead: its copy, and kernels spread over the time a batch takes."""
    knobs, count = script.knobs, _HELPS[script.knobs.helper]
    if knobs.helper == "none":
        return
    with script.on_loader():
        script.copy(Engine.COPY_TO_DEVICE, _batch_bytes(script) // _PACKED, HELPER, "raw batch")
        for _ in range(count):
            script.busy(max(knobs.data_stall_ms, _HELPER_MS) / count, "helper", "data")
            script.kernel(knobs.helper, knobs.helper_kernel_us, name="helper")
        script.synchronise("stream", HELPER)
