"""`traces[]`: what each recording says of itself."""

from dataclasses import dataclass

from msgspec import UNSET

from traces.columns import Gpu, TraceInfo
from traces.cures import cures
from traces.missing import gap, or_gap
from traces.sections import trace as typed
from traces.sections.section import copied
from traces.sections.trace import Messages


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """One trace that was read: what it says of itself, and the share of its kernels with a launch."""

    info: TraceInfo
    correlation_frac: float | None
    messages: tuple[Messages, ...] | None = None
    path: str | None = None
    """As it was given; None where paths are withheld."""


def trace(read: ReadTrace, perturbation_frac: float | None) -> typed.Trace:
    """One recording. `perturbation_frac`: of the whole run."""
    info, cure = read.info, cures(read.info.kind)
    uncompared = gap("no length of a step without the profiler is known", "give the training log: --log FILE")
    return copied(
        typed.Trace,
        info,
        path=UNSET if read.path is None else read.path,
        exporter_version=info.exporter_version
        or gap("the trace does not record who wrote it", cure["version"]),
        schema=info.schema or gap("the trace has no schema version", cure["version"]),
        gpus=tuple(_gpu(one) for one in info.gpus),
        nccl_messages=or_gap(read.messages, gap("the trace holds no NCCL payloads", cure["payloads"])),
        capture=typed.Capture(
            or_gap(read.correlation_frac, gap("no single kernels were recorded", cure["graphs"])),
            info.diagnostics,
            or_gap(perturbation_frac, uncompared),
            info.stacks,
        ),
    )


def _gpu(found: Gpu) -> typed.Gpu:
    how = "give --gpu-model in a later version"
    silent = gap("the export does not record it", how)
    return typed.Gpu(
        or_gap(found.name, gap("it is none of the product names we know", how)),
        or_gap(found.sm_count, silent),
        or_gap(found.capability, silent),
        or_gap(found.memory_bytes, silent),
    )
