"""What was observed of a run and what was said of it -> judgement: four walls, one verdict, what to
try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import UNSET, structs

from heuristics.config.about import Given
from heuristics.config.given import given_and_configured
from heuristics.config.trust import files_by_trust
from heuristics.config.versions import PACKAGES
from heuristics.evidence.evidence import RunEvidence, observe, with_fit, without_waits
from heuristics.fixes.catalogue import fixes_of
from heuristics.guides.choices import choose_all
from heuristics.plan.combined import Replay, combined_of, replay_here
from heuristics.plan.gains import gains_of
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan, Rejection
from heuristics.result.judged import Choice, Combined, MemoryRoom, Verdict, Wall
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.measurements import RankMeasurements
from traces.missing import Missing, OrMissing, known
from traces.names.frameworks import Framework
from traces.names.kernels import UNNAMED
from traces.sections import run as sections
from traces.sections.section import copied
from traces.settings.settings import PROGRAMS, FileProblem, Settings
from traces.training_log.iterations import perturbation_frac, steady_step
from traces.training_log.log import TrainingLog

if TYPE_CHECKING:
    from heuristics.judging.checked import FromFiles
    from heuristics.plan.allowed import Ask

T = TypeVar("T")
_ROOM: Final[Mapping[bool | None, MemoryRoom]] = {True: "tight", False: "enough", None: "unknown"}


@frozen
class FilesRead:
    """What files say of a run: its configuration with its problems, and the log of its training.

    `versions`: of packages, by name (core, bridge, torch, te), as files tell them.
    """

    settings: Settings = field(default_factory=Settings)
    log: TrainingLog | None = None
    problems: tuple[FileProblem, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> Settings:
        """What the files configure, the configuration before the log."""
        return files_by_trust(self.settings, self.log.settings if self.log else None)

    @property
    def has_files(self) -> bool:
        return bool(self.settings.by_knob or self.problems) or self.log is not None


@frozen
class Judgement:
    """What we make of a run.

    `choices`: what the guides' tables choose, none for a dense model. `run` is what the opinions
    rest on, made of `evidence` and what was said. `from_files`: what files add, None where none
    told of the run. `combined`: what first steps of the plan save together, or why that was not
    replayed.
    """

    evidence: RunEvidence
    walls: tuple[Wall, ...]
    verdict: Verdict
    plan: Plan
    choices: tuple[Choice, ...]
    run: Run
    from_files: FromFiles | None
    combined: tuple[Combined, ...] | Missing

    @property
    def known(self) -> Given:
        """All that is known of the run beside its trace: as given, and as its files configure
        it.
        """
        if self.from_files is None:
            return self.run.given
        return given_and_configured(self.run.given, self.run.config)

    @property
    def forced_routing(self) -> bool:
        return self.run.config.routing == "force_balance"


def judge(
    measurements: Sequence[RankMeasurements],
    given: Given | None = None,
    configured: FilesRead | None = None,
    ask: Ask | None = None,
    together: sections.Run | None = None,
    replay: Replay = replay_here,
) -> Judgement:
    """Judge a run by the measurements of all its ranks (at least one) and what was said of it.

    `together`: what several ranks show together; `replay`: what changes save that are made as one,
    by ranks.
    """
    given, configured = given or Given(), configured or FilesRead()
    log, evidence = configured.log, observe(measurements, together)
    steady = steady_step(log)
    if steady is not None and evidence.step_ns is not None:
        evidence = replace(evidence, perturbation_frac=perturbation_frac(evidence.step_ns, steady))
    evidence = with_fit(evidence, given, log)
    return judge_observed(evidence, given, configured, ask, replay)


def judge_observed(
    evidence: RunEvidence,
    given: Given,
    configured: FilesRead,
    ask: Ask | None = None,
    replay: Replay = replay_here,
) -> Judgement:
    """Judge a run by what was observed of it, in a trace or without one. `ask`: asks Megatron-Core
    itself.
    """
    run = run_of(evidence, given, configured)
    if configured.has_files:
        from heuristics.judging.checked import judge_files

        make = partial(_plan, run, evidence)
        plan, from_files = judge_files(run, evidence, configured.problems, make, ask)
    else:
        plan, from_files = _plan(run, evidence, {}), None
    return Judgement(
        evidence=evidence,
        walls=_with_room(evidence.walls, run),
        verdict=_completed(evidence),
        plan=plan,
        choices=choose_all(run)
        if run.framework == "megatron" and run.observed.moe is not False
        else (),
        run=run,
        from_files=from_files,
        combined=combined_of(plan.fixes, run, evidence.replayed, replay),
    )


def run_of(evidence: RunEvidence, given: Given, configured: FilesRead) -> Run:
    """Everything opinions may rest on, in one place: options, then files, then what was
    observed.
    """
    by_kind, total_ns, total_frac = {}, {}, {}
    for wall in evidence.walls:
        wall = without_waits(wall, evidence.late)
        if (ns := known(wall.cost_ns)) is not None:
            by_kind[wall.id], total_ns[wall.id] = _by_kind(wall, evidence), ns
        if (frac := known(wall.cost_frac)) is not None:
            total_frac[wall.id] = frac
    for package in PACKAGES:
        version = getattr(given, f"{package}_version") or configured.versions.get(package)
        given = replace(given, **{f"{package}_version": version})  # type: ignore[arg-type]
    return copied(
        Run,
        evidence,
        configured,
        given=given,
        cost_by_kind_ns=by_kind,
        total_ns=total_ns,
        does_not_fit=evidence.verdict.does_not_fit,
        total_frac=total_frac,
        settings=configured.files,
        framework=_framework(evidence, given, configured),
    )


def _by_kind(wall: Wall, evidence: RunEvidence) -> dict[str, int]:
    """What each kind of a wall costs that advice may act on: not the shapes of kernels of unknown
    class.
    """
    kinds = dict(wall.cost_by_kind_ns or {})
    if evidence.has_unnamed and UNNAMED.class_ in kinds:
        kinds[UNNAMED.class_] = 0
    return kinds


def _completed(evidence: RunEvidence) -> Verdict:
    """The verdict with where the time goes, and a gap for what a wall that could not be judged
    leaves open.

    No wall is an answer where all were judged. Without a wall it has no kind.
    """
    verdict, bound = evidence.verdict, evidence.bound
    cure = next(filter(None, (wall.cure for wall in evidence.walls)), None)
    no_budget = Missing("", say("walls.no-budget"), say("walls.give-symptoms"))
    bucket, part = evidence.largest or (no_budget, no_budget)

    def open_(value: OrMissing[T], reason: str) -> OrMissing[T]:
        if value is None and cure:
            return Missing("", reason, cure)
        return value

    return structs.replace(
        verdict,
        wall=open_(verdict.wall, verdict.because[0]),
        kind=open_(verdict.kind, "not split") if known(verdict.wall) else verdict.kind,
        runner_up=open_(verdict.runner_up, say("walls.no-runner-up")),
        confidence=open_(verdict.confidence, verdict.because[0]),
        because=(*verdict.because, bound.because),
        bound=bound.bucket or Missing("", bound.because, bound.cure),
        largest_bucket=bucket,
        largest_bucket_frac=part,
        startup_ns=evidence.startup.ns if evidence.startup else 0,
    )


def _with_room(walls: Sequence[Wall], run: Run) -> tuple[Wall, ...]:
    """Walls with whether the run has memory left; where nothing else bounds a cost it is the most
    itself.
    """
    room = _ROOM[run.tells("memory_short")]
    return tuple(
        structs.replace(
            wall,
            at_most_frac=wall.cost_frac if wall.at_most_frac is None else wall.at_most_frac,
            room=room if wall.id == "memory" else UNSET,
        )
        for wall in walls
    )


def _framework(evidence: RunEvidence, given: Given, configured: FilesRead) -> Framework:
    """Whose settings a plan may name; symptoms without a trace are Megatron's."""
    if configured.settings.framework in PROGRAMS:
        return "pytorch"
    if configured.has_files or given.core_version or given.bridge_version:
        return "megatron"
    return evidence.observed.framework or "megatron"


def _plan(run: Run, evidence: RunEvidence, rejected: Mapping[str, Rejection]) -> Plan:
    walls, verdict = evidence.walls, evidence.verdict
    findings = [wall for wall in walls if wall.outcome == "finding"]
    findings.sort(key=lambda wall: (wall.id != verdict.wall, -(wall.cost_ns or 0)))
    trains = run.observed.training is not False  # most fixes are Megatron's, and act on training
    fixes = fixes_of(run.framework)
    catalogue = {number: fix for number, fix in fixes.items() if trains or fix.any_program}
    levers = evidence.unproven if trains else {}
    gains = gains_of(evidence.replayed)
    return make_plan(run, [wall.id for wall in findings], catalogue, levers, gains, rejected)
