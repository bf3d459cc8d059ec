"""The whole result of a run: of traces, or of a configuration judged without one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr

from heuristics.judging.judgement import Judgement
from heuristics.plugins import problems
from heuristics.result.result import Result
from heuristics.result.tool import SCHEMA_VERSION, Tool
from reports.result.fill import configured
from reports.result.fill.judged import verdict, walls
from reports.result.fill.log import log
from reports.result.fill.plan import choices, fixes, refused
from reports.result.fill.rank import notes, rank
from reports.result.fill.shown import given
from reports.result.fill.trace import ReadTrace, trace
from traces.cures import cures
from traces.measure.measurements import RankMeasurements
from traces.missing import Missing
from traces.names.frameworks import Framework
from traces.sections.run import Run
from traces.spelling import in_ms, percent

_FLAG: Final = re.compile(r" \(Megatron-LM: [^)]*\)")


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
) -> Result:
    """The result. `about`: the configuration's file where there is no trace, `judged`: its walls are.

    `missing`: what the recordings hide, beside the gaps of single values; `redact`: texts of the
    configuration are withheld where they could be a path or a name.
    """
    seen, plan = judged is not False, judgement.plan
    left = [note for place, one in enumerate(ranks) for note in notes(place, one)]
    if judgement.not_combined is not None:
        left.append(judgement.not_combined)
    return _plain(
        Result(
            schema_version=SCHEMA_VERSION,
            tool=Tool("moe-diag", version, judgement.guidance),
            about=about,
            judged=judged,
            warnings=(*_startup(traces, judgement), *warnings, *problems()),
            missing=(*left, *missing),
            redacted=redact,
            command=command,
            traces=tuple(trace(one, judgement.perturbation_frac) for one in traces),
            ranks=tuple(rank(one, judgement.run.observed.ep_overlap) for one in ranks),
            run=run,
            framework=judgement.run.framework,
            verdict=verdict(judgement, seen),
            walls=walls(judgement, seen),
            fixes=fixes(judgement, plan.fixes),
            levers=fixes(judgement, plan.levers),
            combined=judgement.combined,
            refused=refused(judgement),
            choices=choices(judgement),
            configuration=configured.configuration(judgement, redact),
            config_findings=configured.findings(judgement),
            defects=configured.defects(judgement),
            rules=configured.rules(judgement),
            workflow=configured.workflow(judgement),
            experiments=configured.experiments(judgement),
            memory_estimate=configured.memory_estimate(judgement),
            throughput=configured.throughput(judgement),
            log=log(judgement),
            given=given(judgement.known, redact),
            forced_routing=judgement.forced_routing,
        ),
        judgement.run.framework,
    )


def _startup(traces: Sequence[ReadTrace], judgement: Judgement) -> list[str]:
    """A recording that is mostly of the profiler or of start-up says so before all else."""
    if (startup := judgement.startup) is None:
        return []
    rest = (
        "Hardly anything else was recorded. " if startup.is_nearly_all else "Walls are judged on the rest. "
    )
    held = f"{in_ms(startup.ns)} ({percent(startup.frac)} of the windows)"
    return [
        "not a steady-state recording: the profiler and start-up (loading modules, initialising libraries) "
        f"held the GPU back for {held}. {rest}{cures(traces[0].info.kind)['startup']}"
    ]


def _plain(result: Result, framework: Framework) -> Result:
    """With gaps that name no place but their own, and no flag of Megatron's where the run is not its."""

    def told(one: Missing, path: str) -> Missing:
        cure = one.cure if framework == "megatron" else _FLAG.sub("", one.cure)
        return Missing(path, one.reason, cure)

    def walk(value: Any) -> Any:
        if isinstance(value, Missing):
            return told(value, "")
        if isinstance(value, Struct):
            for name in value.__struct_fields__:
                before = getattr(value, name)
                if (after := walk(before)) is not before:
                    force_setattr(value, name, after)
        elif isinstance(value, Mapping):
            for one in value.values():
                walk(one)
        elif isinstance(value, tuple) and any(
            issubclass(one, Struct | Missing) for one in {*map(type, value)}
        ):
            return tuple(walk(one) for one in value)
        return value

    notes = tuple(told(one, one.path) for one in result.missing)
    force_setattr(result, "missing", ())
    walk(result)
    force_setattr(result, "missing", notes)
    return result
