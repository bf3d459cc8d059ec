"""Contradictions of the dispatcher: a backend without flex, on the wrong GPU, or one that does not run."""

from typing import Final

from heuristics.config.features import FLEX
from heuristics.config.given import WHOLE
from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run

DEFAULT_BACKEND: Final = "deepep"
"""Of `moe_flex_dispatcher_backend` in Megatron-Core 0.16 to main (transformer_config.py)."""
_PADDING: Final = "moe_router_padding_for_quantization"
_TYPE: Final = "moe_token_dispatcher_type"
_BACKEND: Final = "moe_flex_dispatcher_backend"


def _backend(run: Run) -> str | None:
    """A backend of flex, whether or not flex itself is asked for."""
    backend = run.config.word(_BACKEND)
    return backend if backend in FLEX else None


def _chosen_backend(case: Case) -> str | None:
    """A backend that somebody chose: not the default as every whole configuration repeats it."""
    run = case.run
    backend, said = _backend(run), case.run.asked.written.said(_BACKEND)
    knobs = [one for one in case.run.asked.written.by_knob.values() if one.said != "default"]
    if backend != DEFAULT_BACKEND:
        return backend
    return None if said == "default" or len(knobs) >= WHOLE.value else backend


def backend_without_flex(case: Case) -> ConfigFinding | None:
    """The backend alone does nothing while the type is another."""
    run = case.run
    backend, kind = _chosen_backend(case), run.asked.word(_TYPE)
    is_open = run.asked.framework == "megatron_bridge" and not run.asked.known(_TYPE)
    if backend is None or run.observed.dispatcher == backend:
        return None
    if not is_open and kind not in ("alltoall", "allgather"):
        return None
    type_is = "alltoall unless the recipe sets flex" if is_open else kind
    place = "" if is_open else f", {_TYPE} in {run.asked.where(_TYPE)}"
    seen = run.observed.dispatcher
    shows = f"; the trace shows {seen}" if seen not in ("unknown", "none") else ""
    return ConfigFinding(
        "CFG-flex-type",
        "inert",
        f"{backend} is set as backend, but its type is {type_is}: the backend alone does nothing",
        f"{_BACKEND} in {run.asked.where(_BACKEND)}{place}{shows}",
        f"{_TYPE}=flex beside {_BACKEND}={backend}; in Megatron-Bridge apply_flex_dispatcher_backend(...)",
    )


def flex_without_backend(case: Case) -> ConfigFinding | None:
    """Flex with a backend of null: nothing is left that could dispatch."""
    said = case.run.asked.written
    if said.value(_TYPE) != "flex" or _BACKEND not in said or said.value(_BACKEND) is not None:
        return None
    if said.value("moe_enable_deepep"):
        return None
    return ConfigFinding(
        "CFG-flex-backend",
        "inert",
        "the flex dispatcher is asked for without a backend: Megatron-Bridge goes back to alltoall, or "
        "Megatron-Core stops",
        f"{_TYPE} in {case.run.asked.where(_TYPE)}, {_BACKEND} is null in {case.run.asked.where(_BACKEND)}; "
        "training/flex_dispatcher_backend.py",
        f"{_BACKEND}=deepep or hybridep, in Megatron-Bridge by apply_flex_dispatcher_backend(...); or "
        f"{_TYPE}=alltoall",
    )


def backend_skipped(case: Case) -> ConfigFinding | None:
    """Megatron-Bridge skips, replaces or refuses a backend on a GPU that it does not know for it."""
    for line in ("flex-skipped", "deepep-gpu", "hybridep-gpu"):
        if line in case.lines:
            backend = case.backend_of(line) or _backend(case.run) or "the backend"
            return _skipped(case, backend, f"{case.line_of(line)} reports it")
    run, backend = case.run, case.run.asked.dispatcher or ""
    if not _through_bridge(case) or run.observed.dispatcher == backend:
        return None
    past = (rule for rule in limits(backend) if rule.by == "megatron_bridge" and past_limit(rule, run.config))
    rule, family = next(past, None), run.config.gpu_family
    on = f"the GPU is a {family.name}: " if family else ""
    return None if rule is None else _skipped(case, backend, f"{on}{rule.text}")


def _through_bridge(case: Case) -> bool:
    return (
        case.run.settings.framework == "megatron_bridge" or case.run.asked.version_text("bridge") is not None
    )


def _skipped(case: Case, backend: str, evidence: str) -> ConfigFinding:
    return ConfigFinding(
        "CFG-dispatcher-gpu",
        "rejected",
        f"Megatron-Bridge does not run {backend} on this GPU: it skips it or falls back to alltoall with a "
        "warning, and raises where flex is set by hand",
        evidence,
        "hybridep on GB200 and GB300; deepep on Hopper, B200 and B300 (B300 from Megatron-Bridge 0.4); else "
        "alltoall",
    )


def backend_not_installed(case: Case) -> ConfigFinding | None:
    """The package of the backend is not there."""
    line = next(
        (one for one in ("deepep-missing", "hybridep-missing", "ncclep-missing") if one in case.lines), ""
    )
    if not line:
        return None
    backend = line.removesuffix("-missing")
    return ConfigFinding(
        "CFG-dispatcher-package",
        "rejected",
        f"{backend} is asked for, and its package is not installed",
        case.line_of(line),
        "a container that has it, or alltoall",
    )


def dispatcher_not_active(case: Case) -> ConfigFinding | None:
    """The trace shows another dispatcher than the one asked for."""
    run, seen = case.run, case.run.observed.dispatcher
    asked = run.asked.dispatcher
    if asked in (None, "flex", seen) or seen in ("unknown", "none"):
        return None
    kernels = "NCCL SendRecv" if seen == "alltoall" else f"the kernels of {seen}"
    unasked = asked in ("alltoall", "allgather")
    return ConfigFinding(
        "CFG-dispatcher-not-active",
        "active_not_requested" if unasked else "requested_not_active",
        f"{asked} is asked for, and {seen} runs",
        f"{_TYPE} in {run.asked.where(_TYPE)}; the trace shows {kernels}",
        "look into the log for a warning that it was skipped, and at the GPU and the package"
        if not unasked
        else "take the trace and the configuration of the same run",
    )


def padding_sync(case: Case) -> ConfigFinding | None:
    """Padding for quantisation makes alltoall copy counts to the host, inside what a graph should hold."""
    run = case.run
    padded = run.asked.on(_PADDING)
    graphed = "moe_preprocess" in (run.asked.graph_modules or ())
    planned = padded and graphed and run.asked.graph_impl == "transformer_engine"
    tripped = "graphs-preprocess-padding" in case.lines
    if not tripped and not (planned and run.asked.dispatcher == "alltoall"):
        return None
    said = (
        f"{_PADDING} in {run.asked.where(_PADDING)}" if padded else case.line_of("graphs-preprocess-padding")
    )
    return ConfigFinding(
        "CFG-padding-sync",
        "illegal",
        "alltoall with padding for quantisation copies token counts to the host, which a graph of "
        "moe_preprocess cannot hold: the configuration passes, the run trips an assertion on its sync points",
        said,
        "graphs of moe_router only, or the flex dispatcher",
    )


DETECTORS: Final[tuple[Detector, ...]] = (
    backend_without_flex,
    flex_without_backend,
    backend_skipped,
    backend_not_installed,
    dispatcher_not_active,
    padding_sync,
)
