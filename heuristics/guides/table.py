"""A guide's table: ordered rows over facts of which some are unknown; the first row that holds
fires.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from functools import cache
from typing import Any, Final, NamedTuple, get_args

from msgspec import field

from heuristics.config.about import Guidance
from heuristics.guides import situation
from heuristics.rules.condition import RUNS, Condition
from heuristics.run.run import Run
from traces.frozen import frozen
from traces.settings.settings import Values
from traces.texts import Texts
from traces.toml_tables import TableRow, keyed, place, read_rows, written

ROOMS: Final = (situation,)
"""Where facts of a run stand that tables ask."""
EDITIONS: Final[tuple[Guidance, ...]] = get_args(Guidance)


class GuideRow(TableRow, kw_only=True):
    """One row of an edition. `answer`: what to try, in this order; `winner`: whether its first is
    the best.

    `when`: what must hold for the row to fire, None where it always does. `how`: in which way the
    answer is done, where there are several. `then`: what may be added, one at a time; `never`: what
    must not. `settings`: what goes with it; `sets`: knobs that belong to it. In its table an
    edition's own fields stand under its name; a row of which only one edition has fields is of that
    edition alone.
    """

    id: str
    reason: str
    source: str
    when: Condition | None = None
    answer: Texts = ()
    how: str = ""
    winner: bool = True
    then: Texts = ()
    settings: Texts = ()
    never: Texts = ()
    sets: Values = field(default_factory=dict)


@cache
def table(name: str) -> Mapping[Guidance, tuple[GuideRow, ...]]:
    """The rows of each edition, from the table of that name beside this file. Raises `WrongRow`."""
    package, file = "heuristics.guides", f"{name}.toml"
    document = written(package, file)
    editions = dict[Guidance, tuple[GuideRow, ...]]()
    for edition in EDITIONS:
        rows = keyed(_of_edition(edition, document["row"], document["source"][edition]))
        editions[edition] = tuple(
            read_rows(rows, dict[str, GuideRow], place(package, file), RUNS.readers).values()
        )
    return editions


def _of_edition(edition: Guidance, rows: dict[str, Any], source: str) -> dict[str, Any]:
    return {
        id: {
            "source": source,
            **{field: value for field, value in row.items() if field not in EDITIONS},
            **row.get(edition, {}),
        }
        for id, row in rows.items()
        if edition in row or not {*row} & {*EDITIONS}
    }


def facts_of(when: Condition) -> list[tuple[str, tuple[object, ...]]]:
    """Facts that a row's condition names, each with the values under which it holds; all must
    together.
    """
    tree = ast.parse(when.text, mode="eval").body
    return [*map(_fact, tree.values if isinstance(tree, ast.BoolOp) else [tree])]


def _fact(part: ast.expr) -> tuple[str, tuple[object, ...]]:
    match part:
        case ast.Name(id=name):
            return name, (True,)
        case ast.UnaryOp(operand=ast.Name(id=name)):
            return name, (False,)
        case ast.Compare(left=ast.Name(id=name), comparators=[values]):
            value = ast.literal_eval(values)
            return name, value if isinstance(value, tuple) else (value,)
    raise ValueError(f"{ast.unparse(part)} is no fact with its values")


class Refusal(NamedTuple):
    """What must not be chosen, why, and who says so."""

    what: str
    reason: str
    source: str


@frozen
class Chosen:
    """What a guide chooses for a run: the row that fired, and what follows from it.

    `notes`: why, first, then what else matters. `then`: what may be added, one at a time. `asks`:
    options that would settle what is unknown and matters. `refused`: what is ruled out on this run,
    why, and by whom.
    """

    _: KW_ONLY
    row: GuideRow
    notes: Texts = ()
    then: Texts = ()
    asks: Texts = ()
    refused: tuple[Refusal, ...] = ()

    @property
    def rule(self) -> str:
        """The row by its id."""
        return self.row.id


class Fired(NamedTuple):
    """The row that fires. `asks`: options that tell what might have made an earlier, different row
    fire.
    """

    row: GuideRow
    asks: Texts


def fire(
    name: str,
    run: Run,
    edition: Guidance | None = None,
    outcome: Callable[[GuideRow], object] = lambda row: row.id,
) -> Fired:
    """First row of a table that holds, in the run's edition where no other is named.

    Rows that only might hold are passed over, and asked for: of each such row the first unknown
    fact, as the next question may not be needed any more. What has no option only a trace can tell.
    `outcome` tells whether two rows say the same. The last row of a table has no conditions.
    """
    passed = list[tuple[GuideRow, str]]()
    for row in table(name)[edition or run.config.guidance]:
        holds = row.when.holds(run) if row.when else True
        if holds:
            options = dict[str, None]()
            for other, option in passed:
                if option and outcome(other) != outcome(row):
                    options[option] = None
            return Fired(row, tuple(options))
        if row.when and holds is None:
            fact = row.when.unknown(run)[0].fact
            passed.append((row, fact.option if fact else ""))
    raise ValueError("the last row of a table must hold always")
