"""What files say of a run: `configuration`, `memory_estimate`, and `log`."""

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from heuristics.judging.judgement import Judgement
from heuristics.result import configured as typed
from heuristics.result.judged import Checked as CheckedEntry
from reports.result.fill.plan import GIVE
from reports.result.fill.shown import is_withheld, shown
from reports.rows import each
from traces.limits import Limit
from traces.missing import Missing, OrMissing, gap, or_gap
from traces.sections.section import copied
from traces.sizes.memory import MemoryEstimate
from traces.training_log.memory import peak_memory
from traces.training_log.own_lines import overlaps_on

if TYPE_CHECKING:  # loaded with a configuration only
    from heuristics.run.run import Run

NOT_GIVEN: Final = gap("no configuration was given", GIVE)
STEADY_SHOWN: Final = Limit(
    2000,
    "iterations",
    "ours: the last ones, as two runs are compared by hundreds, and a file one can open",
)


def configuration(judgement: Judgement, redact: bool) -> OrMissing[typed.Configuration]:
    """The configuration as it was understood. `redact`: texts that may be a path or a name are
    withheld.
    """
    if not judgement.from_files:
        return NOT_GIVEN
    checked, settings, listed = judgement.from_files, judgement.run.config.written, []
    for knob, setting in sorted(settings.by_knob.items()):
        value = shown(knob, setting.value, redact)
        listed.append(typed.Setting(knob, value, setting.said, is_withheld(setting.value, value)))
    return typed.Configuration(
        framework=or_gap(
            settings.framework, gap("no file shows the framework of this spelling", GIVE)
        ),
        legal=checked.legal,
        versions=_versions(judgement.run),
        settings=tuple(listed),
        problems=msgspec.convert(checked.problems, tuple[typed.Problem, ...], from_attributes=True),
        checked=tuple(map(partial(copied, CheckedEntry), checked.own_answers)),
    )


def _versions(run: "Run") -> typed.Versions:
    def version(name: Literal["core", "bridge", "torch", "te"]) -> str | Missing:
        return or_gap(run.config.version_text(name), gap("it is not given", f"--{name}-version"))

    return typed.Versions(version("core"), version("bridge"), version("torch"), version("te"))


def memory_estimate(judgement: Judgement) -> OrMissing[MemoryEstimate]:
    """Memory of the fullest rank by part."""
    if judgement.from_files:
        return judgement.from_files.memory
    return NOT_GIVEN


def log(judgement: Judgement) -> OrMissing[typed.Log]:
    """The log, its steady iterations and its peak of memory."""
    if not judgement.from_files:
        return NOT_GIVEN
    run_log, steady = judgement.run.log, judgement.from_files.steady
    if not run_log:
        return gap("no training log was given", "give the training log: --log FILE")
    peak = peak_memory(run_log)
    last = (steady.with_far_above if steady else ())[-STEADY_SHOWN.whole :]
    unsteady = gap("it holds no steady iterations", "give a longer log")
    unnumbered = gap("it numbers no iterations", "give a longer log")
    unreported = gap(
        "no report of memory in it has that",
        "give the log from its start, where trainers report it",
    )
    return copied(
        typed.Log,
        run_log,
        iteration_count=len(run_log.iterations),
        last_iteration=run_log.iterations[-1].index if run_log.iterations else unnumbered,
        planned_iterations=or_gap(run_log.planned_iterations, unnumbered),
        steady_count=steady.count if steady else 0,
        left_out=steady.left_out_by_reason if steady else {},
        steady_step_ns=or_gap(steady and steady.median_ns, unsteady),
        iterations_ns=tuple(each(last, "length_ns")),
        spread_ns=or_gap(steady and steady.spread_ns, unsteady),
        peak_allocated_bytes=or_gap(peak and peak.allocated_bytes, unreported),
        peak_reserved_bytes=or_gap(peak and peak.reserved_bytes, unreported),
        skipped_lines=run_log.skipped,
        overlaps_on=overlaps_on(run_log),
    )
