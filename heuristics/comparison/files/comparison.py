"""Two sides -> a comparison of their configurations and logs: alike, real, what differs, what
explains it.

The one entry. The size comes from the logs alone: without both the comparison is undecided, and
says what would decide. What a known change explains is read from its measurements elsewhere
(explain.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log
from typing import Any, Final

from msgspec.structs import replace

from heuristics.comparison.comparable import (
    held_to,
    held_together,
    in_order,
    table,
    text_of,
    values_of,
)
from heuristics.comparison.difference.rows import FEW
from heuristics.comparison.difference.subject import differing
from heuristics.comparison.files.differences import differences, said_of, versions_of
from heuristics.comparison.files.explain import (
    Made,
    Observed,
    SideName,
    Size,
    explain,
    made_changes,
    together,
)
from heuristics.comparison.files.logs import compared_lengths, section
from heuristics.comparison.files.side import FileSide
from heuristics.comparison.gate import Asked, gate_of
from heuristics.comparison.size import Beside, about, judge, size_of
from heuristics.result.compared import ComparedSize, Difference
from heuristics.result.compared_files import (
    ComparedFiles,
    DriftOf,
    EffectiveChange,
    FilesLog,
    FilesSide,
)
from heuristics.result.tool import SCHEMA_VERSION, tool_of
from heuristics.words import lacking, say
from traces.missing import known, of_known, or_gap
from traces.sections.section import copied
from traces.settings.derive import DEFAULT
from traces.spelling import duration, percent, signed
from traces.statistics.drift import BLOCKS
from traces.statistics.interval import LEAST, MANY, interval_of

_NO_LOG: Final = lacking("files.no-log")
_NO_SIZE: Final = lacking("files.no-size", least=f"{MANY.value:.0f}")
_NO_CONFIGURATION: Final = lacking("files.no-configuration")
_RISES: Final = {"rising": 1, "falling": -1, "none": 0}
_SIDES: Final[tuple[SideName, SideName]] = ("base", "new")

Sides = tuple[FileSide, FileSide]
Logs = tuple[FilesLog | None, FilesLog | None]


def compare_files(base: FileSide, new: FileSide, gate: Asked | None = None) -> ComparedFiles:
    """Compare two sides, each with a configuration or a log. Swapped sides give the mirrored
    answer.

    Who asked fills in the version of the tool, warnings and the command.
    """
    logs = of_known(section, base.log), of_known(section, new.log)
    changed = differences(base, new)
    made = made_changes(base.against(new), new.against(base), changed)
    size = _measured(base, new, logs)
    comparable = in_order(_differences((base, new), made, logs))
    observed = _observed(size, logs)
    told, lacking = list(_moving(logs)), _unmeasured(logs, changed, (base, new))
    decides, cure = size, say("files.record-logs", least=f"{MANY.value:.0f}")
    # what a run does that ends is no step to hold another against
    if "out_of_memory" in observed.moved:
        decides, cure = None, say("files.record-memory")
        lacking = iter([say("files.out-of-memory", side=observed.moved["out_of_memory"])])
    judged = judge(
        decides, comparable, Beside(told, lacking, cure, _longer, say("files.other-runs"))
    )
    compared = copied(
        ComparedFiles,
        judged,
        schema_version=SCHEMA_VERSION,
        tool=tool_of(base.given.guidance, new.given.guidance),
        kind="files_comparison",
        warnings=(),
        missing=(),
        redacted=True,
        comparable=comparable,
        base=_side(base, logs[0], new),
        new=_side(new, logs[1], base),
        size=_NO_SIZE,
        step_delta_ns=_NO_SIZE,
        step_delta_frac=_NO_SIZE,
        step_delta_ci95_ns=_NO_SIZE,
        changed=changed,
        explanations=explain(made, observed),
        together=together(made, observed),
        gate=gate and gate_of(decides, judged, gate),
    )
    if size is None:
        return compared
    return replace(
        compared,
        size=size,
        step_delta_ns=size.delta_ns,
        step_delta_frac=size.delta_frac,
        step_delta_ci95_ns=size.ends_ns or FEW,
    )


def _longer(count: int) -> str:
    return say("files.record-longer", count=about(count))


def _side(side: FileSide, log_: FilesLog | None, other: FileSide) -> FilesSide:
    sources = [setting.said for setting in side.against(other).settings.by_knob.values()]
    if not side.has_configuration:
        sources = []
    return copied(
        FilesSide,
        side,
        framework=or_gap(side.run.config.settings.framework, _NO_CONFIGURATION),
        gpu=or_gap(side.run.gpu, lacking("files.no-gpu")),
        versions=dict(versions_of(side)),
        settings_count=len(sources),
        defaults_count=sources.count(DEFAULT),
        problems_count=side.problems,
        log=or_gap(log_, _NO_LOG),
    )


# The size, by the logs.


def _drift(log_: FilesLog | None) -> DriftOf | None:
    if log_ is None:
        return None
    return known(log_.drift)


def _measured(base: FileSide, new: FileSide, logs: Logs) -> ComparedSize | None:
    """How much longer the new step is; None where one log has no steady iteration."""
    if base.log is None or new.log is None:
        return None
    base_ns, new_ns = compared_lengths(base.log, new.log, drifts=any(map(_rise, logs)))
    if not base_ns or not new_ns:
        return None
    return size_of(
        "log", base_ns, new_ns, (len(base_ns), len(new_ns)), interval_of(base_ns, new_ns)
    )


def _observed(size: ComparedSize | None, logs: Logs) -> Size:
    """What there is to explain, as ratios."""
    ratio = memory = None
    if size is not None and size.base_mean_ns > 0:
        low, high = size.ends_ns or (size.delta_ns, size.delta_ns)
        ratio = _ratio(size, size.delta_ns), _ratio(size, low), _ratio(size, high)
    before, after = map(_peak, logs)
    if before and after:
        memory = after / before
    moved = dict[Observed, SideName]()
    figures: dict[Observed, Callable[[FilesLog | None], int | None]] = {
        "drift": _rise,
        "out_of_memory": lambda log_: log_ is not None and log_.out_of_memory > 0,
    }
    for what, figure in figures.items():
        if pair := differing(*map(figure, logs)):
            moved[what] = _SIDES[pair[1] > pair[0]]
    return Size(ratio, memory, moved)


def _ratio(size: ComparedSize, delta_ns: int) -> float:
    return log(max(size.base_mean_ns + delta_ns, 1) / size.base_mean_ns)


def _rise(log_: FilesLog | None) -> int | None:
    drift = _drift(log_)
    if drift is None:
        return None
    return _RISES[drift.state]


def _peak(log_: FilesLog | None) -> int | None:
    """The peak that was allocated, else the most of any figure."""
    if log_ is None:
        return None
    sizes = {memory.figure: memory.most_bytes for memory in log_.memory}
    return sizes.get("peak_allocated") or max(sizes.values(), default=None)


# May they be compared: by the rows of comparable.toml that ask a configuration, and by what the
# logs print.


def _differences(sides: Sides, made: Sequence[Made], logs: Logs) -> Iterator[Difference]:
    """A change that is known may be compared: what it does is what is asked."""
    if batches := differing(*map(_batch, logs)):
        because, source = text_of("other-work"), text_of("tokens")
        base_batch, new_batch = f"{batches[0]:,}", f"{batches[1]:,}"
        yield Difference("global batch size", base_batch, new_batch, "no", because, source)
    base, new = sides
    if gpus := differing(base.run.gpu, new.run.gpu):
        yield Difference("GPU", *gpus, "no", text_of("other-machine"))
    if not (base.has_configuration and new.has_configuration):
        return
    mine, theirs = said_of(base), said_of(new)
    differ, alike = held_together(mine, theirs)
    questioned = set[str]()
    for change in made:
        questioned.update(change.knobs)
    for rule in table().configured:
        keys = differ[rule.what]
        if values := values_of(rule, keys, _shown(base, mine, keys), _shown(new, theirs, keys)):
            yield held_to(rule, values, alike, is_asked=questioned.issuperset(keys))


def _shown(side: FileSide, values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: side.shown(key, values[key]) for key in keys}


def _batch(log_: FilesLog | None) -> int | None:
    if log_ is None:
        return None
    return known(log_.global_batch_size)


# What is said beside the verdict.


def _unmeasured(logs: Logs, changed: Sequence[EffectiveChange], sides: Sides) -> Iterator[str]:
    """Why no step decides, and where the configurations say nothing either, so."""
    base, new = logs
    if base is not None and new is not None:
        yield say(
            "files.few-logged", base=base.steady_count, new=new.steady_count, least=f"{LEAST}"
        )
    elif base is None and new is None:
        yield say("files.no-logs")
    else:
        yield say("files.one-log", side=_SIDES[base is None])
    both_configured = sides[0].has_configuration and sides[1].has_configuration
    if both_configured and not any(change.effect == "may" for change in changed):
        yield say("files.same-settings")


def _moving(logs: Logs) -> Iterator[str]:
    """Logs that drift say so before their mean is read as a step."""
    for side, log_ in zip(_SIDES, logs, strict=True):
        drift = _drift(log_)
        if log_ is not None and drift is not None and drift.state != "none":
            yield _drifting(side, log_, drift)
    if any(map(_rise, logs)) and all(logs):
        yield say("files.drift-differs", side="a log")


def _drifting(side: str, log_: FilesLog, drift: DriftOf) -> str:
    first = duration(drift.first)
    last = duration(drift.last)
    part = signed(percent(drift.change_frac))
    if drift.jump_at is not None:
        at = f"{drift.jump_at:,}"
        return say("files.drifts-jump", side=side, at=at, first=first, last=last, part=part)
    return say(
        "files.drifts",
        side=side,
        first=first,
        last=last,
        part=part,
        start=f"{known(log_.first_iteration):,}",
        end=f"{known(log_.last_iteration):,}",
        blocks=min(drift.count, BLOCKS.whole),
        chance=percent(drift.chance),
    )
