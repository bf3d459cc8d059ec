"""Is a recording good enough to judge each wall: good, usable or useless, and what it lacks for
that.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Final, Literal, get_args

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from heuristics.run.run import WALL_IDS
from heuristics.words import say
from traces.columns import TraceInfo
from traces.frozen import frozen
from traces.limits import NEARLY_ALL
from traces.measure.capture import Capture
from traces.missing import known
from traces.recording.recorder import recorded_by
from traces.sections.tables import WallId
from traces.texts import Texts
from traces.toml_tables import read_table

Grade = Literal["good", "usable", "useless"]
"""Good: its cost is measured. Usable: with less certainty, or as an upper bound. Useless: not at
all."""


@frozen
class Fitness:
    """One wall. `because`: what the recording lacks for it, what decides first; empty where it is
    good.
    """

    wall: WallId
    grade: Grade
    because: Texts


def _lacks(info: TraceInfo, capture: Capture) -> Mapping[str, bool]:
    """Whether a recording lacks it, by the names of the table."""
    rows, launched = capture.rows, capture.correlation_frac
    is_few = launched is not None and launched < NEARLY_ALL.value
    return {
        "no_work": not rows["kernels"] and not rows["graph replays"],
        "only_replays": not rows["kernels"] and rows["graph replays"] > 0,
        "no_calls": not rows["CUDA calls"],
        "clocks_apart": any(capture.clock_offset_ns.values()),
        "few_launches": is_few and rows["CUDA calls"] > 0,
        "opaque_graphs": capture.opaque_graph_launches > 0,
        "no_sm_count": any(gpu.sm_count is None for gpu in info.gpus) or not info.gpus,
        "no_memory": not rows["memory events"],
        "no_ranges": not rows["NVTX ranges"],
        "no_events": not rows["event records"],
        "no_os_calls": not rows["OS calls"] and "OS calls" not in recorded_by(info.kind).never,
    }


_Verdict = tuple[Grade, str]
_TABLE: Final = read_table(
    "heuristics.evidence", "fitness.toml", dict[str, dict[WallId | Literal["every"], _Verdict]]
)
_GRADES: Final[tuple[Grade, ...]] = get_args(Grade)


def fitness(info: TraceInfo, capture: Capture, result: Result | None = None) -> tuple[Fitness, ...]:
    """How good a recording is for each wall; `result`: what a diagnosis makes of it, which has the
    last word.

    A wall that it judges is no worse than usable; one that it cannot judge is no better than that.
    """
    lacks, of_wall = _lacks(info, capture), defaultdict[WallId, list[_Verdict]](list)
    for lack, makes in _TABLE.items():
        for wall in WALL_IDS if lacks[lack] else ():
            if verdict := makes.get(wall, makes.get("every")):
                of_wall[wall].append(verdict)
    graded = [_of_wall(wall, of_wall[wall]) for wall in WALL_IDS]
    if result is None:
        return tuple(graded)
    walls, shared = {wall.id: wall for wall in result.walls}, [*_in_window(result)]
    return tuple(_of_wall(fit.wall, [*shared, *_as_judged(fit, walls[fit.wall])]) for fit in graded)


def _in_window(result: Result) -> Iterator[_Verdict]:
    window_ns = sum(rank.budget_ns.window for rank in result.ranks)
    if not all(rank.steps.found for rank in result.ranks):
        yield "usable", say("walls.no-steps")
    if startup_ns := result.verdict.startup_ns:
        yield "usable", say("evidence.record-later", part_frac=startup_ns / window_ns)


def _as_judged(fit: Fitness, wall: Wall) -> Iterator[_Verdict]:
    grade = fit.grade
    if wall.outcome == "unmeasurable":
        most, why = known(wall.at_most_frac), "; ".join(wall.missing[:1])
        yield (
            ("useless", why)
            if most is None
            else ("usable", say("evidence.bound", most_frac=most, reason=why))
        )
    elif grade == "useless":
        grade = "usable"
    yield from zip(repeat(grade), fit.because, strict=False)


def _of_wall(wall: WallId, lacks: list[_Verdict]) -> Fitness:
    """What makes it as bad as it is; lesser things come after that is recorded."""
    by_grade = dict[Grade, dict[str, None]]()
    for grade, why in lacks:
        by_grade.setdefault(grade, {})[why] = None
    worst = max(by_grade, key=_GRADES.index, default=_GRADES[0])
    return Fitness(wall, worst, tuple(by_grade.get(worst, ())))
