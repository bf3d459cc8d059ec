"""Is a recording good enough to judge each wall: good, usable or useless, and what it lacks for that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.result.judged import Wall
from heuristics.result.result import Result
from heuristics.run.run import WALL_IDS
from traces.columns import TraceInfo
from traces.limits import Limit
from traces.measure.capture import Capture
from traces.missing import known
from traces.sections.tables import WallId
from traces.spelling import percent

Grade = Literal["good", "usable", "useless"]
"""Good: its cost is measured. Usable: with less certainty, or as an upper bound. Useless: not at all."""

LAUNCHED: Final = Limit(
    0.9, "fraction of the kernels", "ours: as much as a wall is then without the launch that explains it"
)


@dataclass(frozen=True, slots=True)
class Fitness:
    """One wall. `because`: what the recording lacks for it, what decides first; empty where it is good."""

    wall: WallId
    grade: Grade
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Need:
    """A row. `lacks`: whether the recording lacks it; `makes`: how good a wall is then at most, and why."""

    lacks: Callable[[TraceInfo, Capture], bool]
    makes: dict[WallId, tuple[Grade, str]]


def _none(row: str) -> Callable[[TraceInfo, Capture], bool]:
    return lambda info, capture: not capture.rows[row]


def _only_replays(info: TraceInfo, capture: Capture) -> bool:
    return not capture.rows["kernels"] and capture.rows["graph replays"] > 0


def _no_work(info: TraceInfo, capture: Capture) -> bool:
    return not capture.rows["kernels"] and not capture.rows["graph replays"]


def _apart(info: TraceInfo, capture: Capture) -> bool:
    return any(capture.clock_offset_ns.values())


def _few_launches(info: TraceInfo, capture: Capture) -> bool:
    found = capture.correlation_frac
    return found is not None and capture.rows["CUDA calls"] > 0 and found < LAUNCHED.value


def _all_walls(grade: Grade, why: str) -> dict[WallId, tuple[Grade, str]]:
    return dict.fromkeys(WALL_IDS, (grade, why))


_BOUND: Final = "only an upper bound of its cost"
_NEEDS: Final = (
    _Need(_no_work, _all_walls("useless", "no GPU work was recorded")),
    _Need(
        _only_replays,
        {
            **_all_walls("useless", "graph replays were recorded whole: their kernels are unknown"),
            "host_overhead": ("usable", "graph replays were recorded whole: their kernels are unknown"),
        },
    ),
    _Need(
        _none("CUDA calls"),
        {
            **_all_walls("usable", f"launches were not recorded: {_BOUND}"),
            "host_overhead": ("useless", "launches were not recorded"),
        },
    ),
    _Need(
        _apart,
        {
            **_all_walls("usable", f"host and GPU clocks differ: {_BOUND}"),
            "host_overhead": ("useless", "host and GPU clocks differ"),
        },
    ),
    _Need(_few_launches, _all_walls("usable", "the launch of many kernels was not recorded")),
    _Need(
        lambda info, capture: capture.opaque_graph_launches > 0,
        _all_walls("usable", "some CUDA graph launches show no work: idle time may be work"),
    ),
    _Need(
        lambda info, capture: any(one.sm_count is None for one in info.gpus) or not info.gpus,
        {"compute": ("useless", "the number of SMs is unknown")},
    ),
    _Need(
        _none("memory events"),
        {
            "memory": (
                "usable",
                "memory use was not recorded: the cost of saving memory is measured, its room not",
            )
        },
    ),
    _Need(
        _none("NVTX ranges"),
        {
            "communication": ("usable", "without ranges NCCL sends and receives may have no known purpose"),
            "host_overhead": ("usable", "without ranges steps are found by their pattern alone"),
        },
    ),
    _Need(
        _none("event records"),
        {
            "communication": (
                "usable",
                "waits between streams are inferred, as no event records were recorded",
            )
        },
    ),
    _Need(
        lambda info, capture: info.kind != "kineto" and not capture.rows["OS calls"],
        {"host_overhead": ("usable", "OS calls were not recorded: waits for the OS look like Python")},
    ),
)
"""What decides first stands first."""
_WORST: Final[tuple[Grade, ...]] = ("good", "usable", "useless")


def fitness(info: TraceInfo, capture: Capture, result: Result | None = None) -> tuple[Fitness, ...]:
    """How good a recording is for each wall; `result`: what a diagnosis makes of it, which has the last word.

    A wall that it judges is no worse than usable; one that it cannot judge is no better than that.
    """
    lacking = [need.makes for need in _NEEDS if need.lacks(info, capture)]
    graded = [_of_wall(wall, [makes[wall] for makes in lacking if wall in makes]) for wall in WALL_IDS]
    if result is None:
        return tuple(graded)
    walls, shared = {wall.id: wall for wall in result.walls}, (*_in_window(result),)
    return tuple(_as_judged(one, walls[one.wall], shared) for one in graded)


def _in_window(result: Result) -> Iterator[tuple[Grade, str]]:
    """What the window of a diagnosis says of every wall."""
    window_ns = sum(rank.budget_ns.window for rank in result.ranks)
    if not all(rank.steps.found for rank in result.ranks):
        yield "usable", "no steps were found, so one window"
    if result.verdict.startup_ns:
        share = result.verdict.startup_ns / window_ns
        yield "usable", f"profiler and start-up take {percent(share)} of the window: record later"


def _as_judged(one: Fitness, wall: Wall, shared: Sequence[tuple[Grade, str]]) -> Fitness:
    found = [*shared]
    if wall.outcome == "unmeasurable":
        most, why = known(wall.at_most_frac), "; ".join(wall.missing[:1])
        found += [("useless", why)] if most is None else [("usable", f"{_BOUND}, {percent(most)}: {why}")]
        found += [(one.grade, why) for why in one.because]
    else:
        found += [("usable" if one.grade == "useless" else one.grade, why) for why in one.because]
    return _of_wall(one.wall, found)


def _of_wall(wall: WallId, lacks: list[tuple[Grade, str]]) -> Fitness:
    """What makes it as bad as it is; lesser things come after that is recorded."""
    worst = max((grade for grade, _ in lacks), key=_WORST.index, default=_WORST[0])
    return Fitness(wall, worst, tuple(dict.fromkeys(why for grade, why in lacks if grade == worst)))
