"""The whole of one result: of a trace, of several, or of a configuration judged without one."""

from collections.abc import Mapping
from typing import Literal

from msgspec import UNSET, UnsetType

from heuristics.result.configured import (
    ConfigFinding,
    Configuration,
    Defect,
    Experiments,
    Incident,
    Log,
    Rules,
    Throughput,
    WorkflowStep,
)
from heuristics.result.judged import Choice, Combined, Fix, Refused, Verdict, Wall
from heuristics.result.normal import NormalThroughput
from heuristics.result.tool import SchemaVersion, Tool
from traces.missing import Missing, OrMissing, known
from traces.names.frameworks import Framework
from traces.sections.hang import Hang, Witness
from traces.sections.memory_snapshot import MemorySnapshot
from traces.sections.rank import Rank
from traces.sections.run import Late, RankInRun, Run
from traces.sections.section import Section
from traces.sections.trace import Trace
from traces.sizes.memory import MemoryEstimate
from traces.texts import CommandLine, FileName, Given, Key, Sentences


class Result(Section, kw_only=True):
    """One result, version 1.x of the JSON document: keys may be added, none may change.

    `missing`: every gap, by its path in the document; a parent's entry covers what is under it.
    `about`: the configuration's file, `judged`: whether walls are; both are absent from the result
    of a trace. `run`: what several ranks show together, absent of one rank. `hang`: where the run
    hangs, `witness`: what files beside the recordings hold (`--witness`); both are absent where
    nothing shows any. `memory_snapshot`: of `--memory-snapshot`, absent without. `forced_routing`:
    options, configuration or log say that routing is forced to balance.
    """

    schema_version: SchemaVersion
    tool: Tool
    about: FileName | UnsetType = UNSET
    judged: bool | UnsetType = UNSET
    warnings: Sentences
    missing: tuple[Missing, ...]
    redacted: bool
    command: CommandLine | UnsetType = UNSET
    traces: tuple[Trace, ...]
    ranks: tuple[Rank, ...]
    run: Run | UnsetType = UNSET
    framework: Framework
    verdict: Verdict
    walls: tuple[Wall, ...]
    fixes: tuple[Fix, ...]
    levers: tuple[Fix, ...]
    combined: tuple[Combined, ...] = ()
    refused: tuple[Refused, ...]
    choices: tuple[Choice, ...]
    configuration: OrMissing[Configuration]
    config_findings: tuple[ConfigFinding, ...]
    defects: tuple[Defect, ...] = ()
    incidents: tuple[Incident, ...] | UnsetType = UNSET
    rules: OrMissing[Rules]
    workflow: tuple[WorkflowStep, ...]
    experiments: OrMissing[Experiments]
    memory_estimate: OrMissing[MemoryEstimate]
    throughput: OrMissing[Throughput]
    log: OrMissing[Log]
    given: Mapping[Key, Given]
    forced_routing: bool = False
    normal: OrMissing[NormalThroughput] | UnsetType = UNSET
    hang: Hang | UnsetType = UNSET
    witness: Witness | UnsetType = UNSET
    memory_snapshot: MemorySnapshot | UnsetType = UNSET


class Merged(Section, kw_only=True):
    """What `moe-diag merge` writes, version 1.x: keys may be added, none may change.

    `traces`: of each rank the name of its recording. Where `run` names a place in `ranks[]`, it is
    a place in this list and in `run.ranks`.
    """

    schema_version: SchemaVersion
    kind: Literal["run"]
    tool: Tool
    redacted: Literal[True]
    warnings: Sentences
    missing: tuple[Missing, ...]
    traces: tuple[FileName, ...]
    run: Run
    hang: Hang | UnsetType = UNSET
    witness: Witness | UnsetType = UNSET


def rank_in_run(result: Result, rank: Rank) -> RankInRun | None:
    """What several ranks show of one of them; None where it was recorded alone."""
    ranks, index = () if result.run is UNSET else result.run.ranks, index_of(result, rank)
    return next((entry for entry in ranks if entry.index == index), None)


def late_rank(result: Result) -> Late | None:
    """The rank that the others wait for; None where nobody can tell."""
    if result.run is UNSET:
        return None
    return known(result.run.late)


def index_of(result: Result, rank: Rank) -> int:
    """The place of a rank in its own result."""
    return next(index for index, listed in enumerate(result.ranks) if listed is rank)
