"""Where the difference lies: rows that add up as they are printed."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from heuristics.result.compared import Compared, ComparedRow
from reports.content.blocks import Column, Quantity, Row, Sentence, Span, Table, Term, Tone, Words, words
from reports.content.comparison.headline import has_steps, unit
from reports.content.hues import hue_of
from traces.missing import OrMissing, known
from traces.spelling import (
    adding_up,
    counted,
    milliseconds,
    percent,
    places,
    rounded,
    signed,
)

NOISE: Final = "noise"
_SHOWN: Final = 6
_NAMED: Final = 3


def waterfall(compared: Compared) -> Iterator[Table | Sentence]:
    """The rows that moved most, all others as one, and their sum: each column adds up as printed."""
    rows = [row for row in compared.attribution if row.row != NOISE]
    shown, rest = rows[:_SHOWN], rows[_SHOWN:]
    if not rows:
        yield Sentence(("No part of the step differs by more than steps vary.",))
        return
    decimals = places(max(abs(compared.step_delta_ns), *(abs(row.delta_ns) for row in shown)))
    columns = [
        adding_up([row.base_ns for row in shown], compared.base.step_ns, decimals),
        adding_up([row.new_ns for row in shown], compared.new.step_ns, decimals),
        adding_up([row.delta_ns for row in shown], compared.step_delta_ns, decimals),
    ]
    (base, _, _), (new, _, _), (delta, rest_delta, total) = columns
    drawn = [
        Row((words(Term(row.row)), *map(Quantity, (base[at], new[at])), _moved(row, delta[at])))
        for at, row in enumerate(shown)
    ]
    others = f"{counted(len(rest), 'smaller part')}, noise" if rest else "noise"
    lefts = [Quantity(left) for _, left, _ in columns[:2]]
    drawn.append(Row((words(others), *lefts, Quantity(signed(rest_delta))), tone=Tone.MUTED))
    whole = "whole step" if has_steps(compared) else "whole window"
    sums = [Quantity(one) for _, _, one in columns[:2]]
    yield Table(
        f"Where the difference lies, {unit(compared)}",
        (Column(""), Column("base", number=True), Column("new", number=True), Column("change", number=True)),
        tuple(drawn),
        Row((words(whole), *sums, Quantity(signed(total)))),
    )


def _moved(row: ComparedRow, text: str) -> Quantity:
    return Quantity(signed(text), None if row.share_frac is None else abs(row.share_frac), hue_of(row.row))


def row_table(rows: Sequence[ComparedRow], name: Callable[[str], Words]) -> Table:
    """Every row with what its difference is made of, and its interval. `name`: of a row's key."""
    columns = ("base", "new", "change", "share", "by number", "by length", "by overlap", "from", "to")
    return Table(
        "",
        (Column(""), *(Column(title, number=True) for title in columns)),
        tuple(_full_row(row, name) for row in rows),
    )


def ledger_name(row: str) -> Words:
    """A row of the step."""
    return words(Term(row))


def module_name(row: str) -> Words:
    """A module of an MoE layer and its pass: `combine.backward`."""
    module, _, way = row.rpartition(".")
    return words(Term(module), f", {way}")


def _full_row(row: ComparedRow, name: Callable[[str], Words]) -> Row:
    ends = known(row.ci95_ns) or (None, None)
    share = "" if row.share_frac is None else signed(percent(row.share_frac))
    return Row(
        (
            name(row.row),
            Quantity(milliseconds(row.base_ns)),
            Quantity(milliseconds(row.new_ns)),
            moved(row.delta_ns),
            Quantity(share),
            *map(moved, (row.count_ns, row.duration_ns, row.overlap_ns, *ends)),
        )
    )


def moved(time_ns: OrMissing[int]) -> Quantity:
    """A difference in ms; empty where it is unknown."""
    value = known(time_ns)
    return Quantity("" if value is None else signed(milliseconds(value)))


def named(rows: Sequence[str], most: int = _NAMED) -> Words:
    """The first rows by their names, and how many more there are; empty without any."""
    spans: list[Span] = []
    for row in rows[:most]:
        spans += [", ", Term(row)] if spans else [Term(row)]
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return words(*spans, more) if more else words(*spans)


def per_step(count: float) -> str:
    """A number of activities per step: `120`, `0.5`."""
    return rounded(count) if count < 1000 else f"{count:,.0f}"
