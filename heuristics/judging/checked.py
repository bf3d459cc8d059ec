"""A run's configuration and log, judged: is it legal, does it do what it asks for, what does it hold.

Rules, contradictions, failures of the log, the workflow rule by rule, memory and throughput in numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.findings.capture import perturbed
from heuristics.findings.contradictions import find_contradictions
from heuristics.findings.defects import defects_of
from heuristics.findings.finding import ConfigFinding
from heuristics.guides.memory_use import estimated
from heuristics.plan.planned import Rejection
from heuristics.result.configured import Defect
from heuristics.rules.check import Broken, Undecided, check_rules, undecided
from heuristics.rules.failures.explain import explain_failures
from heuristics.rules.failures.failure import Failure
from heuristics.rules.megatron.answer import Answer
from heuristics.run.run import Run
from heuristics.workflow.rule import Step
from heuristics.workflow.walk import walk
from traces.missing import Missing
from traces.settings.configuration import Problem
from traces.sizes.memory import MemoryEstimate, calibrated
from traces.sizes.references import Nearest, Reference, nearest, nearest_references
from traces.sizes.throughput import Throughput, throughput
from traces.training_log.own_lines import logged_run
from traces.training_log.peak import peak_memory
from traces.training_log.steady import FIRST, SteadyStep, steady_step

UNTUNABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "CFG-flex-type": ("COM-2", "COM-3", "COM-12", "MEM-5"),
    "CFG-dispatcher-not-active": ("COM-2", "COM-3", "COM-12", "MEM-5"),
    "CFG-dispatcher-gpu": ("COM-3", "COM-12"),
    "CFG-graphs-not-replayed": ("HST-3", "HST-7", "HST-8"),
    "CFG-ep-overlap-not-active": ("COM-1", "COM-9", "COM-15", "MEM-12"),
    "CFG-dp-overlap-not-active": ("COM-4",),
    "CFG-precision": ("CMP-3", "MEM-4", "CMP-7"),
    "CFG-grouped-gemm": ("CMP-1",),
    "CFG-permute-fusion": ("CMP-2",),
    "CFG-offload-not-active": ("MEM-6",),
    "CFG-expandable-segments": ("MEM-1",),
}
"""Finding -> fixes that would set, tune or replace what is configured and does not run: that comes first."""
_NOT_RUNNING: Final = ("requested_not_active", "rejected", "overwritten", "inert")


@dataclass(frozen=True, slots=True)
class Checked:
    """What is made of a configuration.

    `broken`, `undecided`: rules of the run's versions. `answers`: Megatron-Core's own on the configuration,
    empty where it was not asked. `defects`: what these, the findings and the failures tell, each once.
    `steady`: the step without the profiler. `memory` and `throughput`: Missing names the knobs or the step
    time they need.
    """

    broken: tuple[Broken, ...]
    undecided: tuple[Undecided, ...]
    answers: tuple[Answer, ...]
    findings: tuple[ConfigFinding, ...]
    failures: tuple[Failure, ...]
    problems: tuple[Problem, ...]
    defects: tuple[Defect, ...]
    steps: tuple[Step, ...]
    steady: SteadyStep | None
    memory: MemoryEstimate | Missing
    throughput: Throughput | Missing
    references: tuple[Reference, ...]
    nearest: Nearest | None

    @property
    def legal(self) -> bool:
        """Whether nothing refuses the configuration."""
        return not _refused(self.broken, self.answers, self.findings)


@dataclass(frozen=True, slots=True)
class Contradicted:
    """What the raw run contradicts: findings and the failures of its log."""

    findings: tuple[ConfigFinding, ...]
    failures: tuple[Failure, ...]

    @property
    def untunable(self) -> dict[str, Rejection]:
        """Fixes that wait until what was asked for runs."""
        return {
            fix: Rejection(f"this comes first ({one.id}): {one.text}", one.evidence)
            for one in self.findings
            if one.state in _NOT_RUNNING
            for fix in UNTUNABLE.get(one.id, ())
        }


def contradicted(run: Run, problems: tuple[Problem, ...], perturbation_frac: float | None) -> Contradicted:
    """Where configuration, log and trace disagree. `run`: settings as written, shown by the trace alone."""
    failures = explain_failures(run)
    findings = (*find_contradictions(run, failures, problems), *perturbed(perturbation_frac))
    return Contradicted(findings, failures)


def check(
    run: Run,
    disagrees: Contradicted,
    problems: tuple[Problem, ...],
    answers: tuple[Answer, ...],
    step_ns: int | None,
) -> Checked:
    """Judge a configuration. `step_ns`: a measured step, for throughput where the log tells none."""
    steady = steady_step(run.log) if run.log else None
    length_ns = steady.median_ns if steady else step_ns
    logged = logged_run(run.log, steady) if run.log else None
    settings = run.config.settings
    broken = check_rules(run)
    rates = (
        _no_step(run)
        if length_ns is None
        else throughput(settings, length_ns, run.gpu, run.precision, logged)
    )
    rows = nearest_references(settings, run.gpu, run.precision)
    defects = defects_of(run, broken, disagrees.findings, disagrees.failures, answers)
    told = {id for one in defects for id in one.of}
    return Checked(
        broken=broken,
        defects=defects,
        undecided=tuple(one for one in undecided(run) if not told & {one.rule.id, *one.rule.same}),
        answers=answers,
        findings=disagrees.findings,
        failures=disagrees.failures,
        problems=problems,
        steps=walk(run, refused=_refused(broken, answers, disagrees.findings)),
        steady=steady,
        memory=_memory(run),
        throughput=rates,
        references=rows,
        nearest=nearest(rows[0], rates.tokens_per_s_per_gpu, settings, run.gpu, run.precision)
        if rows and not isinstance(rates, Missing)
        else None,
    )


def _no_step(run: Run) -> Missing:
    """Why no step time is known: no log, or one that ends before its steps are steady."""
    count = len(run.log.iterations) if run.log else 0
    if not count:
        return Missing("throughput", "no step time is known", "give --log, or analyze a trace with steps")
    reason = f"none of the {count:,} logged iterations is steady: the first {FIRST.value:.0f} warm up"
    return Missing("throughput", reason, "the log of a longer run, or analyze a trace with steps")


def _refused(
    broken: tuple[Broken, ...], answers: tuple[Answer, ...], findings: tuple[ConfigFinding, ...]
) -> bool:
    """Whether a rule, Megatron-Core itself or a finding says that the framework stops at it."""
    return (
        any(one.level == "error" for one in broken)
        or any(one.answer == "rejected" for one in answers)
        or any(one.state == "illegal" for one in findings)
    )


def _memory(run: Run) -> MemoryEstimate | Missing:
    """The estimate, calibrated by the peak of the log, else of what was recorded or given."""
    found = estimated(run)
    peak = peak_memory(run.log) if run.log else None
    if isinstance(found, Missing):
        return found
    if peak is not None and peak.allocated_bytes is not None:
        return calibrated(found, peak.allocated_bytes)
    other = run.active.peak_bytes
    return found if other is None else calibrated(found, other, "the recorded or given peak")
