"""Result -> plain dict: the JSON contract, version 1.0. Keys may be added; none may change.

Integers are nanoseconds over the used steps. A value that could not be told is None and has an entry in
`missing`, whose path is its own or a parent's. A redacted document names no host, user or folder; one that is
not holds the paths of traces as they were given and the texts of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from heuristics import Judgement
from reports.document_config import config_gaps, config_sections
from reports.document_rank import rank_section
from reports.document_verdict import judged_sections, verdict_gaps
from reports.words import percent
from traces.columns import Gpu, TraceInfo
from traces.cures import cures
from traces.measure.measurements import RankMeasurements
from traces.measure.messages import Messages
from traces.missing import Missing
from traces.names.frameworks import Framework

SCHEMA_VERSION: Final = "1.0"
Document = dict[str, Any]
_FLAG: Final = re.compile(r" \(Megatron-LM: [^)]*\)")


@dataclass(frozen=True, slots=True)
class TraceResult:
    """One trace that was read: what it says of itself, and the share of its kernels with a launch."""

    info: TraceInfo
    correlation_frac: float | None
    messages: tuple[Messages, ...] | None = None
    path: str | None = None
    """As it was given; None in a redacted document."""


def build_document(
    version: str,
    traces: Sequence[TraceResult],
    ranks: Sequence[RankMeasurements],
    judgement: Judgement,
    warnings: Sequence[str],
    missing: Sequence[Missing],
    redact: bool = True,
) -> Document:
    """The whole document. Its values are plain: dict, list, str, int, float, bool, None.

    `redact`: texts of the configuration are withheld where they could be a path or a name.
    """
    sections = [rank_section(index, rank, judgement.run.shown.ep_overlap) for index, rank in enumerate(ranks)]
    gaps = [gap for index, trace in enumerate(traces) for gap in _trace_gaps(index, trace)]
    gaps += [gap for section in sections for gap in section.missing]
    gaps += [
        *judgement.missing,
        *verdict_gaps(judgement),
        *config_gaps(judgement, redact),
        *_perturbation_gaps(judgement),
        *missing,
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "moe-diag", "version": version, "guidance": judgement.guidance},
        "warnings": [*_startup_warnings(traces[0].info.kind, judgement), *warnings],
        "missing": [
            {"path": gap.path, "reason": gap.reason, "cure": _cure(gap, judgement.run.framework)}
            for gap in gaps
        ],
        "redacted": redact,
        "traces": [_trace_section(trace, judgement.perturbation_frac) for trace in traces],
        "ranks": [section.values for section in sections],
        "framework": judgement.run.framework,
        **judged_sections(judgement),
        **config_sections(judgement, redact),
    }


def _startup_warnings(kind: str, judgement: Judgement) -> list[str]:
    """A recording that is mostly of the profiler or of start-up says so before all else."""
    if (startup := judgement.startup) is None:
        return []
    rest = "Walls are judged on the rest. " if startup.left_out_ns else "Hardly anything else was recorded. "
    held = f"{startup.ns / 1e6:,.0f} ms ({percent(startup.frac)} of the windows)"
    return [
        "not a steady-state recording: the profiler and start-up (loading modules, initialising libraries) "
        f"held the GPU back for {held}. {rest}{cures(kind)['startup']}"
    ]


def _cure(gap: Missing, framework: Framework) -> str:
    """What would tell more, without the flag of Megatron's in brackets where the run is not its."""
    return gap.cure if framework == "megatron" else _FLAG.sub("", gap.cure)


def with_command(document: Document, command: str) -> Document:
    """The document of any kind with the line that makes it again, as a key after `redacted`."""
    whole: Document = {}
    for key, value in document.items():
        whole[key] = value
        if key == "redacted":
            whole["command"] = command
    return whole


def _perturbation_gaps(judgement: Judgement) -> list[Missing]:
    if judgement.perturbation_frac is not None:
        return []
    why = "no length of a step without the profiler is known"
    return [Missing("traces[*].capture.perturbation_frac", why, "give the training log: --log FILE")]


def _trace_section(trace: TraceResult, perturbation_frac: float | None) -> Document:
    info = trace.info
    return {
        "name": info.name,
        **({} if trace.path is None else {"path": trace.path}),
        "kind": info.kind,
        "exporter_version": info.exporter_version,
        "schema": info.schema,
        "reader": info.reader,
        "gpus": [_gpu_section(gpu) for gpu in info.gpus],
        "missing_tables": list(info.missing_tables),
        "nccl_messages": None if trace.messages is None else [_without_none(one) for one in trace.messages],
        "capture": {
            "correlation_frac": trace.correlation_frac,
            "diagnostics": list(info.diagnostics),
            "perturbation_frac": perturbation_frac,
        },
    }


def _without_none(messages: Messages) -> Document:
    return {key: value for key, value in asdict(messages).items() if value is not None}


def _gpu_section(gpu: Gpu) -> Document:
    return {
        "name": gpu.name,
        "sm_count": gpu.sm_count,
        "capability": gpu.capability,
        "memory_bytes": gpu.memory_bytes,
    }


def _trace_gaps(index: int, trace: TraceResult) -> list[Missing]:
    """Entries for what a trace does not say of itself."""
    path, info, gaps = f"traces[{index}]", trace.info, []
    cure = cures(info.kind)
    if info.exporter_version is None:
        gaps.append(
            Missing(f"{path}.exporter_version", "the trace does not say who wrote it", cure["version"])
        )
    if trace.messages is None:
        gaps.append(Missing(f"{path}.nccl_messages", "the trace holds no NCCL payloads", cure["payloads"]))
    if info.schema is None:
        gaps.append(Missing(f"{path}.schema", "the trace has no schema version", cure["version"]))
    if trace.correlation_frac is None:
        gaps.append(
            Missing(
                f"{path}.capture.correlation_frac",
                "no single kernels were recorded",
                cure["graphs"],
            )
        )
    for place, gpu in enumerate(info.gpus):
        for key, value in _gpu_section(gpu).items():
            if value is None:
                reason = (
                    "it is none of the product names we know" if key == "name" else "the export does not say"
                )
                gaps.append(
                    Missing(f"{path}.gpus[{place}].{key}", reason, "give --gpu-model in a later version")
                )
    return gaps
