"""A run's configuration and log, judged: is it legal, does it do what it asks for, what does it
hold.

Rules, contradictions, failures of the log, the workflow rule by rule, memory and throughput in
numbers; with Megatron-Core asked, room in memory and experiments. Loads the rules of all releases,
the workflow and the estimates, which a recording alone does not need.
"""

from collections.abc import Callable, Mapping
from operator import mul
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from heuristics.comparison.files.normal import held_against, normal_throughput
from heuristics.config.given import entries_of
from heuristics.evidence.evidence import RunEvidence
from heuristics.findings.contradictions import find_contradictions
from heuristics.findings.defects import defects_of
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.guides.memory_use import estimated
from heuristics.guides.mfu_bands import mfu_band
from heuristics.incidents.incident import incidents_of
from heuristics.plan.allowed import OWN, Ask, plan_asked
from heuristics.plan.planned import Plan, Rejection
from heuristics.plan.refusals import rooms_of
from heuristics.result.configured import (
    BrokenRule,
    ConfigFinding,
    Defect,
    Experiments,
    GroupedSpeed,
    Incident,
    Rules,
    SetAt,
    Throughput,
    WorkflowStep,
)
from heuristics.result.judged import Room
from heuristics.result.normal import NormalThroughput
from heuristics.rules.check import check_rules, undecided
from heuristics.rules.failures import Failure, explain_failures
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.rules import Rule, rules
from heuristics.run.run import Run
from heuristics.words import say
from heuristics.workflow.experiments import plan_of_experiments
from heuristics.workflow.walk import walk
from traces.frozen import frozen
from traces.missing import Missing, OrMissing, known, of_known
from traces.sections.section import copied
from traces.settings.settings import FileProblem, Values
from traces.settings.trainers import program_name
from traces.sizes.memory import MemoryEstimate, calibrated
from traces.sizes.peaks import Peak
from traces.sizes.references import nearest, nearest_references
from traces.sizes.throughput import grouped_flops_per_step, throughput
from traces.spelling import counted
from traces.training_log.iterations import FIRST, SteadyStep, steady_step
from traces.training_log.memory import peak_memory
from traces.training_log.own_lines import logged_run

_NOT_RUNNING: Final = ("requested_not_active", "rejected", "overwritten", "inert")


@frozen
class FromFiles:
    """What files add to a judgement: sections of its result.

    `legal`: nothing refuses it; Missing where too little was read to say so. `answers`:
    Megatron-Core's own by fix id, and on the configuration at `OWN`; empty where it was not asked.
    `findings`: contradictions first, then what failures of the log mean; `defects`: what these and
    the rules tell, each once; `incidents`: what is published of such runs. `steady`: the step
    without the profiler. `memory`, `throughput`: Missing names the knobs or the step time that they
    need. `rooms`: whether a fix's change fits the memory, by fix id.
    """

    legal: OrMissing[bool]
    answers: Mapping[str, tuple[Answer, ...]]
    problems: tuple[FileProblem, ...]
    findings: tuple[ConfigFinding, ...]
    defects: tuple[Defect, ...]
    incidents: tuple[Incident, ...]
    rules: Rules
    workflow: tuple[WorkflowStep, ...]
    steady: SteadyStep | None
    memory: MemoryEstimate | Missing
    throughput: OrMissing[Throughput]
    normal: OrMissing[NormalThroughput]
    experiments: Experiments
    rooms: Mapping[str, Room]

    @property
    def own_answers(self) -> tuple[Answer, ...]:
        return self.answers.get(OWN, ())


def judge_files(
    run: Run,
    evidence: RunEvidence,
    problems: tuple[FileProblem, ...],
    make: Callable[[Mapping[str, Rejection]], Plan],
    ask: Ask | None,
) -> tuple[Plan, FromFiles]:
    """A plan that files of a run allow, and what else they tell.

    `make` makes a plan without what is rejected; `ask` asks Megatron-Core itself.
    """
    of_megatron = run.framework == "megatron"  # its rules and its workflow are of no other program
    # a file is as legal beside a trace as alone
    failures = explain_failures(run)
    written = run.as_written
    broken = check_rules(written) if of_megatron else ()
    findings = find_contradictions(run, failures, problems, evidence.perturbation_frac)
    waits = dict[str, Rejection]()
    for finding in findings:
        for fix in CATALOGUE.values() if finding.state in _NOT_RUNNING else ():
            if finding.id in fix.waits_for:
                why = say("findings.comes-first", id=finding.id, text=finding.text)
                waits[fix.id] = Rejection(why, finding.evidence)
    planned = plan_asked(run, lambda rejected: make({**waits, **rejected}), ask)
    own, steady = planned.answers.get(OWN, ()), steady_step(run.log)
    refused = (
        any(rule.level == "error" for rule in broken)
        or any(answer.answer == "rejected" for answer in own)
        or any(entry.state == "illegal" for entry in findings)
    )
    published = incidents_of(run, tuple(failure.id for failure in failures if failure.proven))
    better = dict[str, str]()
    for incident in published:
        if incident.state != "possible" and not incident.only_if:
            better |= dict.fromkeys(incident.explains, incident.id)
    failures_kept = tuple(failure for failure in failures if failure.id not in better)
    kept = tuple(entry for entry in findings if entry.id not in better)
    defects = defects_of(run, broken, kept, failures_kept, own)
    rates, told_by = _throughput(run, steady, evidence), {**better}
    for defect in reversed(defects):
        told_by |= dict.fromkeys((defect.id, *defect.of), defect.id)
    followed, unclear = (walk(run, refused), undecided(written)) if of_megatron else ((), ())
    return planned.plan, FromFiles(
        legal=_legal(run, problems, refused),
        answers=planned.answers,
        problems=problems,
        findings=(
            *(replace(entry, same_as=_teller(told_by, entry.id)) for entry in findings),
            *(_failure(failure, told_by, broken, better) for failure in failures),
        ),
        defects=tuple(replace(entry, set=_written(entry.set)) for entry in defects),
        incidents=tuple(replace(entry, set=_written(entry.set)) for entry in published),
        rules=Rules(
            _broken(run, broken, told_by),
            tuple(
                rule for rule in unclear if not told_by.keys() & {rule.id, *rules()[rule.id].same}
            ),
        ),
        workflow=tuple(
            replace(step, same_as=told_by.get(step.id, "")) if step.state == "violated" else step
            for step in followed
        ),
        steady=steady,
        memory=_memory(run),
        throughput=rates,
        normal=_normal(run, rates),
        experiments=plan_of_experiments(run, planned.plan),
        rooms=rooms_of(run, planned.plan),
    )


def _legal(run: Run, problems: tuple[FileProblem, ...], refused: bool) -> OrMissing[bool]:
    """That nothing refuses it is said of what was read: a Megatron's, and more of it than was
    not.
    """
    read, unread = entries_of(run.settings, problems)
    if program := program_name(run.settings.framework or ""):
        why = say("findings.of-program", program=program, read=counted(read, "setting"))
    elif refused:
        return False
    elif run.log and not (read or unread or run.window_ns):
        why = say("findings.log-alone")
    elif unread and unread >= read:
        why = say("findings.hardly-read", read=read, unread=unread)
    else:
        return True
    return Missing("", why, say("findings.give-megatron"))


def _written(values: Values) -> Values:
    """Settings of a document, in which "null" is null."""
    return {knob: "null" if value is None else value for knob, value in values.items()}


def _teller(told_by: Mapping[str, str], id: str) -> str:
    """The entry of the defects that tells it, where that is another's."""
    entry = told_by.get(id, "")
    if entry == id:
        return ""
    return entry


def _failure(
    row: Failure, told_by: Mapping[str, str], broken: tuple[Rule, ...], better: Mapping[str, str]
) -> ConfigFinding:
    where = say("findings.line", number=row.line) if row.line else "the configuration"
    same_as = told_by.get(row.id, "")
    return copied(
        ConfigFinding,
        row,
        evidence=say("findings.to-confirm", where=where, confirm=row.confirm, source=row.source),
        fix=f"{row.fix}: {row.cure}" if row.fix else row.cure,
        same_as=same_as if any(rule.id == same_as for rule in broken) or row.id in better else "",
    )


def _broken(
    run: Run, broken: tuple[Rule, ...], told_by: Mapping[str, str]
) -> tuple[BrokenRule, ...]:
    by_knob, rules_broken = run.config.written.by_knob, []
    for rule in broken:
        seen = tuple(SetAt(knob, by_knob[knob].said) for knob in rule.knobs if knob in by_knob)
        rules_broken.append(copied(BrokenRule, rule, seen=seen, same_as=_teller(told_by, rule.id)))
    return tuple(rules_broken)


def _throughput(
    run: Run, steady: SteadyStep | None, evidence: RunEvidence
) -> OrMissing[Throughput]:
    """Rates by the log's steady step, else by a measured one; published rows of the model beside
    them.
    """
    settings, config = run.config.settings, run.config
    length_ns = steady.median_ns if steady else evidence.step_ns or _step_by_tokens(run)
    if length_ns is None:
        count = len(run.log.iterations) if run.log else 0
        unsteady = say("findings.none-steady", count=f"{count:,}", first=f"{FIRST.value:.0f}")
        reason = unsteady if count else say("findings.no-step-time")
        how = say("findings.longer-log") if count else say("findings.give-log")
        return Missing("throughput", reason, how)
    logged = logged_run(run.log, steady) if run.log else None
    rates = throughput(settings, length_ns, run.gpu, run.tells("precision_taken"), logged)
    if isinstance(rates, Missing):
        return rates
    rows = nearest_references(settings, run.gpu, run.precision)
    tokens, mfu, no_peak = rates.tokens_per_s_per_gpu, rates.mfu_frac, _no_peak(run)
    return Throughput(
        step_ns=length_ns,
        tokens_per_s_per_gpu=tokens,
        model_tflops_per_gpu=rates.model_tflops_per_gpu,
        mfu_frac=no_peak if mfu is None else mfu,
        peak=rates.peak or no_peak,
        source=say("findings.by-steady-step" if steady else "findings.by-profiled-step"),
        references=rows,
        nearest=nearest(rows[0], tokens, settings, run.gpu, run.precision) if rows else None,
        mfu_band=(None if mfu is None else mfu_band(mfu, config.family, config.gpu, run.precision))
        or UNSET,
        grouped_gemm=_grouped(run, evidence.grouped_step_ns, rates.peak) or UNSET,
    )


def _step_by_tokens(run: Run) -> int | None:
    """The step whose tokens, by batch and sequence, go at the rate that the log prints."""
    tokens = of_known(mul, run.config.global_batch, run.config.positive("seq_length"))
    *_, rate = (run.log.figures if run.log else {}).get("tokens_per_s", (0.0,))
    return round(tokens / rate * 1e9) if tokens and rate else None


def _grouped(run: Run, step_ns: int | None, peak: Peak | None) -> GroupedSpeed | None:
    """How fast grouped GEMMs ran, where the configuration says what they did; None also above the
    peak.
    """
    flop = grouped_flops_per_step(run.config.settings)
    if not flop or not step_ns:
        return None
    tflops = flop / step_ns / 1e3
    if peak is not None and tflops > peak.tflops:  # the recording is of another configuration
        return None
    return GroupedSpeed(
        round(flop), step_ns, tflops, tflops / peak.tflops if peak else _no_peak(run)
    )


def _no_peak(run: Run) -> Missing:
    """Its cure names only the options that are missing."""
    missing = []
    if run.gpu is None:
        missing.append("--gpu-model")
    if run.tells("precision_taken") is None:
        missing.append("--precision")
    cure = ", ".join(missing) or say("findings.unlisted-peak")
    return Missing("", say("findings.unknown-peak"), cure)


def _normal(run: Run, rates: OrMissing[Throughput]) -> OrMissing[NormalThroughput]:
    """What is normal for such a run, with what was measured, and its replay without the largest
    wall.
    """
    measured = known(rates)
    removable = max(run.total_frac.values(), default=None) if run.window_ns else None
    return held_against(
        normal_throughput(run), measured.tokens_per_s_per_gpu if measured else None, removable
    )


def _memory(run: Run) -> MemoryEstimate | Missing:
    """The estimate, calibrated by the peak of the log, else of what was recorded or given."""
    estimate, other = estimated(run), run.active.peak_bytes
    peak = of_known(peak_memory, run.log)
    if isinstance(estimate, Missing):
        return estimate
    if peak is not None and peak.allocated_bytes is not None:
        return calibrated(estimate, peak.allocated_bytes)
    if other is None:
        return estimate
    return calibrated(estimate, other, say("findings.other-peak"))
