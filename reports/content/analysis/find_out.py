"""The steps that find a cause: where no wall is proven, and for a wall that no change is known
for.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from heuristics.result.judged import Wall
from heuristics.result.result import Result, late_rank
from heuristics.walls.price import UNNAMED
from reports.content.analysis.headline import main_kind, starts_up
from reports.content.analysis.in_calls import called_step, copied_step
from reports.content.analysis.times import all_windows_ns, telling_rank
from reports.content.analysis.unproven import (
    Unused,
    before_work,
    by_bandwidth,
    findings,
    held_by,
    is_cold,
    nothing_judged,
    open_walls,
    own_compute,
    recorder_kind,
    shows_part,
    unused,
)
from reports.content.blocks import Step, filled, words
from reports.content.names import is_cure, listed, name_of, optional, sentence, when
from reports.measures import words_of
from reports.rows import each, those
from traces.cures import cure
from traces.limits import MOST, NEARLY_ALL, WALL
from traces.missing import known
from traces.names.kernels import GRAPH_REPLAY
from traces.recording.recorder import TORCH, recorded_by
from traces.spelling import counted, percent


def _look_of(result: Result, part: Unused) -> str | None:
    held = held_by(result) if part.bucket == "idle" else ""
    return held or words_of("look_of_part").get(part.bucket)


STEPS: Final = 3
"""Steps of a plan on a first screen."""
_PAUSES: Final = ("long_python_pauses", "os_wait", "host_comm")
"""Kinds of the host's cost that no change is for; what the calls in them are names the step."""


def find_out(result: Result) -> Iterator[Step]:
    """How to find the cause of a wall that has no step; what to record for walls that were not
    judged.
    """
    wall = result.verdict.wall
    part, judged = unused(result), not nothing_judged(result)
    of_kernels = [*_of_kernels(result)]
    starts = not of_kernels and not wall and starts_up(result)
    if judged and (starts or _mostly_startup(result)):
        yield _look("startup", result)
    elif wall == "host_overhead" and _launches_nothing_frac(result) >= WALL.value:
        yield _look("launches_nothing", result)
    elif wall == "communication" and (late := late_rank(result)):
        repair = (words(sentence(late.repair)),)
        yield Step("", words(words_of("look")["late"]), "", (), repair)
    elif judged or not (result.verdict.startup_ns or is_cold(result)):
        yield from of_kernels
        if before_work(result) and not (judged and findings(result)):
            yield _look("before_work", result)
        if shows_part(result, part) and part and (how := _look_of(result, part)):
            yield _look(how, result, part.frac)
        looks = (_look(_how(found), result) for found in findings(result))
        yield from {look.title: look for look in looks}.values()
        busy = _kernels_frac(result)
        if judged and not (part or of_kernels or wall) and busy >= NEARLY_ALL.value:
            yield _look("compute", result, busy)
    curable = [open_wall for open_wall in open_walls(result) if is_cure(open_wall.cure)]
    lookup = those(curable, cure=cure(UNNAMED, recorder_kind(result)))
    again = [open_wall for open_wall in curable if open_wall not in lookup]
    for how, cured in (("Learn what the unknown kernels do", lookup), ("Record again", again)):
        if cured:
            named = "any of the walls"
            if judged:
                named = listed([*map(name_of, each(cured, "id"))])
            cures = filled(map(sentence, dict.fromkeys(each(cured, "cure"))))
            yield Step("", words(f"{how}, to judge {named}"), "", (), cures)


def _kernels_frac(result: Result) -> float:
    """How much of its time a rank computes by kernels that were recorded one by one."""
    if not result.ranks:
        return 0.0
    rank = telling_rank(result)
    replays_ns = (rank.compute_by_class_ns or {}).get(GRAPH_REPLAY, 0)
    return (rank.budget_ns.compute - replays_ns) / rank.budget_ns.window


def _how(wall: Wall) -> str:
    """Of copies to host memory that no change is known for, what is copied."""
    return "exposed_copy" if main_kind(wall) == "offload" else wall.id


def _of_kernels(result: Result) -> Iterator[Step]:
    """What to do about kernels that take most of the time, and that no wall prices."""
    if streams := by_bandwidth(result):
        yield _look(streams[0], result, streams[1])
    if own := own_compute(result):
        look = words(words_of("look")["own_compute"], " ", own.kernel)
        inside = words(
            when(own.threads, f"A launch of it has {counted(own.threads or 0, 'thread')}. "),
            sentence(cure("own_kernel", recorder_kind(result))),
        )
        yield Step("", look, f"targets {percent(own.frac)}", (), (inside,))


def with_finds(result: Result, steps: list[Step]) -> list[Step]:
    """Beside changes, how to find what no change is for, before what acts on less.

    A part of time that no wall explains; a wall that no change is planned for; long pauses of a
    host.
    """
    if not steps:
        return steps
    if _mostly_startup(result):
        return [_look("startup", result), *steps]
    if (share := _launches_nothing_frac(result)) >= WALL.value:
        steps = [_look("launches_nothing", result, share), *steps]
    if (part := unused(result)) is not None and (how := _look_of(result, part)):
        steps = _placed(result, steps, how, part.frac)
    steps = [*_of_kernels(result), *steps]
    planned = {*each(result.fixes, "wall")}
    for wall in sorted(result.walls, key=lambda wall: wall.cost_frac or 0.0):
        cost = known(wall.cost_frac)
        if wall.outcome != "finding" or cost is None or not planned:
            continue
        if wall.id == "communication" and late_rank(result):
            continue  # who the others wait for is told
        if wall.id not in planned:
            steps = _placed(result, steps, _how(wall), cost)
        elif wall.id == "host_overhead" and (share := _pauses_frac(wall, cost)):
            steps = _placed(result, steps, "long_pauses", share)
    return steps


def _mostly_startup(result: Result) -> bool:
    """Whether most of a recording without steps is start-up, so that nothing shows that the rest
    recurs.
    """
    stepped = any(each(result.ranks, "steps.found"))
    return not stepped and result.verdict.startup_ns > MOST.value * all_windows_ns(result)


def _launches_nothing_frac(result: Result) -> float:
    """How much of the windows hosts are late in the range in which they are late the most, where it
    launches nothing and holds most of it: no graph and no larger launch makes that shorter.
    """
    late_ns = 0
    for rank in result.ranks:
        spots, absent = rank.addresses, rank.absent_ns
        if not spots or not absent or not spots.hosts or spots.gpu_addresses_left_out.rows:
            continue
        first = spots.hosts[0]
        launching = {spot.name for spot in spots.gpu_addresses if spot.kind == first.kind}
        whole_ns = spots.host_starved_ns + spots.host_blocking_ns
        unnamed = absent.launch_starved.get("python", 0) >= first.starved_ns > MOST.value * whole_ns
        if unnamed and first.kind == "range" and first.name not in launching:
            late_ns += first.starved_ns
    return late_ns / max(1, all_windows_ns(result))


def _pauses_frac(wall: Wall, cost: float) -> float:
    """How much long pauses of unknown cause cost, where that is a wall of its own or most of the
    host's.
    """
    kinds, cost_ns = wall.cost_by_kind_ns or {}, wall.cost_ns
    part = min(1.0, sum(kinds.get(kind, 0) for kind in _PAUSES) / (cost_ns or 1))
    is_large = part > MOST.value or cost * part >= WALL.value
    if cost_ns and is_large:
        return cost * part
    return 0.0


def _placed(result: Result, steps: list[Step], how: str, frac: float) -> list[Step]:
    look = _look(how, result, frac)
    if look.title in each(steps, "title"):
        return steps
    before = takewhile(lambda step: (step.high or 0.0) >= frac, steps)
    place = min(STEPS - 1, len([*before]))
    return [*steps[:place], look, *steps[place:]]


def _look(how: str, result: Result, frac: float | None = None) -> Step:
    look, missing = words_of("look")[how], words_of("look_cure")[how]
    run, acts = result.run, optional("targets {}", frac, percent)
    if how == "communication" and run and run.arrives_last:
        look = "Find why the rank that arrives last is late"
    if missing == "all_ranks" and len(result.ranks) > 1:
        missing = "two_steps"  # the ranks are here, and one step does not show who is always late
    called = None
    if how == "exposed_copy":
        called = copied_step(result, acts)
    elif missing == "stacks" and how != "before_work":
        called = called_step(result, acts, how)
    if called:
        return called
    if missing == "stacks" and {*each(result.traces, "capture.stacks")} == {True}:
        missing = "recorded_stacks"
        if how == "host_overhead" and recorded_by(recorder_kind(result) or "") == TORCH:
            look = words_of("look")["slowed_by_stacks"]
    return Step("", words(look), acts, (), (words(sentence(cure(missing, recorder_kind(result)))),))
