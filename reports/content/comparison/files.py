"""The page of two runs compared by configurations and logs: how much, what differs, what explains it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from heuristics.result.compared import ComparedSize
from heuristics.result.compared_files import (
    ComparedFiles,
    DriftOf,
    EffectiveChange,
    FilesLog,
    FilesSide,
    MeasuredElsewhere,
)
from reports.content.blocks import (
    Block,
    Code,
    Command,
    Detail,
    Headline,
    Items,
    Page,
    Part,
    Sentence,
    Tone,
    Words,
    items,
    table,
    words,
)
from reports.content.comparison.causes import limit
from reports.content.comparison.changed import plainly
from reports.content.comparison.difference import LABELS, both
from reports.content.names import codes, ended, sentence
from reports.redaction import redaction_words
from traces.missing import OrMissing, known
from traces.spelling import between, chosen, counted, duration, gigabytes, percent, rounded, signed

_CHANGED: Final = 8
_EXPLAINED: Final = 2
_WIDTH: Final = 44
_WHOLE: Final = 300
_BEFORE: Final[dict[str, str]] = {
    "covers": "LIKELY CAUSE",
    "direction": "POSSIBLE CAUSE",
    "open": "CAN CHANGE IT",
    "against": "OTHER WAY",
}
_FIGURES: Final = {
    "allocated": "memory allocated",
    "peak_allocated": "peak memory allocated",
    "reserved": "memory reserved",
    "peak_reserved": "peak memory reserved",
}
_LEFT_OUT: Final = {
    "first": "first ones",
    "graph_warm_up": "warm-up of CUDA graphs",
    "graph_capture": "capture of CUDA graphs",
    "profiled": "under the profiler",
    "checkpoint": "with a checkpoint",
    "far_above": "far above the rest",
}


def page(compared: ComparedFiles, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every difference, explanation and measurement."""
    everything = detail is Detail.FULL
    title = words(Code(compared.base.name), " -> ", Code(compared.new.name))
    blocks: list[Block] = [
        _headline(compared),
        *_limits(compared, everything),
        *_logs(compared),
        *_explanations(compared, everything),
        *_changed(compared, everything),
        *_closing(compared),
    ]
    if everything:
        blocks.append(Part("What was measured elsewhere", tuple(_measured(compared)), "measured"))
        blocks.append(Sentence(words(redaction_words(compared.redacted))))
    more = "" if everything else "--full: every difference and measurement | page: -o out.html"
    return Page(title, _facts(compared), tuple(blocks), detail, more)


def _facts(compared: ComparedFiles) -> Words:
    sides = compared.base, compared.new
    pairs = (
        tuple(known(side.gpu) or "" for side in sides),
        tuple(_release(side) for side in sides),
        tuple(_settings(side) for side in sides),
    )
    told = (both(*pair) for pair in pairs if any(pair))
    return words("; ".join(("configurations and logs, without a trace", *told)))


def _release(side: FilesSide) -> str:
    core = side.versions.get("core")
    return f"Megatron-Core {core}" if core else ""


def _settings(side: FilesSide) -> str:
    if not side.settings_count:
        return "no configuration"
    said = counted(side.settings_count, "setting")
    legal = "" if side.legal is not False else ", NOT LEGAL"
    return f"{said}, {side.defaults_count:,} of them defaults{legal}"


def _headline(compared: ComparedFiles) -> Headline:
    label, tone = LABELS[compared.verdict]
    said, under, figure, amount = sentence(compared.because[0]), compared.because[1:], "", ""
    if (size := known(compared.size)) is not None:
        said, under = _rests_on(compared, size), compared.because
        figure, amount = signed(percent(size.delta_frac)), f"{_delta(size.delta_ns)} per step"
    if compared.gate is not None:
        under = (
            *under,
            f"gate of {chosen(compared.gate.limit_frac)} {compared.gate.state}: {compared.gate.because}",
        )
    return Headline(label, words(said), tone, tuple(words(sentence(one)) for one in under), figure, amount)


def _rests_on(compared: ComparedFiles, size: ComparedSize) -> str:
    if compared.verdict == "not_comparable":
        return "not judged, as the runs are not comparable."
    count = counted(size.base_count, "iteration")
    if size.base_count != size.new_count:
        count = f"{size.base_count:,} and {size.new_count:,} iterations"
    level = known(size.level_frac)
    ends = size.ends_ns
    interval = "no interval"
    if ends and level is not None:
        interval = f"{chosen(level)} interval {_delta(ends[0])} to {_delta(ends[1])}"
    return f"{interval}, {count} of the logs a side."


def _delta(delta_ns: int) -> str:
    return signed(duration(delta_ns)) if delta_ns >= 0 else f"-{duration(-delta_ns)}"


def _limits(compared: ComparedFiles, everything: bool) -> Iterator[Block]:
    found = compared.comparable.differences
    forbids = [one for one in found if one.state == "no"]
    shown = [*forbids, *(one for one in found if one.state != "no")] if everything else forbids
    if shown:
        title = "Why not comparable" if forbids else "Limits of this comparison"
        yield Items(tuple(map(limit, shown)), title)


def _logs(compared: ComparedFiles) -> Iterator[Block]:
    sides = known(compared.base.log), known(compared.new.log)
    told = [(name, *("" if log is None else of(log) for log in sides)) for name, of in _FIGURES_OF_A_LOG]
    if rows := [row for row in told if any(row[1:])]:
        yield table("What the logs hold", ("", "base", "new"), rows)


def _time(value: OrMissing[int]) -> str:
    length = known(value)
    return "" if length is None else duration(length)


def _spread(log: FilesLog) -> str:
    low, high = known(log.low_ns), known(log.high_ns)
    return "" if low is None or high is None else between(duration(low), duration(high))


def _trend(drift: DriftOf | None, spelled: Callable[[int], str]) -> str:
    if drift is None:
        return ""
    if drift.state == "none":
        return "none"
    moved = f"{spelled(drift.first)} -> {spelled(drift.last)} ({signed(percent(drift.change_frac))})"
    return moved if drift.jump_at is None else f"{moved}, a jump at {drift.jump_at:,}"


def _rate(value: OrMissing[float]) -> str:
    rate = known(value)
    return "" if rate is None else rounded(rate)


def _left_out(reason: str, log: FilesLog) -> str:
    return f"{log.left_out.get(reason, 0) or ''}"


def _memory(figure: str, log: FilesLog) -> str:
    found = next((one for one in log.memory if one.figure == figure), None)
    if found is None:
        return ""
    drift = known(found.drift)
    moves = "" if drift is None or drift.state == "none" else f", {_trend(drift, gigabytes)}"
    return f"{gigabytes(found.most_bytes)}{moves}"


_FIGURES_OF_A_LOG: Final[tuple[tuple[str, Callable[[FilesLog], str]], ...]] = (
    ("typical step (median)", lambda log: _time(log.median_ns)),
    ("middle 80 % of the steps", _spread),
    ("trend over the log", lambda log: _trend(known(log.drift), duration)),
    ("steady iterations", lambda log: f"{log.steady_count:,} of {log.iteration_count:,}"),
    *((f"left out: {name}", partial(_left_out, reason)) for reason, name in _LEFT_OUT.items()),
    ("model TFLOP/s per GPU", lambda log: _rate(log.tflops_per_gpu)),
    ("tokens/s per GPU", lambda log: _rate(log.tokens_per_s_per_gpu)),
    *((name, partial(_memory, figure)) for figure, name in _FIGURES.items()),
    ("out of memory", lambda log: "yes" if log.out_of_memory else ""),
)


def _explanations(compared: ComparedFiles, everything: bool) -> Iterator[Block]:
    found = compared.explanations
    useful = [one for one in found if one.explains or one.fit == "open"]
    shown = found if everything else useful[:_EXPLAINED]
    if compared.verdict == "not_comparable" and not everything:
        yield Sentence(words("No cause is named: the runs are not comparable."), "Cause", Tone.NOTICE)
        return
    for place, one in enumerate(shown):
        first = _BEFORE["covers"] if "out_of_memory" in one.explains else _BEFORE[one.fit]
        said = words(f"{one.title} (", codes(one.knobs), f"). Confidence {one.confidence}.")
        yield Sentence(said, "OR" if place and one.fit == shown[0].fit else first, Tone.NOTICE)
        sure = (words(f"To be sure: {ended(one.next)}"),)
        yield Items((*(words(sentence(because)) for because in one.because), *(sure if not place else ())))
    if (all_of := compared.together) is not None and all_of.covers and not _covered(compared):
        low, high = (signed(percent(end)) for end in (all_of.step_low_frac, all_of.step_high_frac))
        text = f"All {len(all_of.ids)} known changes together: {low} to {high} a step, which holds it."
        yield Sentence(words(text), "TOGETHER")
    if not found:
        yield Sentence(words(_none(compared)), "Cause", Tone.NOTICE)
    elif left := len(found) - len(shown):
        yield Sentence((f"{counted(left, 'more known change')}: --full",), tone=Tone.MUTED)


def _covered(compared: ComparedFiles) -> bool:
    return any(one.fit == "covers" for one in compared.explanations)


def _none(compared: ComparedFiles) -> str:
    if not compared.base.settings_count or not compared.new.settings_count:
        return "What changed is not known without both configurations: give them as BASE and NEW."
    return "Unknown: none of the settings that differ has a measured effect on a step or on memory."


def _changed(compared: ComparedFiles, everything: bool) -> Iterator[Block]:
    explained = [knob for one in compared.explanations for knob in one.knobs]
    may = [one for one in compared.changed if one.effect == "may"]
    may.sort(key=lambda one: explained.index(one.what) if one.what in explained else len(explained))
    none = [one for one in compared.changed if one.effect == "none"]
    if not compared.changed:
        if compared.base.settings_count and compared.new.settings_count:
            yield Sentence(words("nothing: both mean the same to their release."), "What differs")
        return
    shown = may if everything else may[:_CHANGED]
    lines = [_change(one, everything) for one in shown]
    if left := len(may) - len(shown):
        lines.append(words(f"{counted(left, 'more difference')}: --full"))
    yield from items("What differs", lines or ["nothing that has an effect"])
    if everything:
        yield from items(
            "Differs without an effect", (words(_change(one, True), f"; {one.because}") for one in none)
        )
    elif none:
        names = ", ".join(one.what for one in none[:_EXPLAINED])
        rest = f" and {len(none) - _EXPLAINED} more" if len(none) > _EXPLAINED else ""
        differ = "differs" if len(none) == 1 else "differ"
        yield Sentence(words(f"{names}{rest} {differ} without an effect on a step."), "Also")


def _change(one: EffectiveChange, everything: bool) -> Words:
    if one.withheld:
        return words(Code(one.what), ": differs, its texts are withheld")
    width = _WHOLE if everything else _WIDTH
    base, new = (
        words("not set in it")
        if said == "unknown"
        else words(plainly(value, width), " (default)" if said == "default" else "")
        for value, said in ((one.base, one.base_said), (one.new, one.new_said))
    )
    places = f" ({one.base_said}; {one.new_said})" if everything else ""
    return words(Code(one.what), ": ", base, " -> ", new, places)


def _measured(compared: ComparedFiles) -> Iterator[Block]:
    for one in compared.explanations:
        yield from items(one.title, (_elsewhere(each) for each in one.measured))
    for side in (compared.base, compared.new):
        if side.problems_count:
            lines = counted(side.problems_count, "line")
            said = f": {lines} not read as they stand; moe-diag check-config names them."
            yield Sentence(words(Code(side.name), said))


def _elsewhere(one: MeasuredElsewhere) -> str:
    step, memory = known(one.step_frac), known(one.memory_frac)
    found = [f"step {signed(percent(step))}"] if step is not None else []
    found += [f"memory {signed(percent(memory))}"] if memory is not None else []
    return f"{', '.join(found)}: {one.of} ({one.source})"


def _closing(compared: ComparedFiles) -> Iterator[Block]:
    if compared.record:
        yield Sentence((sentence(compared.record),), "To decide")
    yield Command(("Where the time goes:",), "moe-diag capture --for regression")
