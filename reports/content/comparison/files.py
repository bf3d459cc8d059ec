"""What a page says of configurations and logs: what these hold, what differs, what explains it."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Final

from heuristics.result.compared_files import (
    ComparedFiles,
    DriftOf,
    EffectiveChange,
    Explanation,
    FilesSide,
    MeasuredElsewhere,
    MemoryOf,
)
from reports.content.blocks import (
    Blocks,
    Code,
    Sentence,
    Tone,
    Words,
    filled,
    items,
    words,
)
from reports.content.comparison.causes import NO_CAUSE, Told, left_out, named_causes
from reports.content.comparison.changed import change, listed_changes, plainly, width_of
from reports.content.comparison.difference import both
from reports.content.names import codes, ended, optional, sentence, statement, titled
from reports.content.tables import shaped
from reports.measures import words_of
from reports.redaction import redaction_words
from reports.rows import each, those
from traces.missing import OrMissing, known
from traces.spelling import (
    between,
    counted,
    duration,
    first_of,
    gigabytes,
    percent,
    rounded,
    signed,
)

_CHANGED: Final = 8
_EXPLAINED: Final = 2


def title(compared: ComparedFiles) -> Words:
    return words(Code(compared.base.name), " -> ", Code(compared.new.name))


def facts(compared: ComparedFiles) -> Words:
    base, new = compared.base, compared.new
    sides = [
        both(base.gpu or "", new.gpu or ""),
        both(_release(base), _release(new)),
        both(_settings(base), _settings(new)),
    ]
    return words("; ".join(("configurations and logs, without a trace", *filter(None, sides))))


def _release(side: FilesSide) -> str:
    return optional("Megatron-Core {}", side.versions.get("core"))


def _settings(side: FilesSide) -> str:
    if not side.settings_count:
        return "no configuration"
    text = f"{counted(side.settings_count, 'setting')}, {side.defaults_count:,} of them defaults"
    if side.legal is False:
        return f"{text}, NOT LEGAL"
    return text


def found(compared: ComparedFiles, everything: bool) -> Blocks:
    """What the logs hold, what explains it, what differs."""
    yield from _logs(compared)
    yield from _explanations(compared, everything)
    yield from _changed(compared, everything)


def _logs(compared: ComparedFiles) -> Blocks:
    base, new = _of_log(compared.base), _of_log(compared.new)
    rows = []
    for name in base or new:
        values = base.get(name, ""), new.get(name, "")
        if any(values):
            rows.append((name, *values))
    if rows:
        yield shaped("logs", rows)


def _of_log(side: FilesSide) -> dict[str, str]:
    """What a log holds, by name; empty texts where it does not hold it."""
    log = side.log
    if not log:
        return {}
    low, high = optional("{}", log.low_ns, duration), optional("{}", log.high_ns, duration)
    of_log = {
        "typical step (median)": optional("{}", log.median_ns, duration),
        "middle 80 % of the steps": between(low, high),
        "trend over the log": _trend(log.drift, duration),
        "steady iterations": f"{log.steady_count:,} of {log.iteration_count:,}",
    }
    for reason, name in words_of("log_left_out").items():
        of_log[f"left out: {name}"] = f"{log.left_out.get(reason) or ''}"
    of_log["model TFLOP/s per GPU"] = optional("{}", log.tflops_per_gpu, rounded)
    of_log["tokens/s per GPU"] = optional("{}", log.tokens_per_s_per_gpu, rounded)
    for figure, name in words_of("log_memory").items():
        of_log[name] = "".join(map(_memory, those(log.memory, figure=figure)))
    of_log["out of memory"] = "yes" if log.out_of_memory else ""
    return of_log


def _trend(drift: OrMissing[DriftOf], spelled: Callable[[int], str]) -> str:
    if not drift:
        return ""
    if drift.state == "none":
        return "none"
    moved = (
        f"{spelled(drift.first)} -> {spelled(drift.last)} ({signed(percent(drift.change_frac))})"
    )
    if drift.jump_at is None:
        return moved
    return f"{moved}, a jump at {drift.jump_at:,}"


def _memory(memory: MemoryOf) -> str:
    most, moves = gigabytes(memory.most_bytes), _trend(memory.drift, gigabytes)
    if moves in ("", "none"):
        return most
    return f"{most}, {moves}"


def _explanations(compared: ComparedFiles, everything: bool) -> Blocks:
    causes = compared.explanations
    if compared.verdict == "not_comparable" and not everything:
        yield statement(NO_CAUSE, "Cause", Tone.NOTICE)
        return
    shown: Sequence[Explanation] = causes
    if not everything:
        shown = [cause for cause in causes if cause.explains or cause.fit == "open"][:_EXPLAINED]
    yield from named_causes(map(_told, shown, [*shown[:1]] * len(shown)))
    all_of = compared.together
    if all_of is not None and all_of.covers and not those(causes, fit="covers"):
        low, high = signed(percent(all_of.step_low_frac)), signed(percent(all_of.step_high_frac))
        count = len(all_of.ids)
        text = f"All {count} known changes together: {low} to {high} a step, which holds it."
        yield statement(text, "TOGETHER")
    if not causes:
        yield statement(_none(compared), "Cause", Tone.NOTICE)
    yield from left_out(len(causes) - len(shown), "more known change")


def _told(cause: Explanation, first: Explanation) -> Told:
    fit = "covers" if "out_of_memory" in cause.explains else cause.fit
    label = words_of("fit")[fit]
    evidence = [*filled(map(sentence, cause.because))]
    if cause is first:
        evidence.append(words(f"To be sure: {ended(cause.next)}"))
    elif cause.fit == first.fit:
        label = "OR"
    text = words(f"{cause.title} (", codes(cause.knobs), f"). Confidence {cause.confidence}.")
    return label, text, evidence


def _none(compared: ComparedFiles) -> str:
    if not compared.base.settings_count or not compared.new.settings_count:
        return "What changed is not known without both configurations: give them as BASE and NEW."
    return "Unknown: none of the settings that differ has a measured effect on a step or on memory."


def _changed(compared: ComparedFiles, everything: bool) -> Blocks:
    """What may do something, what explains the difference first; then what does nothing."""
    explained = [*chain.from_iterable(each(compared.explanations, "knobs"))]
    places = [*explained, *each(compared.changed, "what")]
    may, none = those(compared.changed, effect="may"), those(compared.changed, effect="none")
    if not compared.changed:
        if compared.base.settings_count and compared.new.settings_count:
            yield statement("nothing: both mean the same to their release.", "What changed")
        return
    may.sort(key=lambda knob: places.index(knob.what))
    shown = may if everything else may[:_CHANGED]
    lines = [*map(partial(_change, everything), shown)] or [words("nothing that has an effect")]
    yield listed_changes(lines, len(may) - len(shown))
    if everything:
        idle = (words(_change(True, knob), f"; {knob.because}") for knob in none)
        yield from items("Differs without an effect", idle)
    elif none:
        names = first_of(each(none, "what"), _EXPLAINED)
        differ = "differs" if len(none) == 1 else "differ"
        yield statement(f"{names} {differ} without an effect on a step.", "Also")


def _change(everything: bool, knob: EffectiveChange) -> Words:
    base = _value(knob.base, knob.base_said, everything)
    line = change((Code(knob.what),), knob, base, _value(knob.new, knob.new_said, everything))
    if knob.withheld or not everything:
        return line
    return words(line, f" ({knob.base_said}; {knob.new_said})")


def _value(value: object, origin: str, everything: bool) -> Words:
    if origin == "unknown":
        return ("not set in it",)
    default = " (default)" if origin == "default" else ""
    return words(plainly(value, width_of(everything)), default)


def details(compared: ComparedFiles) -> Blocks:
    """Every measurement of every known change."""
    yield titled("measured", _measured(compared))
    yield statement(redaction_words(compared.redacted))


def _measured(compared: ComparedFiles) -> Blocks:
    for explanation in compared.explanations:
        yield from items(explanation.title, map(_elsewhere, explanation.measured))
    for side in (compared.base, compared.new):
        if side.problems_count:
            lines = counted(side.problems_count, "line")
            unread = f": {lines} not read as they stand; moe-diag check-config names them."
            yield Sentence(words(Code(side.name), unread))


def _elsewhere(run: MeasuredElsewhere) -> str:
    moves = {"step": known(run.step_frac), "memory": known(run.memory_frac)}
    shown = [f"{what} {signed(percent(frac))}" for what, frac in moves.items() if frac is not None]
    return f"{', '.join(shown)}: {run.of} ({run.source})"
