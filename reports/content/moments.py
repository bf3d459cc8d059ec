"""The moment of a finding: which stretch of which rank's recording shows it."""

from collections.abc import Iterator

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from reports.content.names import name_of, optional
from traces.errors import UsageError
from traces.frozen import frozen
from traces.nearest import nearest
from traces.patterns import whole_number
from traces.spelling import printable


@frozen
class Moment:
    """A stretch of the rank at `place` of the result, on its recording's own clock.

    `shows`: what is seen there; `said`: the same with the wall that it is of.
    """

    said: str
    shows: str
    place: int
    start_ns: int
    end_ns: int


def moments(wall: Wall) -> Iterator[Moment]:
    """Evidence of a wall that has a place, in its order: `wall:1` is the first."""
    for proof in wall.evidence:
        if proof.start_ns is not None and proof.end_ns is not None:
            shows = name_of(proof.measure)
            yield Moment(
                f"{name_of(wall.id)}: {shows}", shows, proof.rank or 0, proof.start_ns, proof.end_ns
            )


def moment_of(result: Result, finding: str) -> Moment:
    """The moment of a wall, of a fix by its wall, or of the n-th evidence of a wall (`wall:2`).

    A wall that no single moment shows is seen in any step: the first used one. Raises `UsageError`
    for a finding that the result does not have.
    """
    name, _, number = finding.strip().partition(":")
    wall = _wall(result, name)
    places = [*moments(wall)]
    if number:
        place = whole_number(number)
        if place is None or not 1 <= place <= len(places):
            has = (
                f"It has 1 to {len(places)}"
                if places
                else f"It has none; --at {wall.id} shows a step"
            )
            raise UsageError(
                f"--at {printable(finding, 60)}: no such evidence of {name_of(wall.id)}. {has}."
            )
        return places[place - 1]
    if places:
        return places[0]
    return first_step(result, name_of(wall.id))


def first_step(result: Result, finding: str = "") -> Moment:
    """The first used step of the first rank, or its window where no steps were found."""
    rank = result.ranks[0]
    shows, (start_ns, end_ns) = "the window", rank.windows_ns[0]
    for step in rank.steps.used[:1]:
        shows, start_ns, end_ns = f"step {step.index}", step.start_ns, step.end_ns
    return Moment(optional("{}, ", finding) + shows, shows, 0, start_ns, end_ns)


def _wall(result: Result, name: str) -> Wall:
    walls: dict[str, Wall] = {wall.id: wall for wall in result.walls}
    of_fixes = {fix.id.lower(): fix.wall for fix in result.fixes}
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    for id in (plain, of_fixes.get(name.strip().lower(), "")):
        if wall := walls.get(id):
            return wall
    known = [*walls, *(fix.id for fix in result.fixes)]
    meant = optional("Did you mean {}? ", nearest(plain, walls) or nearest(name, known))
    none = f"--at {printable(name, 60)}: this result has no such finding."
    raise UsageError(f"{none} {meant}There are {', '.join(known[:12])}.")
