"""Whether recording, log and configuration are of one run, and what a recording is worth.

Dispatches and combines are counted: one of each per MoE layer, microbatch and pass. Backward mirrors forward
(Megatron-Core, megatron/core/transformer/moe/fused_a2a.py); recomputed passes are counted apart, so that
recompute changes nothing here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.config.view import Config
from heuristics.findings.finding import Case, Detector
from heuristics.result.configured import ConfigFinding
from heuristics.run.run import Run
from traces.limits import Limit
from traces.measure.moe.passes import PassCount
from traces.missing import Missing
from traces.sections.rank import UnknownKernel
from traces.settings.effective import effective
from traces.settings.knobs import GLOBAL_BATCH
from traces.settings.precision import configured_precision
from traces.settings.settings import KnobView, Settings
from traces.sizes.layout import layout_of, moe_layers_of_stages
from traces.sizes.model import layers_of
from traces.sizes.peaks import peak_precision
from traces.spelling import chosen, percent
from traces.training_log.iterations import steady_step
from traces.training_log.own_lines import logged_run

Why = Literal["cut", "steps", "other_run"]

_NEEDED: Final = (
    "tensor_model_parallel_size",
    "context_parallel_size",
    "pipeline_model_parallel_size",
    "moe_layer_freq",
    "mtp_num_layers",
)
_SPLIT: Final = (
    "virtual_pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
    "num_layers_in_first_pipeline_stage",
    "num_layers_in_last_pipeline_stage",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)
"""Where no default may stand in: a recipe sets these as well."""
_VARYING: Final = (
    "train.rampup_batch_size",
    "hybrid_context_parallel",
    "num_layers_per_virtual_pipeline_stage",
)
"""With these the microbatches, or the layers of a stage, are not told by the sizes alone."""
_FIXES: Final[dict[Why, str]] = {
    "cut": "record whole steps, or leave out the first and the last with --steps",
    "steps": "name the range of one step with --nvtx; else give the configuration of this run",
    "other_run": "give the configuration of this run, or the recording of this configuration",
}


@dataclass(frozen=True, slots=True)
class Configured:
    """MoE layers that a rank may hold, by stages, and microbatches of a step."""

    layers: tuple[int, ...]
    microbatches: int

    @property
    def passes(self) -> tuple[int, ...]:
        """Passes of a step in each direction, smallest first."""
        return tuple(layers * self.microbatches for layers in self.layers)

    @property
    def work(self) -> str:
        """Layers and microbatches in numbers."""
        return f"MoE layers: {_between(self.layers)}, microbatches: {self.microbatches:,}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A rank's passes of a step, and which explanation fits.

    `near`: what the configuration gives that these are a multiple or a fraction of, 0 where nothing is.
    """

    forward: int
    backward: int
    why: Why
    near: int = 0
    which: Literal["each", "the first", "the last"] = "each"


def layer_passes(case: Case) -> ConfigFinding | None:
    """Another number of dispatches in a step than layers and microbatches give."""
    run = case.run
    expected = configured(run.config)
    if expected is None or run.observed.training is not True:
        return None
    differ = [one for steps in run.observed.moe_passes if (one := difference(steps, expected)) is not None]
    if not differ:
        return None
    one = differ[0]
    return ConfigFinding(
        "CFG-counts-differ",
        "counted_otherwise",
        f"{one.which} step has {one.forward:,} dispatches forward and {one.backward:,} backward, the "
        f"configuration gives {_between(expected.passes)} each ({expected.work}): {_reason(one)}",
        "pairs of dispatch and combine in the used steps; MoE layers and microbatches of the configuration",
        _FIXES[one.why],
    )


def configured(config: Config) -> Configured | None:
    """What the configuration gives; None where anything it hangs on is not certain."""
    settings = config.settings
    model = layers_of(settings)
    layout = model if isinstance(model, Missing) else layout_of(settings, model)
    if isinstance(model, Missing) or isinstance(layout, Missing):
        return None
    if any(config.value(knob) not in (None, False) for knob in _VARYING):
        return None
    if not isinstance(config.value("pipeline_model_parallel_layout"), str | None):
        return None
    needed = (*_NEEDED, *(_SPLIT if layout.pp > 1 else ()))
    if not all(config.known(knob) for knob in needed):
        return None
    layers = tuple(sorted({*moe_layers_of_stages(layout, model)}))
    return Configured(layers, layout.microbatch_count)


def difference(steps: Sequence[PassCount], expected: Configured) -> Difference | None:
    """How a rank's steps differ; None where they fit any stage, or are not alike enough to tell."""
    each = [(one.forward, one.backward) for one in steps]
    fits = [(count, count) for count in expected.passes]
    if len({*each}) == 1:
        return None if each[0] in fits or len({*each[0]}) > 1 else _throughout(each[0][0], expected)
    if _is_cut(each[0], each[1:], fits):
        return Difference(*each[0], "cut", which="the first")
    if _is_cut(each[-1], each[:-1], fits):
        return Difference(*each[-1], "cut", which="the last")
    return None


def _throughout(found: int, expected: Configured) -> Difference:
    """Every step has as many, and no stage has."""
    some = [count for count in expected.passes if count and found]
    near = [count for count in some if found % count == 0 or count % found == 0]
    return Difference(found, found, "steps", near[0]) if near else Difference(found, found, "other_run")


def _is_cut(step: tuple[int, int], rest: Sequence[tuple[int, int]], fits: Sequence[tuple[int, int]]) -> bool:
    """Whether all other steps are as configured, and this one has fewer."""
    whole = rest[0]
    return len({*rest}) == 1 and whole in fits and step[0] <= whole[0] and step[1] <= whole[1]


def _reason(one: Difference) -> str:
    if one.why == "cut":
        return "the other steps agree: the recording is cut"
    if one.why == "other_run":
        return "neither is a multiple of the other: the configuration is that of another run"
    larger = one.forward > one.near
    times = f"{one.forward // one.near} steps" if larger else f"1/{one.near // one.forward} of a step"
    return f"a step here holds {times} of the configuration, or the microbatches differ"


def _between(counts: tuple[int, ...]) -> str:
    return f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"


COUNTED: Final[tuple[Detector, ...]] = (layer_passes,)


_OWN: Final = "the configuration of this run, or the log of this configuration"
_WORLD: Final = "world_size"
_PRECISION: Final = ("mixed_precision", "fp4", "fp8", "bf16", "fp16")


def global_batch(case: Case) -> ConfigFinding | None:
    """Steady steps of another global batch; a batch that grows by plan is no contradiction."""
    said = case.run.asked.written.by_knob.get(GLOBAL_BATCH)
    logged = _logged(case.run).by_knob.get(GLOBAL_BATCH)
    if said is None or logged is None or case.run.asked.written.value("train.rampup_batch_size") is not None:
        return None
    if said.value is None or said.value == logged.value:
        return None
    return ConfigFinding(
        "CFG-log-global-batch",
        "logged_otherwise",
        f"the log's steps have a global batch of {logged.value:,}, the configuration has {said.value:,}; "
        "throughput is counted with the log's",
        f"global batch size in {logged.said}; {GLOBAL_BATCH} in {said.said}",
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


LOGGED: Final[tuple[Detector, ...]] = (global_batch, world_size, precision, unknown_error)


PERTURBED: Final = Limit(
    0.10,
    "of the unprofiled step",
    "ours: as much as a wall; a published pair of 34.60 s profiled against 29.39 s was judged unusable for "
    "absolute times (Megatron-Bridge, evals of skill perf-nsys-analysis)",
)


def perturbed(perturbation_frac: float | None) -> tuple[ConfigFinding, ...]:
    """CAP-1 where the profiled step is longer than the unprofiled one by more than `PERTURBED`."""
    if perturbation_frac is None or perturbation_frac <= PERTURBED.value:
        return ()
    return (
        ConfigFinding(
            "CAP-1",
            "not_representative",
            f"the profiled step is {percent(perturbation_frac)} longer than one without the profiler: shares "
            "and order hold at best, times and gains do not",
            f"median profiled step against the steady step of the log; limit {chosen(PERTURBED.value)}",
            "record again with fewer traced events (-t cuda,nvtx, no sampling) and fewer steps",
        ),
    )


UNKNOWN: Final = Limit(
    0.05, "fraction of the window", "ours: half a wall; what the tool cannot name must not be lost in `other`"
)


def is_finding(kernel: UnknownKernel) -> bool:
    """Whether a kernel is to be named among the findings."""
    return kernel.frac > UNKNOWN.value
