"""The whole result of a run: of traces, or of a configuration judged without one."""

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from heuristics.judging.judgement import Judgement
from heuristics.plugins import problems
from heuristics.result.result import Result
from heuristics.result.texts import AnyStruct
from heuristics.result.tool import SCHEMA_VERSION, Tool
from heuristics.run.repairs import advised
from reports.result.fill.configured import NOT_GIVEN, configuration, log, memory_estimate
from reports.result.fill.plan import fixes, refused
from reports.result.fill.rank import notes, rank
from reports.result.fill.shown import given
from reports.result.fill.told import with_public_names
from reports.result.fill.trace import ReadTrace, trace
from reports.rows import each
from traces.cures import cures
from traces.measurements import RankMeasurements
from traces.missing import Missing, known
from traces.names.frameworks import Framework
from traces.patterns import compiled
from traces.sections.hang import Hang, Witness
from traces.sections.memory_snapshot import MemorySnapshot
from traces.sections.run import Run
from traces.sections.section import copied
from traces.spelling import in_ms, percent
from traces.witness.watchdog import hang_of_log

_NO_FILES: Final = SimpleNamespace(
    workflow=(), rules=NOT_GIVEN, experiments=NOT_GIVEN, throughput=NOT_GIVEN, findings=()
)
_COSTS: Final = ("cost_ns", "cost_frac", "cost_by_kind_ns", "at_most_frac")
_OPEN: Final = ("wall", "kind", "bound", "runner_up", "confidence", "next_wall", "next_wall_frac")
_PLAIN: Final = frozenset({int, float, str, bool})
"""Types of what holds no gap: columns of a timeline are long."""
_FLAG: Final = compiled(r" \(Megatron-LM: [^)]*\)")


def result_of_run(
    version: str,
    judgement: Judgement,
    *,
    traces: Sequence[ReadTrace] = (),
    ranks: Sequence[RankMeasurements] = (),
    run: Run | UnsetType = UNSET,
    about: str | UnsetType = UNSET,
    judged: bool | UnsetType = UNSET,
    warnings: Sequence[str] = (),
    missing: Sequence[Missing] = (),
    redact: bool = True,
    command: str | UnsetType = UNSET,
    hang: Hang | None = None,
    witness: Witness | UnsetType = UNSET,
    memory_snapshot: MemorySnapshot | UnsetType = UNSET,
) -> Result:
    """The result. `about`: the configuration's file where there is no trace, `judged`: its walls
    are.

    `missing`: what the recordings hide, beside the gaps of single values; `redact`: texts of the
    configuration are withheld where they could be a path or a name. `hang`: that of a second
    witness; without one, that of the log.
    """
    if not hang and judgement.run.log:
        hang = hang_of_log(judgement.run.log)
    seen, plan, files = judged is not False, judgement.plan, judgement.from_files or _NO_FILES
    open_gaps = list[Missing]()
    for place, measured in enumerate(ranks):
        open_gaps += notes(place, measured)
    if isinstance(judgement.combined, Missing):
        open_gaps.append(judgement.combined)
    result = _plain(
        copied(
            Result,
            judgement,
            files,
            schema_version=SCHEMA_VERSION,
            tool=Tool("moe-diag", version, judgement.run.config.guidance),
            about=about,
            judged=judged,
            warnings=(*_startup(traces, judgement), *warnings, *problems()),
            missing=(*open_gaps, *missing),
            redacted=redact,
            command=command,
            traces=tuple(trace(read, judgement.evidence.perturbation_frac) for read in traces),
            ranks=tuple(rank(rank_read, judgement.run.observed.ep_overlap) for rank_read in ranks),
            run=run,
            framework=judgement.run.framework,
            verdict=_said(judgement.verdict, _OPEN, seen),
            walls=tuple(_said(wall, _COSTS, seen) for wall in judgement.walls),
            fixes=fixes(judgement, plan.fixes),
            levers=fixes(judgement, plan.levers),
            combined=judgement.combined or (),
            refused=refused(judgement),
            configuration=configuration(judgement, redact),
            config_findings=files.findings,
            memory_estimate=memory_estimate(judgement),
            log=log(judgement),
            given=given(judgement.known, redact),
            hang=UNSET if hang is None else advised(hang),
            witness=witness,
            memory_snapshot=memory_snapshot,
        ),
        judgement.run.framework,
    )
    return with_public_names(result, redact, each(traces, "info"))


def _said(section: AnyStruct, names: Iterable[str], judged: bool) -> AnyStruct:
    """A section of what was judged; where nothing was said of a run, that is why these fields are
    unknown.
    """
    if judged:
        return section
    gap = Missing("", "no symptoms were given", "give symptoms (--symptoms), or analyze a trace")
    gaps = {name: gap for name in names if known(getattr(section, name)) is None}
    return replace(section, **gaps)


def _startup(traces: Sequence[ReadTrace], judgement: Judgement) -> list[str]:
    """A recording that is mostly of the profiler or of start-up says so before all else."""
    if not (startup := judgement.evidence.startup):
        return []
    note = "Walls are judged on the rest. "
    if startup.leaves_too_little:
        note = "Hardly anything else was recorded. "
    held = f"{in_ms(startup.ns)} ({percent(startup.frac)} of the windows)"
    return [
        "not a steady-state recording: the profiler and start-up (loading modules, initialising "
        f"libraries) held the GPU back for {held}. {note}{cures(traces[0].info.kind)['startup']}"
    ]


def _plain(result: Result, framework: Framework) -> Result:
    """With gaps that name no place but their own, and no flag of Megatron's where the run is not
    its.
    """

    def cure(missing: Missing) -> str:
        if framework == "megatron":
            return missing.cure
        return _FLAG.sub("", missing.cure)

    def without_places(value: Any) -> Any:
        if isinstance(value, Missing):
            return Missing("", value.reason, cure(value))
        if isinstance(value, Struct):
            changed = {}
            for name in value.__struct_fields__:
                old = getattr(value, name)
                if (new := without_places(old)) is not old:
                    changed[name] = new
            if changed:
                return replace(value, **changed)
            return value
        if isinstance(value, Mapping):
            if {*map(type, value.values())} <= _PLAIN:
                return value
            return dict(zip(value, map(without_places, value.values()), strict=True))
        if isinstance(value, tuple) and not {*map(type, value)} <= _PLAIN:
            return tuple(map(without_places, value))
        return value

    notes = tuple(
        Missing(missing.path, missing.reason, cure(missing)) for missing in result.missing
    )
    whole: Result = without_places(result)
    return replace(whole, missing=notes)
