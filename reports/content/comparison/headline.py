"""The verdict of a comparison in one sentence, and the line about the two recordings."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.compared import Compared, ComparedSize, ComparisonVerdict, Gate, Side
from reports.content.blocks import Code, Headline, Tone, Words, words
from reports.content.names import gpu_of, who
from reports.content.wording import sentence
from traces.missing import known
from traces.spelling import chosen, counted, milliseconds, percent, signed

_LABELS: Final[dict[ComparisonVerdict, tuple[str, Tone]]] = {
    "regression": ("SLOWER", Tone.BAD),
    "improvement": ("FASTER", Tone.GOOD),
    "no_change": ("NO CHANGE", Tone.GOOD),
    "undecided": ("UNDECIDED", Tone.NOTICE),
    "not_comparable": ("NOT COMPARABLE", Tone.NOTICE),
}
_GATES: Final = {
    "passed": "passed",
    "tripped": "exceeded (exit code 1)",
    "undecided": "cannot be judged (exit code 1)",
}


def title(compared: Compared) -> Words:
    """The recordings' names."""
    return words(*_recordings(compared.base), " -> ", *_recordings(compared.new))


def _recordings(side: Side) -> Words:
    more = len(side.traces) - 1
    return words(Code(side.name), f" and {more} more" if more > 0 else "")


def facts(compared: Compared) -> Words:
    """GPU, rank, steps and their mean length on both sides."""
    base, new = compared.base, compared.new
    lengths = f"{milliseconds(base.step_ns)} -> {milliseconds(new.step_ns)} ms{_each(compared)}"
    parts = (
        both(gpu_of(base), gpu_of(new)),
        both(who(base), who(new)),
        both(_steps(base), _steps(new)),
        lengths,
    )
    return words("; ".join(parts))


def both(base: str, new: str) -> str:
    """What both sides say, or what each does."""
    return base if base == new else f"{base} -> {new}"


def has_steps(compared: Compared) -> bool:
    """Whether steps are compared, not windows."""
    return compared.base.steps.count > 0 and compared.new.steps.count > 0


def unit(compared: Compared) -> str:
    """The unit of rows."""
    return "ms/step" if has_steps(compared) else "ms"


def _steps(side: Side) -> str:
    return counted(side.steps.count, "step") if side.steps.count else "no steps found"


def _each(compared: Compared) -> str:
    return " per step" if has_steps(compared) else ""


def headline(compared: Compared) -> Headline:
    """The verdict with the figures it rests on, and below it why."""
    label, tone = _LABELS[compared.verdict]
    return Headline(label, (_figures(compared),), tone, tuple(map(words, _under(compared))))


def _figures(compared: Compared) -> str:
    size = compared.size
    moved = f"{signed(milliseconds(size.delta_ns))} ms{_per(compared)} = {signed(percent(size.delta_frac))}"
    figures = f"{moved} ({_interval(size)}{_counts(compared)})"
    if compared.verdict == "undecided":
        return f"{figures}: may be chance."
    if compared.verdict == "not_comparable":
        return f"{moved}, but the runs are too different to find out why."
    return f"{figures}."


def _per(compared: Compared) -> str:
    return " per iteration" if compared.size.source == "log" else _each(compared)


def _interval(size: ComparedSize) -> str:
    low_ns, high_ns, level = known(size.low_ns), known(size.high_ns), known(size.level_frac)
    if low_ns is None or high_ns is None or level is None:
        return "no interval, "
    low, high = signed(milliseconds(low_ns)), signed(milliseconds(high_ns))
    return f"{chosen(level)} interval {low} to {high} ms, "


def _counts(compared: Compared) -> str:
    size = compared.size
    if size.source == "trace" and not has_steps(compared):
        return "no steps found"
    what = "iteration of the logs" if size.source == "log" else "step"
    many = "iterations of the logs" if size.source == "log" else "steps"
    if size.base_count == size.new_count:
        return f"{counted(size.base_count, what, many)} a side"
    return f"{size.base_count:,} and {size.new_count:,} {many}"


def _under(compared: Compared) -> Iterator[str]:
    """Reasons, the traces beside logs, the gate. What forbids a comparison has a list of its own."""
    if compared.verdict != "not_comparable":
        yield from (sentence(one) for one in compared.because)
    if compared.size.source == "log":
        traced = signed(milliseconds(compared.step_delta_ns))
        yield f"In the traces it is {traced} {unit(compared)}; the rows below explain that."
    if compared.gate is not None:
        yield _gate(compared.gate)


def _gate(gate: Gate) -> str:
    return f"Gate of {chosen(gate.limit_frac)} {_GATES[gate.state]}: {sentence(gate.because)}"
