"""What each wall truly costs in a run of the second simulator, and what a diagnosis of its recording says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any, Final

import diagnoser
from bench.second.simulator import OneRank, SecondSimulator
from bench.second.simulator_parts import Piece
from bench.simulate.export import write_export
from bench.simulate.handicaps import Handicap
from bench.simulate.happened import Activity, CallMade, Executed, Span
from bench.simulate.host_program import Engine, Program
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import START_NS, View, record
from bench.simulate.run import Run

WALL_FRAC: Final = 0.10
NEAR_FRAC: Final = 0.03
_BY_OPTIMIZER: Final = ("optimizer", "period")

Programs = Callable[[Handicap | None], Program]


@dataclass(frozen=True, slots=True)
class Judged:
    """Costs of walls as fractions of the steps used: true, and found (None: not told); the wall named."""

    true_frac: Mapping[str, float]
    found_frac: Mapping[str, float | None]
    wall: str | None
    step_source: str

    @property
    def worst_frac(self) -> float:
        """The largest difference between a cost found and the true one, which is at least nothing."""
        told = {wall: found for wall, found in self.found_frac.items() if found is not None}
        return max(abs(found - max(0.0, self.true_frac[wall])) for wall, found in told.items())

    @property
    def is_right(self) -> bool:
        """Whether the wall named is the dearest, or none where none is dear; too near to tell is right."""
        most = max(self.true_frac.values())
        if self.wall is None:
            return most < WALL_FRAC + NEAR_FRAC
        return self.true_frac[self.wall] > max(most, WALL_FRAC) - NEAR_FRAC


def borders_ns(pieces: Iterable[Piece], *, by_optimizer: bool = False) -> list[int]:
    """Borders of steps, one more than there are steps.

    Before step k: the start of its first compute kernel, or the end of all work before it if that is earlier.
    With nothing before it, the first begins with its first work; work of step -1 comes before them all.
    `by_optimizer`: a step begins behind its predecessor's optimizer and the communication launched directly
    behind that, as where nothing names the steps.
    """
    steps: dict[int, list[Piece]] = {}
    for piece in pieces:
        steps.setdefault(piece.work.place.step, []).append(piece)
    before = [_ns(piece.end_ns) for piece in steps.pop(-1, ())]
    whole = [steps[k] for k in sorted(steps)]
    starts = [min(_ns(p.start_ns) for p in step if p.work.engine is Engine.SMS) for step in whole]
    ends = [max(_ns(piece.end_ns) for piece in step) for step in whole]
    first = min([starts[0], max(before)]) if before else min(_ns(piece.start_ns) for piece in whole[0])
    if by_optimizer:
        return [first, *_ends_by_optimizer_ns([piece for step in whole for piece in step])]
    between = [min(start, max(ends[: k + 1])) for k, start in enumerate(starts[1:])]
    return [first, *between, max(ends)]


def _ends_by_optimizer_ns(pieces: Sequence[Piece]) -> Iterator[int]:
    """Of pieces in order of submission: all that was submitted until then has ended, or compute begins."""
    places = {piece.work.place.step: at for at, piece in enumerate(pieces) if piece.work.kernel == "adam"}
    for place in places.values():
        rest = list(dropwhile(lambda piece: piece.work.engine is Engine.COMMUNICATION, pieces[place + 1 :]))
        ended_ns = max(_ns(piece.end_ns) for piece in pieces[: len(pieces) - len(rest)])
        starts_ns = [_ns(piece.start_ns) for piece in rest if piece.work.engine is Engine.SMS]
        yield min([ended_ns, *starts_ns])


def _ns(time_ns: int | None) -> int:
    assert time_ns is not None
    return time_ns


def costs_frac(borders: Mapping[Handicap | None, Sequence[int]], steps: Sequence[int]) -> dict[str, float]:
    """What these steps would lose without each handicap, as a fraction of them."""
    whole = sum(_length(borders[None], step) for step in steps)
    return {
        handicap.value: 1 - sum(_length(borders[handicap], step) for step in steps) / whole
        for handicap in Handicap
    }


def _length(borders: Sequence[int], step: int) -> int:
    return borders[step + 1] - borders[step]


def executed(simulated: OneRank) -> Executed:
    """The same as the simulator's own record, so that it can be written as a recording."""
    calls = sorted(
        (call.start_ns, call.end_ns, thread, place)
        for thread, made in simulated.calls.items()
        for place, call in enumerate(made)
    )
    correlation = {(thread, place): number for number, (_, _, thread, place) in enumerate(calls)}
    activities = []
    for piece in simulated.pieces:
        call = correlation[piece.thread, piece.call]
        activity = Activity(piece.work, call, piece.submit_ns, "", None)
        activity.collective = piece.collective
        activity.start_ns, activity.end_ns = _ns(piece.start_ns), _ns(piece.end_ns)
        activities.append(activity)
    made = tuple(
        CallMade(thread, start, end, simulated.calls[thread][place].operation)
        for start, end, thread, place in calls
    )
    spans = tuple(
        Span(thread, start, end, opened.text, opened.kind)
        for thread, ranges in simulated.ranges.items()
        for start, end, opened in ranges
    )
    last_ns = max(max(activity.end_ns for activity in activities), max(call.end_ns for call in made))
    return Executed(tuple(activities), made, spans, last_ns)


def judge(programs: Programs, knobs: Knobs, view: View, folder: Path) -> Judged:
    """Diagnose a recording of a run, and hold it beside the runs without each handicap."""
    runs = {one: SecondSimulator(programs(one)) for one in (None, *Handicap)}
    path = folder / "run.sqlite"
    whole = Run(knobs, executed(runs[None]), tuple(borders_ns(runs[None].pieces)))
    write_export(path, record(whole, view), view.schema)
    document = diagnoser.analyze(path).to_dict()
    rank = document["ranks"][0]
    source = rank["steps"]["source"]
    borders = {one: borders_ns(ran.pieces, by_optimizer=source in _BY_OPTIMIZER) for one, ran in runs.items()}
    true_frac = costs_frac(borders, _used(borders[None], rank["windows_ns"]))
    found_frac = {wall["id"]: _found_frac(wall) for wall in document["walls"]}
    return Judged(true_frac, found_frac, document["verdict"]["wall"], source)


def _used(borders: Sequence[int], windows: Sequence[Sequence[int]]) -> list[int]:
    """Steps of which more than half lies in the windows."""
    used = []
    for step, (start, end) in enumerate(pairwise(START_NS + border for border in borders)):
        inside = sum(max(0, min(end, last) - max(start, first)) for first, last in windows)
        used += [step] if 2 * inside > end - start else []
    return used


def _found_frac(wall: Mapping[str, Any]) -> float | None:
    """The cost of a wall, which stands in its evidence where only the capacity could not be told."""
    said = [one["value"] for one in wall["evidence"] if one["measure"] == "cost_frac"]
    value = wall["cost_frac"] if wall["cost_frac"] is not None else next(iter(said), None)
    return None if value is None else float(value)
