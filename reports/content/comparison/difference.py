"""The difference of two runs: the verdict in one sentence, and rows that add up as they are
printed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from heuristics.comparison.without_steps import RERUN
from heuristics.result.compared import (
    Compared,
    ComparedRow,
    ComparedSize,
    Side,
    TwoRuns,
    exit_of,
)
from reports.content.analysis.times import beside_mean
from reports.content.blocks import (
    Blocks,
    Code,
    Headline,
    Quantity,
    Table,
    Term,
    Tone,
    Words,
    filled,
    row,
    words,
)
from reports.content.names import (
    beyond,
    gpu_of,
    hue_of,
    joined,
    optional,
    sentence,
    statement,
    when,
    who,
)
from reports.content.tables import shaped
from reports.measures import words_of
from reports.rows import each
from traces.missing import OrMissing, known, of_known
from traces.spelling import (
    adding_up,
    chosen,
    counted,
    milliseconds,
    percent,
    places,
    rounded,
    signed,
    signed_ms,
)

_NAMES: Final = {"block": "block", "replay": "graph replay"}
_NO_STEPS: Final = "no steps found"


def title(compared: Compared) -> Words:
    return words(*_recordings(compared.base), " -> ", *_recordings(compared.new))


def _recordings(side: Side) -> Words:
    return words(Code(side.name), beyond(len(side.traces), 1))


def facts(compared: Compared) -> Words:
    base, new = compared.base, compared.new
    of = [both(told_of(base), told_of(new)) for told_of in (gpu_of, who, _steps)]
    means = f"{milliseconds(base.step_ns)} -> {milliseconds(new.step_ns)} ms{_each(compared)}"
    # the medians of both, where one of them is another length than the mean
    base_ns = base.steps.median_ns or base.step_ns
    new_ns = new.steps.median_ns or new.step_ns
    apart = beside_mean(base.step_ns, base_ns) or beside_mean(new.step_ns, new_ns)
    medians = when(apart, f", median {milliseconds(base_ns)} -> {milliseconds(new_ns)}")
    return words("; ".join((*of, means + medians)))


def longest_ns(compared: Compared) -> int:
    """The length of the longer step, of which pictures draw both."""
    return max(compared.base.step_ns, compared.new.step_ns) or 1


def sides(compared: Compared) -> dict[str, Side]:
    return {"base": compared.base, "new": compared.new}


def longest_drawn_ns(compared: Compared) -> int:
    """The length of the longer timeline."""
    timelines = compared.base.timeline, compared.new.timeline
    return max(timeline.end_ns - timeline.start_ns for timeline in timelines)


def both(base: str, new: str) -> str:
    if base == new:
        return base
    return f"{base} -> {new}"


def has_steps(compared: Compared) -> bool:
    return compared.base.steps.count > 0 and compared.new.steps.count > 0


def unit(compared: Compared) -> str:
    if has_steps(compared):
        return f"ms/{repeated(compared)}"
    return "ms"


def repeated(compared: Compared) -> str:
    """What is compared: a step, a block, or the replay of a graph, which is a block to the other
    side.
    """
    base_unit, new_unit = compared.base.steps.unit, compared.new.steps.unit
    if base_unit == new_unit != "window":
        return base_unit
    if "step" in (base_unit, new_unit):
        return "step"
    return "block"


def _steps(side: Side) -> str:
    if side.steps.count:
        return counted(side.steps.count, _NAMES.get(side.steps.unit, "step"))
    return _NO_STEPS


def _each(compared: Compared) -> str:
    if has_steps(compared):
        return f" per {repeated(compared)}"
    return ""


def headline(compared: TwoRuns) -> Headline:
    """The change of a step as the one number, with the verdict, what it rests on, and below it
    why.
    """
    verdict = compared.verdict
    label, tone = words_of("verdict")[verdict], Tone(words_of("verdict_tone")[verdict])
    size = compared.size
    if not size:
        basis, figure, amount = compared.because[0], "", ""
    else:
        figure = signed(percent(size.delta_frac))
        amount = f"{signed_ms(size.delta_ns)}{_per(compared, size)}"
        basis = f"{_interval(size)}, {_counts(compared, size)}."
    if compared.verdict == "not_comparable":
        basis = "not judged, as the runs are not comparable."
    elif compared.verdict == "undecided" and figure:
        in_parts = when(certain(compared), " as a whole, not in its parts")
        basis = f"may be chance{in_parts}; {basis}"
    if not figure:
        basis = sentence(basis)
    return Headline(label, (basis,), tone, filled(_under(compared)), figure, amount)


def certain(compared: TwoRuns) -> set[str]:
    """The rows whose own interval does not hold zero, whatever the step does, and that differ by
    more than runs of one thing do.
    """
    if not isinstance(compared, Compared):
        return set()
    return {
        row.row
        for row in compared.attribution
        if row.ci95_ns and abs(row.delta_ns) > RERUN.value * max(row.base_ns, row.new_ns)
    }


def _interval(size: ComparedSize) -> str:
    level = known(size.level_frac)
    if size.ends_ns is None or level is None:
        return "no interval"
    return f"{chosen(level)} interval {' to '.join(map(delta, size.ends_ns))} ms"


def _per(compared: TwoRuns, size: ComparedSize) -> str:
    if size.source == "log":
        return " per iteration"
    if isinstance(compared, Compared):
        return _each(compared)
    return ""


def _counts(compared: TwoRuns, size: ComparedSize) -> str:
    singular, plural = "iteration of the logs", "iterations of the logs"
    if size.source == "trace" and isinstance(compared, Compared):
        if not has_steps(compared):
            return _NO_STEPS
        singular, plural = repeated(compared), f"{repeated(compared)}s"
    if size.base_count == size.new_count:
        return f"{counted(size.base_count, singular, plural)} a side"
    return f"{size.base_count:,} and {size.new_count:,} {plural}"


def _under(compared: TwoRuns) -> Iterator[str]:
    """Reasons, the traces beside logs, the gate. What forbids a comparison has a list of its
    own.
    """
    if compared.verdict != "not_comparable":
        said_above = not compared.size
        yield from map(sentence, compared.because[said_above:])
    if isinstance(compared, Compared):
        traced = f"{delta(compared.step_delta_ns)} {unit(compared)}"
        if compared.size.source == "log":
            yield f"In the traces it is {traced}; the rows below explain that."
        elif compared.size.between_runs:
            yield (
                f"Against the first recording of base alone it is {traced}; the rows below "
                f"explain that."
            )
    if gate := compared.gate:
        # its exit code stands beside its answer where that is no plain pass
        ends = when(gate.state != "passed", f" (exit code {exit_of(compared.verdict, gate)})")
        lets = ", which lets pass here" if gate.state == "undecided" and gate.lets_pass else ""
        yield (
            f"Gate of {chosen(gate.limit_frac)} {words_of('gate')[gate.state]}{lets}{ends}: "
            f"{sentence(gate.because)}"
        )


NOISE: Final = "noise"
_SHOWN: Final = 6
_NAMED: Final = 3


def waterfall(compared: Compared) -> Blocks:
    """The rows that moved most, all others as one, and their sum: each column adds up as printed.

    Of what scatters only that is named which is much of the difference, and it says so. A row whose
    change is 0 as printed is one of the others.
    """
    rows = ranked(compared)
    if not rows:
        yield statement("No part of the step differs by more than steps vary.")
        return
    decimals = places(max(map(abs, (compared.step_delta_ns, *each(rows[:_SHOWN], "delta_ns")))))
    shown = [part for part in rows[:_SHOWN] if round(part.delta_ns / 10 ** (6 - decimals))]
    base, base_rest, base_sum = adding_up(each(shown, "base_ns"), compared.base.step_ns, decimals)
    new, new_rest, new_sum = adding_up(each(shown, "new_ns"), compared.new.step_ns, decimals)
    change, rest, total = adding_up(each(shown, "delta_ns"), compared.step_delta_ns, decimals)
    drawn = []
    for moved_row, before, after, moved_by in zip(shown, base, new, change, strict=True):
        name = words(
            Term(moved_row.row), ", within scatter" if moved_row in compared.scattered else ""
        )
        share = of_known(abs, moved_row.share_frac)
        drawn.append(
            row((name, before, after, Quantity(signed(moved_by), share, hue_of(moved_row.row))))
        )
    others_name, whole = "noise", "whole window"
    if left_out := len(rows) - len(shown):
        others_name = f"{counted(left_out, 'smaller part')}, noise"
    drawn.append(row((others_name, base_rest, new_rest, signed(rest)), tone=Tone.MUTED))
    if has_steps(compared):
        whole = f"whole {repeated(compared)}"
    waterfall_table = shaped("waterfall", drawn, unit=unit(compared))
    yield replace(waterfall_table, total=row((whole, base_sum, new_sum, signed(total))))


def ranked(compared: Compared) -> list[ComparedRow]:
    """Every part by itself, those that scatter too: what moved most comes first."""
    rows = [part for part in compared.attribution if part.row != NOISE]
    return sorted((*rows, *compared.scattered), key=lambda part: -abs(part.delta_ns))


def row_table(
    rows: Sequence[ComparedRow], name: Callable[[str], Words] = lambda row: words(Term(row))
) -> Table:
    """Every row with what its difference is made of, and its interval. `name`: of a row's key."""
    return shaped("compared_rows", ((name(part.row), *_figures_of(part)) for part in rows))


def module_name(row: str) -> Words:
    """A module of an MoE layer and its pass: `combine.backward`."""
    module, _, way = row.rpartition(".")
    return words(Term(module), f", {way.replace('_', ' ')}")


def _figures_of(row: ComparedRow) -> Iterator[str | Quantity]:
    yield from (milliseconds(row.base_ns), milliseconds(row.new_ns), moved(row.delta_ns))
    yield "" if row.share_frac is None else signed(percent(row.share_frac))
    ends = row.ci95_ns or (None, None)
    yield from map(moved, (row.count_ns, row.duration_ns, row.overlap_ns, *ends))


def delta(time_ns: float) -> str:
    """A difference in ms, without its unit."""
    return signed(milliseconds(time_ns))


def moved(time_ns: OrMissing[int]) -> Quantity:
    """A difference in ms; empty where it is unknown."""
    return Quantity(optional("{}", time_ns, delta))


def named(rows: Sequence[str], most: int = _NAMED) -> Words:
    """The first rows by their names, and how many more there are; empty without any."""
    return words(joined(map(Term, rows[:most])), beyond(len(rows), most))


def per_step(count: float) -> str:
    """A number of activities per step: `120`, `0.5`."""
    if count < 1000:
        return rounded(count)
    return f"{count:,.0f}"
