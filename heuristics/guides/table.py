"""A guide's table: ordered rows over facts of which some are unknown; the first row that holds fires."""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import replace

from heuristics.config.about import Guidance
from heuristics.guides.facts import GUIDE_FACTS
from heuristics.rules.condition import Condition, Language
from heuristics.run.run import Run
from traces.settings.settings import Value
from traces.toml_tables import read_table

OTHER: Final[Mapping[Guidance, Guidance]] = {"seed": "main-2026-08", "main-2026-08": "seed"}
"""Edition of the guides -> the other one."""
GUIDED: Final = Language(GUIDE_FACTS)
"""Conditions of the guides' tables."""


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row. `answer`: what to try, in this order; `winner`: whether its first is named as the best.

    `when`: what must hold for the row to fire, None where it always does. `edition`: the only one that has
    it. `how`: in which way the answer is done, where there are several. `then`: what may be added, one at a
    time; `never`: what must not. `settings`: what goes with it; `sets`: knobs that belong to it.
    """

    id: str
    reason: str
    source: str = ""
    edition: Guidance | None = None
    when: Condition | None = None
    answer: tuple[str, ...] = ()
    how: str = ""
    winner: bool = True
    then: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    sets: dict[str, Value] = {}


class _Table(Struct, forbid_unknown_fields=True):
    """A table. `source` of each edition, for rows that name none."""

    source: dict[Guidance, str]
    row: tuple[Row, ...]


@cache
def table(name: str) -> Mapping[Guidance, tuple[Row, ...]]:
    """The rows of each edition, from the table of that name beside this file."""
    read = read_table("heuristics.guides", f"{name}.toml", _Table, GUIDED.readers)
    editions: tuple[Guidance, ...] = get_args(Guidance)
    return {
        edition: tuple(
            replace(row, source=row.source or read.source[edition])
            for row in read.row
            if row.edition in (None, edition)
        )
        for edition in editions
    }


def facts_of(when: Condition) -> list[tuple[str, tuple[object, ...]]]:
    """Facts that a row's condition names, each with the values under which it holds; all must together."""
    tree = ast.parse(when.text, mode="eval").body
    return [*map(_fact, tree.values if isinstance(tree, ast.BoolOp) else [tree])]


def _fact(part: ast.expr) -> tuple[str, tuple[object, ...]]:
    match part:
        case ast.Name(id=name):
            return name, (True,)
        case ast.UnaryOp(operand=ast.Name(id=name)):
            return name, (False,)
        case ast.Compare(left=ast.Name(id=name), comparators=[values]):
            told = ast.literal_eval(values)
            return name, told if isinstance(told, tuple) else (told,)
    raise ValueError(f"{ast.unparse(part)} is no fact with its values")


class Refusal(NamedTuple):
    """What must not be chosen, why, and who says so."""

    what: str
    reason: str
    source: str


class Fired(NamedTuple):
    """The row that fires. `asks`: options that tell what might have made an earlier, different row fire."""

    row: Row
    asks: tuple[str, ...]


def fire(rows: Sequence[Row], run: Run, outcome: Callable[[Row], object]) -> Fired:
    """First row that holds; rows that only might hold are passed over, and asked for.

    Of each such row the first unknown fact is asked for: the next question may not be needed any more. What
    has no option only a trace can tell. `outcome` tells whether two rows say the same. The last row of a
    table has no conditions.
    """
    passed: list[tuple[Row, str]] = []
    for row in rows:
        holds = row.when.holds(run) if row.when else True
        if holds:
            asked = [option for other, option in passed if option and outcome(other) != outcome(row)]
            return Fired(row, tuple(dict.fromkeys(asked)))
        if row.when and holds is None:
            fact = row.when.unknown(run)[0].fact
            passed.append((row, fact.option if fact else ""))
    raise ValueError("the last row of a table must hold always")
