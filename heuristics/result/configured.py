"""What files say of a run: configuration, findings, rules, workflow, memory, throughput, log."""

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, UnsetType

from heuristics.result.judged import Checked
from traces.missing import OrMissing
from traces.sections.section import Bytes, Count, Ns, Section
from traces.settings.settings import Framework, ProblemEffect
from traces.sizes.peaks import Peak
from traces.sizes.references import Nearest, Reference
from traces.texts import FileName, Given, GivenText, Key, Keys, Place, Release, Said, Sentences

FindingState = Literal[
    "requested_not_active",
    "rejected",
    "overwritten",
    "inert",
    "active_not_requested",
    "default_left_off",
    "misspelled",
    "illegal",
    "not_representative",
    "logged_otherwise",
    "counted_otherwise",
    "drifting",
    "unexplained",
    "does_not_fit",
    "may_not_fit",
    "ineffective",
]
"""Asked for and not running; refused or skipped by the framework; another setting wins; has no
effect as it stands; runs unasked; left off by default where it would help; a name nobody reads;
refused as a whole; recorded otherwise than it runs; the log says another value; the trace counts
otherwise; steps get longer and longer; an error that no row explains; the estimate of memory is
more than the GPU has, by more than its error or by less."""
FailureState = Literal["rejected", "failed", "hung", "skipped", "ineffective"]
"""Rejected: refused before the first step. Skipped: asked for, and left off with a word or without
one. Ineffective: on, or thought to be, without the effect."""
IncidentState = Literal["seen", "met", "possible"]
"""A line of the log shows it; the run is as it asks for; nothing known speaks against it."""
IncidentKind = Literal["hangs", "fails", "memory", "wrong", "slow"]
"""What it does to a run: it hangs, stops, runs out of memory, computes something wrong, or takes
longer."""
RuleLevel = Literal["error", "warning", "ignored"]
"""`ignored`: the framework changes the setting, or drops it, without an error."""
WorkflowPhase = Literal["fit", "scale", "folding", "prerequisites", "profile"]
RuleState = Literal["met", "violated", "unknown", "not_applicable"]
Band = Literal["below", "untuned", "between", "tuned", "above"]
"""Where a guide places an MFU."""
DefectKind = Literal["rejected", "fails", "not_as_written", "found", "warned", "no_effect"]
"""Refused by the framework; what was asked for is not what runs; another contradiction or failure;
allowed with a warning; a setting that does nothing. Heaviest first."""


class Versions(Section):
    """Of packages, as options and files say them."""

    core: OrMissing[Release]
    bridge: OrMissing[Release]
    torch: OrMissing[Release]
    te: OrMissing[Release]


class Setting(Section):
    """One knob. `withheld`: the value is a text that is not shown, as it may be a path or a
    name.
    """

    knob: Key
    value: Given
    said: Place
    withheld: bool


class Problem(Section):
    """Something in the file that was not taken as it stands."""

    where: Place
    text: Said
    instead: Said
    effect: ProblemEffect = "unread"


class Configuration(Section):
    """The configuration as it was understood. `legal`: Missing where too little of the file was
    read.
    """

    framework: OrMissing[Framework]
    legal: OrMissing[bool]
    versions: Versions
    settings: tuple[Setting, ...]
    problems: tuple[Problem, ...]
    checked: tuple[Checked, ...]


class ConfigFinding(Section):
    """A contradiction, or a failure of the log with its cause and cure. `same_as`: the rule that
    tells it.
    """

    id: Key
    state: FindingState | FailureState
    text: Said
    evidence: Said
    fix: Said
    same_as: Key = ""


class Sighting(Section):
    """Where a defect was seen.

    `what` and `where`: a setting and where it was set, an id and the line of the log, the evidence,
    or the answer of Megatron-Core and what was asked.
    """

    source: Literal["configuration", "log", "evidence", "megatron_core"]
    what: Said
    where: Place


class Defect(Section):
    """One defect, once. `id`: what `explain` takes. `fix`: the catalogue's id, `CFG-n` or `ENV-n`.

    `cost`: what it leads to. `since` and `until`: the first release with the rule, and the first
    without. `set`: settings that correct it, where their values do not depend on the run; "null" in
    a document is null. `also`: what the same cure corrects. `of`: ids of rules, findings, failures
    and steps of the workflow that tell the same.
    """

    id: Key
    kind: DefectKind
    what: Said
    cure: Said
    fix: Key
    cost: Said
    since: Said
    until: Said
    set: Mapping[Key, Given]
    seen: tuple[Sighting, ...]
    also: Sentences
    of: Keys

    def tells(self, id: str) -> bool:
        """Whether it is the entry of a rule, a finding, a failure or a step."""
        return id == self.id or id in self.of


class Incident(Section):
    """A published hang, crash, regression or wrong result, as far as this run has it.

    `state`: a line of the log shows it; the run is as it asks for; or all known fits and `only_if`
    is open. `what`: what happens and why; `cure`: what helps, `set` settings that do, `fix` the
    catalogue's id. `releases`: affected ones by package. `seen`: lines, versions and settings that
    fit. `explains`: ids of findings that it tells better.
    """

    id: Key
    state: IncidentState
    kind: IncidentKind
    what: Said
    cure: Said
    fix: Key
    set: Mapping[Key, Given]
    releases: Sentences
    gpus: Keys
    only_if: Sentences
    seen: tuple[Sighting, ...]
    source: Said
    explains: Keys = ()


class SetAt(Section):
    """Where a knob was set: `run.yaml:12`, an option, `default`."""

    knob: Key
    said: Place


class BrokenRule(Section):
    """A rule of these versions that the configuration breaks. `same_as`: the finding that tells it
    better.
    """

    id: Key
    level: RuleLevel
    text: Said
    cure: Said
    fix: Key
    source: Said
    seen: tuple[SetAt, ...] = ()
    same_as: Key = ""


class UndecidedRule(Section):
    """A rule that needs to know more. `broken_by_default`: it is broken where all it asks is off.

    `waits_for`: options of the machine and its packages that decide it, where all else it asks is
    off.
    """

    id: Key
    text: Said
    asks: Sentences
    broken_by_default: bool
    waits_for: Sentences = ()


class Rules(Section):
    """What the framework's versions reject, warn of or ignore."""

    broken: tuple[BrokenRule, ...]
    undecided: tuple[UndecidedRule, ...]


class WorkflowStep(Section):
    """One rule of NVIDIA's workflow for MoE. `same_as`: the broken rule or finding that tells the
    same.

    `guide_only`: a guide asks for it: a run in state `violated` differs from it, and is as legal.
    """

    id: Key
    phase: WorkflowPhase
    title: Said
    seed: Said
    state: RuleState
    because: Said
    advice: Said
    fix: Key
    tells: Said
    same_as: Key = ""
    guide_only: bool = False


class Experiment(Section):
    """One run to make. `fix`: the catalogue's id, empty for the baseline and the whole winner.

    `variable`: all that changes; `holds`: what stays as it is. `measure`: what to note, over
    `step_count` unprofiled steps. `next`: what comes after it.
    """

    title: Said
    fix: Key
    variable: Said
    holds: Sentences
    measure: Sentences
    step_count: Count
    next: Said


class Experiments(Section):
    """`first`: the baseline and the first change; `then`: the verdict's wall; `later`: the rest."""

    first: tuple[Experiment, ...]
    then: tuple[Experiment, ...]
    later: tuple[Experiment, ...]


class GroupedSpeed(Section):
    """The experts' grouped GEMMs of one GPU in a mean step: FLOP by the configuration, time as
    recorded.

    Tokens are taken to be spread evenly, and what is recomputed is counted. `peak_frac`: of the
    dense peak in the run's precision.
    """

    flop: Count
    work_ns: Ns
    tflops_per_s: float
    peak_frac: OrMissing[float]
    shapes_from: Literal["configuration"] = "configuration"


class Throughput(Section):
    """Rates of one GPU, and published rows of the same model beside them, the nearest first.

    `nearest`: how far the first of them is, None where the model has none. `mfu_band`: where the
    guide places the MFU of DeepSeek-V3 on GB200 or GB300, the one shape it speaks of; left out for
    others. `grouped_gemm`: left out where the configuration or the recording does not tell it.
    """

    step_ns: Ns
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu_frac: OrMissing[float]
    peak: OrMissing[Peak]
    source: Said
    references: tuple[Reference, ...]
    nearest: Nearest | None = None
    mfu_band: Band | UnsetType = UNSET
    grouped_gemm: GroupedSpeed | UnsetType = UNSET


class Log(Section):
    """What the training log tells. `iterations_ns`: its last steady ones, as two runs are compared.

    `overlaps_on`: overlaps that a line says are set up, by knob, each with its line. `figures`: the
    first and the last that its lines of steps print.
    """

    name: FileName
    line_count: Count
    iteration_count: Count
    last_iteration: OrMissing[Count]
    planned_iterations: OrMissing[Count]
    steady_count: Count
    left_out: Mapping[Key, Count]
    steady_step_ns: OrMissing[Ns]
    iterations_ns: tuple[Ns, ...]
    spread_ns: OrMissing[Ns]
    peak_allocated_bytes: OrMissing[Bytes]
    peak_reserved_bytes: OrMissing[Bytes]
    skipped_lines: tuple[Count, ...]
    versions: Mapping[Key, GivenText]
    overlaps_on: Mapping[Key, Count]
    figures: Mapping[Key, tuple[float, float]] | UnsetType = UNSET
