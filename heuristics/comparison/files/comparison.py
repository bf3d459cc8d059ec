"""Two sides -> a comparison of their configurations and logs: alike, real, what differs, what explains it.

The one entry. The size comes from the logs alone: without both the comparison is undecided, and says what
would decide. What a known change explains is read from its measurements elsewhere (explain.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import Final, Literal

from heuristics.comparison.comparable import held_together, table, text_of
from heuristics.comparison.difference.rows import FEW
from heuristics.comparison.files.differences import differences, said_of, versions_of
from heuristics.comparison.files.explain import Made, Observed, Size, explain, made_changes, together
from heuristics.comparison.files.logs import compared_lengths, section
from heuristics.comparison.files.side import FileSide
from heuristics.comparison.gate import Asked, answered
from heuristics.comparison.size import Judged, about, furthest, judge_gate, needed, size_of
from heuristics.result.compared import Comparable, ComparedSize, Difference, Ends
from heuristics.result.compared_files import ComparedFiles, DriftOf, EffectiveChange, FilesLog, FilesSide
from heuristics.result.gate import Gate
from heuristics.result.tool import SCHEMA_VERSION, Tool
from heuristics.words import say
from traces.limits import LITTLE
from traces.missing import gap, known, or_gap
from traces.sections.section import copied
from traces.settings.derive import DEFAULT
from traces.settings.spelling import spelled
from traces.spelling import chosen, duration, percent, signed
from traces.statistics.drift import BLOCKS
from traces.statistics.interval import LEAST, MANY, interval_of

_NO_LOG: Final = gap(say("files.no-log"), say("files.no-log-cure"))
_NO_SIZE: Final = gap(say("files.no-size"), say("files.no-size-cure", least=f"{MANY.value:.0f}"))
_NO_GPU: Final = gap(say("files.no-gpu"), say("files.no-gpu-cure"))
_NO_CONFIGURATION: Final = gap(say("files.no-configuration"), say("files.no-configuration-cure"))
_STATES: Final = {"rising": 1, "falling": -1, "none": 0}
_SIDES: Final = ("base", "new")


def compare_files(base: FileSide, new: FileSide, gate: Asked | None = None) -> ComparedFiles:
    """Compare two sides, each with a configuration or a log. Swapped sides give the mirrored answer.

    Who asked fills in the version of the tool, warnings and the command.
    """
    logs = tuple(section(side.log) if side.log else None for side in (base, new))
    changed = differences(base, new)
    made = made_changes(base.against(new), new.against(base), changed)
    size = _measured(base, new, logs)
    comparable = _comparable(base, new, made, logs)
    observed = _observed(size, logs)
    judged = _judged(size, comparable, logs, _unmeasured(logs, changed, (base, new)))
    guides = base.given.guidance, new.given.guidance
    return copied(
        ComparedFiles,
        judged,
        schema_version=SCHEMA_VERSION,
        tool=Tool("moe-diag", "", guides[0] if guides[0] == guides[1] else None),
        kind="files_comparison",
        warnings=(),
        missing=(),
        redacted=True,
        comparable=comparable,
        base=_side(base, logs[0], new),
        new=_side(new, logs[1], base),
        size=size or _NO_SIZE,
        step_delta_ns=size.delta_ns if size else _NO_SIZE,
        step_delta_frac=size.delta_frac if size else _NO_SIZE,
        step_delta_ci95_ns=(size.ends_ns or FEW) if size else _NO_SIZE,
        changed=changed,
        explanations=explain(made, observed),
        together=together(made, observed),
        gate=None if gate is None else answered(_gate(size, judged, gate.limit_frac), judged, gate),
    )


def _side(side: FileSide, log_: FilesLog | None, other: FileSide) -> FilesSide:
    said = side.against(other).settings.by_knob if side.has_configuration else {}
    framework = side.run.config.settings.framework
    return copied(
        FilesSide,
        side,
        framework=or_gap(framework, _NO_CONFIGURATION),
        gpu=or_gap(side.run.gpu, _NO_GPU),
        versions=dict(versions_of(side)),
        settings_count=len(said),
        defaults_count=sum(one.said == DEFAULT for one in said.values()),
        problems_count=side.problems,
        log=log_ or _NO_LOG,
    )


# The size, by the logs.


def _measured(base: FileSide, new: FileSide, logs: Sequence[FilesLog | None]) -> ComparedSize | None:
    """How much longer the new step is; None where one log has no steady iteration."""
    if base.log is None or new.log is None:
        return None
    drifts = any(drift.state != "none" for one in logs if one and (drift := known(one.drift)))
    lengths = compared_lengths(base.log, new.log, drifts)
    if not all(lengths):
        return None
    return size_of("log", lengths, (len(lengths[0]), len(lengths[1])), interval_of(*lengths))


def _observed(size: ComparedSize | None, logs: Sequence[FilesLog | None]) -> Size:
    """What there is to explain, as ratios."""
    ratio = None
    if size is not None and size.base_mean_ns > 0:
        ends = size.ends_ns or (size.delta_ns, size.delta_ns)
        least = 1 - size.base_mean_ns  # a new step of one ns
        ratio = _logs([size.delta_ns, *ends], size.base_mean_ns, least)
    peaks = [_peak(one) for one in logs]
    memory = peaks[1] / peaks[0] if peaks[0] and peaks[1] else None
    moved: dict[Observed, Literal["base", "new"]] = {}
    drifts = [_STATES[drift.state] if one and (drift := known(one.drift)) else None for one in logs]
    if drifts[0] is not None and drifts[1] is not None and drifts[0] != drifts[1]:
        moved["drift"] = "new" if drifts[1] > drifts[0] else "base"
    lost = [bool(one and one.out_of_memory) for one in logs]
    if lost[0] != lost[1]:
        moved["out_of_memory"] = "new" if lost[1] else "base"
    return Size(ratio, memory, moved)


def _logs(deltas_ns: Sequence[int], base_ns: int, least: int) -> tuple[float, float, float]:
    one, low, high = (log((base_ns + max(delta, least)) / base_ns) for delta in deltas_ns)
    return one, low, high


def _peak(one: FilesLog | None) -> int | None:
    """The peak that was allocated, else the most of any figure."""
    sizes = {each.figure: each.most_bytes for each in one.memory} if one else {}
    return sizes.get("peak_allocated") or max(sizes.values(), default=None)


# May they be compared.


def _comparable(
    base: FileSide, new: FileSide, made: Sequence[Made], logs: Sequence[FilesLog | None]
) -> Comparable:
    """By the rows of comparable.toml that ask a configuration, and by what the logs print."""
    known_knobs = {knob for one in made for knob in one.knobs}
    found = [*_of_logs(logs), *_of_machines(base, new)]
    if base.has_configuration and new.has_configuration:
        found += _of_configurations((base, new), known_knobs)
    found.sort(key=lambda one: one.state != "no")
    state = found[0].state if found else "yes"
    return Comparable(state, tuple(found))


def _of_configurations(sides: tuple[FileSide, FileSide], known_knobs: set[str]) -> Iterator[Difference]:
    """What both configure otherwise. A known change may be compared: what it does is what is asked."""
    base, new = map(said_of, sides)
    differ, alike = held_together(base, new)
    for rule in table().configured:
        if not (keys := differ[rule.what]):
            continue
        settled = bool(rule.settled_by) and alike.issuperset(rule.settled_by)
        state = "with_differences" if settled or {*keys} <= known_knobs else rule.state
        because = rule.settled if settled else rule.because
        one, other = (
            ", ".join(f"{key} {spelled(side.shown(key, said[key]))}" for key in keys)
            for side, said in zip(sides, (base, new), strict=True)
        )
        yield Difference(rule.what, one, other, state, text_of(because), text_of(rule.source))


def _of_machines(base: FileSide, new: FileSide) -> Iterator[Difference]:
    gpus = base.run.gpu, new.run.gpu
    if gpus[0] is not None and gpus[1] is not None and gpus[0] != gpus[1]:
        yield Difference("GPU", gpus[0], gpus[1], "no", text_of("other-machine"))


def _of_logs(logs: Sequence[FilesLog | None]) -> Iterator[Difference]:
    sizes = [known(one.global_batch_size) if one else None for one in logs]
    if None not in sizes and sizes[0] != sizes[1]:
        yield Difference(
            "global batch size",
            f"{sizes[0]:,}",
            f"{sizes[1]:,}",
            "no",
            text_of("other-work"),
            text_of("tokens"),
        )


# The verdict.


def _judged(
    size: ComparedSize | None,
    comparable: Comparable,
    logs: Sequence[FilesLog | None],
    unmeasured: Iterable[str],
) -> Judged:
    """The verdict; `unmeasured`: why there is none, where no step was measured."""
    moving = tuple(_moving(logs))
    if comparable.state == "no":
        no = [one for one in comparable.differences if one.state == "no"]
        because = (say("files.not-alike", what=one.what, because=one.because) for one in no)
        return Judged("not_comparable", (*because, *moving), "")
    lost = [bool(one and one.out_of_memory) for one in logs]
    if lost[0] != lost[1]:
        out = say("files.out-of-memory", side=_SIDES[lost[1]])
        return Judged("undecided", (out, *moving), say("files.record-memory"))
    if size is None or (ends := size.ends_ns) is None:
        record = say("files.record-logs", least=f"{MANY.value:.0f}")
        return Judged("undecided", (*unmeasured, *moving), record)
    if ends[0] <= 0 <= ends[1]:
        return _around_zero(size, ends, moving)
    way = "above" if ends[0] > 0 else "below"
    verdict: Literal["regression", "improvement"] = "regression" if ends[0] > 0 else "improvement"
    other = say("files.other-runs")
    return Judged(verdict, (say("files.certain", way=way), *moving, other), "")


def _unmeasured(
    logs: Sequence[FilesLog | None], changed: Sequence[EffectiveChange], sides: Sequence[FileSide]
) -> Iterator[str]:
    """Why no step decides, and where the configurations say nothing either, so."""
    there = [one is not None for one in logs]
    if all(there):
        counts = [one.steady_count if one else 0 for one in logs]
        yield say("files.few-logged", base=counts[0], new=counts[1], least=f"{LEAST}")
    elif any(there):
        yield say("files.one-log", side=_SIDES[there[1]])
    else:
        yield say("files.no-logs")
    both = all(side.has_configuration for side in sides)
    if both and not any(one.effect == "may" for one in changed):
        yield say("files.same-settings")


def _around_zero(size: ComparedSize, ends: Ends, moving: tuple[str, ...]) -> Judged:
    """By the lengths of a log's iterations, as `size.py` has it of recorded steps."""
    furthest_frac = furthest(size, ends)
    told = percent(furthest_frac)
    if furthest_frac <= LITTLE.value:
        return Judged("no_change", (say("files.holds-zero", furthest=told), *moving), "")
    record = say("files.record-longer", count=f"{about(needed(size, ends))} iterations")
    return Judged("undecided", (say("files.holds-zero-wide", furthest=told), *moving), record)


def _moving(logs: Sequence[FilesLog | None]) -> Iterator[str]:
    """Logs that drift say so before their mean is read as a step."""
    moving = 0
    for side, one in zip(_SIDES, logs, strict=True):
        drift = known(one.drift) if one else None
        if one is None or drift is None or drift.state == "none":
            continue
        moving += 1
        yield _drift(side, one, drift)
    if moving and all(logs):
        yield say("files.drift-differs", side="a log")


def _drift(side: str, one: FilesLog, drift: DriftOf) -> str:
    first, last, part = duration(drift.first), duration(drift.last), signed(percent(drift.change_frac))
    if drift.jump_at is not None:
        return say("files.drifts-jump", side=side, at=f"{drift.jump_at:,}", first=first, last=last, part=part)
    return say(
        "files.drifts",
        side=side,
        first=first,
        last=last,
        part=part,
        start=f"{known(one.first_iteration):,}",
        end=f"{known(one.last_iteration):,}",
        blocks=min(drift.count, int(BLOCKS.value)),
        chance=percent(drift.chance),
    )


def _gate(size: ComparedSize | None, judged: Judged, limit_frac: float) -> Gate:
    if size is None:
        return Gate(limit_frac, "undecided", say("files.gate-no-logs", limit=chosen(limit_frac)))
    if judged.verdict == "undecided":
        return Gate(limit_frac, "undecided", judged.because[0])
    return judge_gate(size, judged, limit_frac)
