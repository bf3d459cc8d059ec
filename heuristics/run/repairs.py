"""What to do about each cause that makes ranks wait."""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from heuristics.words import say
from traces.frozen import frozen
from traces.limits import HALF_A_WALL
from traces.missing import known
from traces.sections.cause import Cause
from traces.sections.hang import Hang
from traces.sections.run import Run
from traces.sections.tables import WallId
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table


class Repair(TableRow):
    """A row of `causes.toml`, which says what its fields are."""

    wall: WallId | None = None
    fixes: Texts = ()


REPAIRS: Final = read_table("heuristics.run", "causes.toml", dict[Cause, Repair])


def comes_first(saved_frac: float | None) -> bool:
    """Whether a repair comes before all other changes: the run replayed without its cause is that
    shorter.
    """
    return saved_frac is not None and saved_frac >= HALF_A_WALL.value


def repaired(run: Run) -> Run:
    late, without = known(run.late), known(run.without)
    if late is None:
        return run
    first = comes_first(without.saved_frac if without else None)
    repair = say(f"run.{late.cause.value}") if late.cause is not Cause.NONE else ""
    fixes = REPAIRS[late.cause].fixes
    return structs.replace(
        run, late=structs.replace(late, repair=repair, repair_fixes=fixes, repair_first=first)
    )


def advised(hang: Hang) -> Hang:
    """The hang with what to do first."""
    return structs.replace(hang, advice=say(f"hang.{hang.kind.value}"))


@frozen
class LateRank:
    """Why ranks wait, as far as a plan minds. `saved_frac`: of the run's step, replayed without the
    cause.

    `waits_ns`: by kind of communication, exposed waiting for the late rank over all ranks; no other
    exchange and no overlap shortens it. `exposed_ns`: all exposed communication of the same ranks,
    by kind.
    """

    cause: Cause
    saved_frac: float | None = None
    waits_ns: Mapping[str, int] | None = None
    exposed_ns: Mapping[str, int] | None = None
