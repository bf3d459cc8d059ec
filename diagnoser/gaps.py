"""What a user is told about what is not there: in the trace, in the selection, in the window."""

from collections.abc import Sequence
from typing import Final

from diagnoser.measured import MeasuredTrace
from traces import errors
from traces.cures import cure
from traces.formats.nsys_schema import CALLS
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.recording.line import recording
from traces.spelling import duration
from traces.steps.selection import Selection

_NO_WORK: Final = "neither kernels nor graph rows"


def _dropped(kind: str) -> str:
    """What shows the work of graph launches that left none."""
    told = cure("graphs", kind)
    return told if kind == "kineto" else f"{told}, or export with nsys 2024.3 or newer"


def what_to_record(trace: MeasuredTrace) -> str:
    """Why a trace without GPU work cannot be diagnosed, and what to record instead."""
    path, kind = trace.path, trace.info.kind
    if trace.graph_launches:
        return (
            f"{path} has {trace.graph_launches} CUDA graph launches, but {_NO_WORK}: "
            f"this export dropped them. To diagnose it, {_dropped(kind)}."
        )
    if kind == "kineto":
        return (
            f"{path} has no kernels: nothing to diagnose. Record the GPU: "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
        )
    nothing = "no CUDA data, " if CALLS in trace.info.missing_tables else ""
    return f"{path} has {nothing}{_NO_WORK}: nothing to diagnose. Record the GPU: {recording().nsys}"


_SKIPPED: Final = {
    errors.NotShared: "no worker of the cluster can read it",
    errors.TraceNotFound: "it cannot be read",
    errors.NotATrace: "it is no trace",
    errors.DamagedTrace: "it is damaged",
    errors.NsysUnavailable: "it needs an nsys that is not here",
    errors.ExportFailed: "nsys could not export it",
    errors.OutputNotWritable: "its export could not be kept",
    errors.OutOfMemory: "it needs more memory than is available",
    errors.UnpacksTooFar: "it unpacks to far more than any recording",
    errors.ProcessEnded: "the process that read it was ended from outside",
    errors.NothingToDiagnose: f"it has {_NO_WORK}",
}
"""What a document says of a trace that failed: never the error's own words, which may hold paths.

A kind stands before the kind that it is one of.
"""


def why_skipped(error: Exception) -> str:
    """Why a trace was left out of a run, without a path."""
    return next((why for kind, why in _SKIPPED.items() if isinstance(error, kind)), "it could not be used")


def no_such_rank(traces: Sequence[MeasuredTrace], selection: Selection) -> str:
    """Why --rank or --gpu matches nothing, and what there is."""
    gpus = ", ".join(map(str, sorted({device for trace in traces for device in trace.devices})))
    recorded = sorted({number for trace in traces for number in trace.recorded_ranks})
    numbers = ", ".join(map(str, recorded))
    named = f"recorded ranks are {numbers}" if recorded else "no rank is recorded in the trace"
    asked = {"--rank": selection.rank, "--gpu": selection.gpu}
    given = " ".join(f"{option} {value}" for option, value in asked.items() if value is not None)
    return f"{given} matches nothing: kernels ran on GPU {gpus}, and {named}. Choose one of these."


def recording_gaps(index: int, trace: MeasuredTrace) -> list[Missing]:
    """What the recording of trace `index` hides from the budget of its ranks."""
    gaps = []
    if trace.opaque_graph_launches:
        gaps.append(
            Missing(
                f"traces[{index}].graph_launches",
                f"{trace.opaque_graph_launches} of {trace.graph_launches} CUDA graph launches show "
                "neither kernels nor a replay, so idle time may be work",
                _dropped(trace.info.kind),
            )
        )
    if any(rank.kernel_count and rank.replay_count for rank in trace.ranks):
        gaps.append(
            Missing(
                f"traces[{index}].graph_replays",
                "some graph replays were recorded whole: communication in them counts as compute",
                cure("graphs", trace.info.kind),
            )
        )
    return gaps


def window_warnings(ranks: Sequence[RankMeasurements]) -> list[str]:
    """A window that reaches beyond the recording counts idle time that nobody recorded."""
    outside_ns = max(rank.outside_activity_ns for rank in ranks)
    if not outside_ns:
        return []
    return [
        f"the window given reaches {duration(outside_ns)} beyond the recorded GPU work, which counts as idle"
    ]
