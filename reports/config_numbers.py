"""A run's numbers as sentences: the log's steady step, throughput beside published rows, memory by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reports.config_sentences import is_written
from reports.document import Document
from reports.words import percent

_GB: Final = 1e9
_REFERENCES: Final = 2
_PARTS: Final = ("parameters", "gradients", "optimizer", "activations", "logits")


def number_sentences(document: Document, everything: bool) -> Iterator[str]:
    """The steady step, throughput and memory; a line that begins with a dash belongs to the one before."""
    yield from _log_sentences(document)
    if (found := document["throughput"]) is not None:
        yield from _throughput_sentences(found, everything)
    else:
        yield from _untold(document, "throughput", "Throughput")
    if (found := document["memory_estimate"]) is not None:
        yield from _memory_sentences(found, everything)
    else:
        yield from _untold(document, "memory_estimate", "Memory")


def _untold(document: Document, path: str, name: str) -> Iterator[str]:
    """Why a number of a configuration that was given is not told."""
    gap = next((one for one in document["missing"] if one["path"] == path), None)
    if gap is not None and is_written(document):
        yield f"{name} is not told: {gap['reason'].rstrip('.')}. To tell: {gap['cure'].rstrip('.')}."


def _log_sentences(document: Document) -> Iterator[str]:
    log = document["log"]
    if log is None or log["steady_step_ns"] is None:
        return
    of = f"{log['steady_count']} steady of {log['iteration_count']} iterations"
    said = f"The log: a step takes {_ms(log['steady_step_ns'])} ({of})"
    peak = log["peak_allocated_bytes"]
    room = f"; peak allocated {_gb(peak)} GB" if peak else ""
    yield f"{said}{room}."
    for trace in document["traces"]:
        if (slower := trace["capture"]["perturbation_frac"]) is not None:
            than = f"{'longer' if slower >= 0 else 'shorter'} than that"
            yield f"The profiled step is {percent(abs(slower))} {than}."


def _throughput_sentences(found: dict[str, Any], everything: bool) -> Iterator[str]:
    rate = f"{found['model_tflops_per_gpu']:,.1f} model TFLOP/s"
    said = f"{found['tokens_per_s_per_gpu']:,.0f} tokens/s and {rate} a GPU at {_ms(found['step_ns'])} a step"
    if (peak := found["peak"]) is not None and found["mfu_frac"] is not None:
        of = f"{peak['tflops']:,.0f} TFLOP/s ({peak['gpu']}, {peak['precision']})"
        said += f"; MFU {percent(found['mfu_frac'])} of {of}"
    yield f"Throughput: {said}. From {found['source']}."
    rows = found["references"] if everything else found["references"][:_REFERENCES]
    if rows:
        yield "Published of this model, each for its own shape, no target for another:"
        yield from map(_reference, rows)


def _reference(one: dict[str, Any]) -> str:
    layout = f", TP/PP/VP/EP {one['layout']}" if one["layout"] else ""
    forced = ", routing balanced by force" if one["routing"] == "balanced" else ""
    rates = f"{one['tokens_per_s_per_gpu']:,.0f} tokens/s, {one['tflops_per_gpu']:,.0f} TFLOP/s a GPU"
    gpus = f"{one['gpus']} {one['gpu']}" if one["gpus"] else one["gpu"]
    precision = f", {one['precision']}" if one["precision"] else ""
    return f"- {one['model']}, {gpus}{precision}{layout}{forced}: {rates} ({one['source']})"


def _memory_sentences(found: dict[str, Any], everything: bool) -> Iterator[str]:
    said = ", ".join(f"{part} {_gb(found[f'{part}_bytes'])}" for part in _PARTS)
    rest = found["rest_bytes"] or 0
    estimated = _gb(found["total_bytes"] - rest)
    yield f"Memory of the fullest rank (pipeline stage {found['stage']}): {estimated} GB by estimate: {said}."
    if rest:
        peak = _gb(found["total_bytes"])
        beside = f"{_gb(abs(rest))} GB {'more' if rest > 0 else 'less'} than the estimate"
        yield f"The log's peak, {peak} GB, is {beside}; whether a change fits is told by the peak."
    if everything and found["assumed"]:
        yield f"Assumed in it: {', '.join(found['assumed'])}."


def _ms(ns: int) -> str:
    return f"{ns / 1e6:,.1f} ms"


def _gb(count: int) -> str:
    return f"{count / _GB:.1f}"
