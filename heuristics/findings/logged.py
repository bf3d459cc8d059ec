"""Where a log says other than the configuration: batch, ranks, precision; and an error that none explains."""

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from heuristics.run.run import Run
from traces.settings.effective import effective
from traces.settings.precision import configured_precision
from traces.settings.settings import KnobView, Settings
from traces.sizes.peaks import peak_precision
from traces.training_log.own_lines import BATCH, logged_run
from traces.training_log.steady import steady_step

_OWN: Final = "the configuration of this run, or the log of this configuration"
_WORLD: Final = "world_size"
_PRECISION: Final = ("mixed_precision", "fp4", "fp8", "bf16", "fp16")


def global_batch(case: Case) -> ConfigFinding | None:
    """Steady steps of another global batch; a batch that grows by plan is no contradiction."""
    said = case.run.asked.written.by_knob.get(BATCH)
    logged = _logged(case.run).by_knob.get(BATCH)
    if said is None or logged is None or case.run.asked.written.value("train.rampup_batch_size") is not None:
        return None
    if said.value is None or said.value == logged.value:
        return None
    return ConfigFinding(
        "CFG-log-global-batch",
        "logged_otherwise",
        f"the log's steps have a global batch of {logged.value:,}, the configuration has {said.value:,}; "
        "throughput is counted with the log's",
        f"global batch size in {logged.said}; {BATCH} in {said.said}",
        _OWN,
    )


def world_size(case: Case) -> ConfigFinding | None:
    """Another number of ranks than an option or the configuration says."""
    logged = _logged(case.run).by_knob.get(_WORLD)
    asked = case.run.given.world_size or case.run.asked.written.value(_WORLD)
    if logged is None or asked is None or asked == logged.value:
        return None
    written = case.run.asked.written
    place = written.said(_WORLD) if written.value(_WORLD) == asked else "--world-size"
    return ConfigFinding(
        "CFG-log-world-size",
        "logged_otherwise",
        f"the log has {logged.value:,} ranks, the configuration {asked:,}; throughput is counted with the "
        "log's",
        f"world size in {logged.said}; {_WORLD} in {place}",
        _OWN,
    )


def precision(case: Case) -> ConfigFinding | None:
    """Matrix work in another precision than the configuration says, by what the log prints of its own."""
    log = case.run.log
    own = log.settings if log else None
    if own is None:
        return None
    core = case.run.config.core_text
    ran = configured_precision(KnobView(effective(own, core)))
    asked = case.run.asked.precision
    if ran is None or asked is None or peak_precision(ran) == peak_precision(asked):
        return None
    return ConfigFinding(
        "CFG-log-precision",
        "logged_otherwise",
        f"the log prints a configuration in {ran}, this one is in {asked}",
        f"{_place(own)}; {_place(case.run.asked.written)}",
        _OWN,
    )


def unknown_error(case: Case) -> ConfigFinding | None:
    """The log's first error is none that a row explains: it is named, and everything else stands."""
    error = case.run.log.unknown_error if case.run.log else None
    if error is None:
        return None
    named = error.said.get("error", "an exception")
    return ConfigFinding(
        "CFG-log-unknown-error",
        "unexplained",
        f"the first error of the log, {named}, is none that is known here",
        f"line {error.line} of the log",
        "read that line and the traceback above it",
    )


def _logged(run: Run) -> Settings:
    return Settings() if run.log is None else logged_run(run.log, steady_step(run.log))


def _place(settings: Settings) -> str:
    knob = next((knob for knob in _PRECISION if settings.value(knob)), "")
    return f"{knob} in {settings.said(knob)}" if knob else "precision by default"


DETECTORS: Final[tuple[Detector, ...]] = (global_batch, world_size, precision, unknown_error)
