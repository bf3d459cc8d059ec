"""`traces[]`: what each recording says of itself."""

from msgspec import UNSET

from traces.columns import TraceInfo
from traces.cures import cures
from traces.frozen import frozen
from traces.missing import gap, or_gap
from traces.sections import trace as typed
from traces.sections.section import copied
from traces.sections.trace import Messages


@frozen
class ReadTrace:
    """One trace that was read: what it says of itself, and the share of its kernels with a
    launch.
    """

    info: TraceInfo
    correlation_frac: float | None
    messages: tuple[Messages, ...] | None
    path: str | None
    """As it was given; None where paths are withheld."""


def trace(read: ReadTrace, perturbation_frac: float | None) -> typed.Trace:
    """One recording. `perturbation_frac`: of the whole run."""
    info, cure = read.info, cures(read.info.kind)
    uncompared = gap(
        "no length of a step without the profiler is known", "give the training log: --log FILE"
    )
    unsigned = gap("the trace does not record who wrote it", cure["version"])
    how = "give --gpu-model in a later version"
    silent = gap("the export does not record it", how)
    gpus = []
    for gpu in info.gpus:
        name = or_gap(gpu.name, gap("it is none of the product names we know", how))
        limits = or_gap(gpu.sm_count, silent), or_gap(gpu.capability, silent)
        gpus.append(typed.Gpu(name, *limits, or_gap(gpu.memory_bytes, silent)))
    return copied(
        typed.Trace,
        info,
        path=UNSET if read.path is None else read.path,
        exporter_version=info.exporter_version or unsigned,
        schema=info.schema or gap("the trace has no schema version", cure["version"]),
        gpus=tuple(gpus),
        nccl_messages=or_gap(
            read.messages, gap("the trace holds no NCCL payloads", cure["payloads"])
        ),
        capture=typed.Capture(
            or_gap(read.correlation_frac, gap("no single kernels were recorded", cure["graphs"])),
            info.diagnostics,
            or_gap(perturbation_frac, uncompared),
            info.stacks,
        ),
    )
