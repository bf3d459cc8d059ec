"""The one sentence of a run, what it rests on, and the lines under it: recording, waits for batches."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from heuristics.result.judged import Bucket, Verdict, Wall
from heuristics.result.result import Result
from heuristics.walls.verdict import by_family
from reports.content.analysis.addresses import address_words
from reports.content.analysis.called import called
from reports.content.analysis.hang import hang_words, leading_hang
from reports.content.analysis.late import late_words
from reports.content.analysis.times import scale_of, stretch_name, telling_rank
from reports.content.analysis.unproven import (
    Unused,
    at_most,
    bucket_name,
    likely_communication,
    open_walls,
    part_of_time,
    unused,
)
from reports.content.blocks import Code, Headline, Tone, Words, words
from reports.content.names import gpu_of, is_set, name_of, sentence
from reports.measures import measures
from traces.limits import HALF_A_WALL, LITTLE, Limit
from traces.missing import known
from traces.sections.rank import Rank, Steps
from traces.sections.run import Late
from traces.sections.work import DataLoading
from traces.spelling import counted, gpu_model, in_ms, milliseconds, percent

DATA: Final = "data"
_ORDINALS: Final = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS: Final = ("", "", "two", "three", "four", "five", "six", "seven", "eight")


def data_line(result: Result, walls: list[Wall]) -> str:
    """How steps wait for their batches where a wall is of data, and what the input copies show.

    Beside other walls, or none, copies are told of where many are exposed.
    """
    rank = telling_rank(result)
    loading = rank.data_loading
    if loading is UNSET or not rank.steps.found:  # without steps nothing tells input from weights
        return ""
    if any((known(wall.cost_by_kind_ns) or {}).get(DATA) for wall in walls):
        return f"{_waits(rank, loading)} {_copies(rank, loading, LITTLE)}".strip()
    return _copies(rank, loading, HALF_A_WALL)


def _waits(rank: Rank, loading: DataLoading) -> str:
    count, steps, absent = known(loading.workers), len(rank.steps.used), known(rank.absent_ns)
    if not loading.waiting_steps:
        return ""
    if count is None or absent is None:
        return f"{loading.waiting_steps} of {steps} steps wait for their batch."
    if count == 1:
        waits = scale_of(rank).ms(absent.launch_starved.get(DATA, 0))
        return f"Each step waits {waits} ms for its batch: one worker or none, by the rhythm."
    which = f"Every {_ORDINALS[count]} step" if count < len(_ORDINALS) else f"One step in {count}"
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{which} waits longest: {number} workers, by the rhythm."


def _copies(rank: Rank, loading: DataLoading, least: Limit) -> str:
    share = loading.input_copies_exposed_ns / rank.budget_ns.window
    if share < least.value:
        return ""
    pageable = known(loading.input_copies_pageable)
    memory = "" if pageable is None else f", from {'pageable' if pageable else 'pinned'} memory"
    return f"Exposed copies of the input take {percent(share)}{memory}."


MOST: Final = 0.8
HALF: Final = 0.5
"""Parts of a wall's cost that its largest kind alone must win to stand for the wall, or beside it."""
_NAMED: Final = 2
_OPAQUE: Final = 3
"""Walls that a window of graphs recorded whole leaves unjudged: all but the host's."""
_TOO_LITTLE: Final = "too little else was recorded to judge any wall"
_FORCED: Final = (
    "Routing is forced to balance; real routing is slower. Published for one run: 32 % MFU balanced, "
    "15 % with its learned router (marin#7668)."
)


def headline(result: Result) -> Headline:
    found, first, tone = findings(result), "", Tone.NOTICE
    said: str | Words
    likely = likely_communication(result)
    if (hang := leading_hang(result)) is not None:
        label, said, tone = "HANGS IN", hang_words(hang), Tone.BAD
    elif differ := [one.text for one in result.config_findings if one.state == "counted_otherwise"]:
        label, said = "RECORDING AND CONFIGURATION DIFFER", sentence(differ[0])
        first = f"The recording itself is slowed by {_named(found)}." if found else ""
    elif result.verdict.startup_ns:
        label, said = "NOT A STEADY-STATE RECORDING", _startup(result)
        first = f"The rest is slowed by {_named(found)}." if found else ""
    elif (late := leading(result)) is not None:
        label, said, tone = "SLOWED BY", _by_late(result, late), Tone.BAD
        first = f"Beside it: {_named(found)}." if found else ""
    elif found:
        label, said, tone = "SLOWED BY", _named(found), Tone.BAD
    elif all(wall.outcome == "unmeasurable" for wall in result.walls):
        label, said = "NOT JUDGED", _unjudged(result)
    elif likely is not None and _is_largest(result, likely[1]):
        label, said = "MAY BE SLOWED BY", _probably(result, likely[0])
        likely = None
    elif (part := unused(result)) is not None:
        label, said = _largest_part(result, part)
    elif _is_opaque(result):
        label, said = "NOT JUDGED", f"{_unjudged(result)} {_busy(result)}"
    elif open_walls(result):
        label, said = "NO BOTTLENECK FOUND SO FAR", f"{_closest(result)} {_open(result)}"
    else:
        label, said, tone = "NO BOTTLENECK OF 10 % OR MORE", _closest(result), Tone.GOOD
    under = tuple(words(one) for one in (first, *_under(result)) if one)
    if likely is not None:
        under = (likely[0], *under)
    if _is_late(result) and (where := address_words(telling_rank(result))):
        under = (where, *under)
    return Headline(label, words(said.rstrip()) if isinstance(said, str) else said, tone, under)


def _is_largest(result: Result, share: float) -> bool:
    """Whether what is probably communication may be a wall, and takes more than any time without compute."""
    part = unused(result)
    is_open = any(wall.id == "communication" for wall in open_walls(result))
    return is_open and (part is None or share > part.frac)


def _probably(result: Result, said: Words) -> Words:
    wall = next(wall for wall in result.walls if wall.id == "communication")
    cost = f" The cost is not proven{at_most(wall)}. {_open(result, besides=wall)}"
    return words(*said, cost.rstrip())


def _is_late(result: Result) -> bool:
    """Whether a late host, its allocator included, holds the run back, or may: its code is then named.

    Of one rank: where there are several, the room is for who waits for whom.
    """
    if len(result.ranks) > 1:
        return False
    found = {wall.id for wall in findings(result)}
    return not found or bool(found & {"host_overhead", "memory"})


def leading(result: Result) -> Late | None:
    """Who makes others wait, where the repair comes before all other changes."""
    late = None if result.run is UNSET else known(result.run.late)
    return late if late is not None and late.repair_first else None


def _by_late(result: Result, late: Late) -> str:
    assert result.run is not UNSET, "who is late stands in it"
    return late_words(result.run, late, lambda place: called(result, result.ranks[place]))


def _largest_part(result: Result, part: Unused) -> tuple[str, str]:
    """No wall is proven, and a tenth or more of the time is not compute: that leads, with what it may be."""
    if (wall := part.wall) is None:
        said = f"{part_of_time(result, part)} {_nearest(result)}{_open(result)}"
        return "NO SINGLE CAUSE OF 10 %", said
    what = name_of(wall.id) if part.bucket == "idle" else name_of(part.bucket)
    said = f"{what} ({percent(part.frac)} of the time). Its cost is not proven{at_most(wall)}."
    if part.bucket == "compute":
        said += f" {sentence(wall.missing[0])}"
    return "MAY BE SLOWED BY", f"{said} {_open(result, besides=wall)}"


def _open(result: Result, besides: Wall | None = None) -> str:
    named = [name_of(wall.id) + at_most(wall) for wall in open_walls(result) if wall is not besides]
    return f"Not judged: {', '.join(named)}." if named else ""


def findings(result: Result) -> list[Wall]:
    """Walls of 10 % or more: the verdict's first, then by cost."""
    found = [wall for wall in result.walls if wall.outcome == "finding"]
    return sorted(found, key=lambda wall: (wall.id != result.verdict.wall, -(known(wall.cost_frac) or 0)))


def _named(found: list[Wall]) -> str:
    named = [f"{cause(wall)}{_share(wall)}" for wall in found[:_NAMED]]
    more = f", and {counted(len(found) - _NAMED, 'more')}" if len(found) > _NAMED else ""
    return " and ".join(named) + more


def _share(wall: Wall) -> str:
    share = known(wall.cost_frac)
    return "" if share is None else f" ({percent(share)})"


def main_kind(wall: Wall, least: float = MOST) -> str | None:
    """The kind that alone wins at least such a part of what the wall costs; None where no kind does."""
    kinds, cost_ns = by_family(known(wall.cost_by_kind_ns) or {}), known(wall.cost_ns)
    largest = next(iter(kinds), None)
    return largest if largest and cost_ns and kinds[largest] >= least * cost_ns else None


def cause(wall: Wall) -> str:
    """A wall by its largest kind where that is nearly all of it, by both where it is half, else by itself."""
    kinds, small = known(wall.cost_by_kind_ns) or {}, " too small to fill the GPU"
    named = measures().values() if wall.id == "compute" else ()
    classes = {one.name for one in named if one.group == "class"} & {*kinds}
    if kind := main_kind(wall, HALF):
        said = name_of(kind) + (small if kind in classes else "")
        return said if main_kind(wall) else f"{name_of(wall.id)}, mostly {said}"
    return f"kernels{small}" if kinds and classes == {*kinds} else name_of(wall.id)


def _startup(result: Result) -> str:
    window_ns, lost_ns = sum(rank.budget_ns.window for rank in result.ranks), result.verdict.startup_ns
    of = f"{in_ms(lost_ns)} ({percent(lost_ns / window_ns)}) of {in_ms(window_ns)}"
    judged = any(wall.outcome != "unmeasurable" for wall in result.walls)
    return f"Profiler and start-up take {of}; {'walls are judged on the rest' if judged else _TOO_LITTLE}."


def _closest(result: Result) -> str:
    bucket: Bucket | None = known(result.verdict.largest_bucket)
    part = known(result.verdict.largest_bucket_frac)
    if bucket is None or part is None:
        return _nearest(result).rstrip()
    return f"{_nearest(result)}Largest part: {bucket_name(result, bucket)}, {percent(part)}."


def _nearest(result: Result) -> str:
    """What costs most of what was judged clear; nobody acts on less than a hundredth."""
    clear = [
        (max(known(wall.cost_frac) or 0.0, known(wall.at_most_frac) or 0.0), wall)
        for wall in result.walls
        if wall.outcome == "clear"
    ]
    share, nearest = max(clear, key=lambda one: one[0], default=(0.0, None))
    if nearest is None:
        return ""
    if share < LITTLE.value:
        return "Nothing that was judged costs 1 % or more. "
    return f"Closest: {cause(nearest)}, at most {percent(share)}. "


def _is_opaque(result: Result) -> bool:
    return sum(wall.outcome == "unmeasurable" for wall in result.walls) >= _OPAQUE


def _busy(result: Result) -> str:
    """How busy the GPU is, which bounds the one wall that an opaque window leaves to judge."""
    window_ns = sum(rank.budget_ns.window for rank in result.ranks)
    busy = 1 - sum(rank.budget_ns.idle for rank in result.ranks) / window_ns
    costs = [known(wall.cost_frac) for wall in result.walls if wall.id == "host_overhead"]
    most = costs[0] if costs and costs[0] is not None else None
    host = "" if most is None else f", so the host costs at most {percent(most)}"
    return f"The GPU is busy for {percent(busy)} of the time{host}."


def _unjudged(result: Result) -> str:
    reasons = [wall.missing[0] for wall in result.walls if wall.missing]
    return sentence(reasons[0]) if reasons else "This recording does not show what the time is lost to."


def _under(result: Result) -> Iterator[str]:
    verdict = result.verdict
    if (level := known(verdict.confidence)) is not None:
        yield f"Confidence {level}{_because(verdict)}."
    yield data_line(result, findings(result))
    if (waits := _waits_for_late(result)) is not None:
        yield f"{percent(waits)} of the exposed communication is waiting for a late rank."
    if verdict.tied_with:
        yield "Both cost about the same: which one costs more is within the error."
    if forced_balance(result):
        yield _FORCED
    untrained = [rank for rank in result.ranks if rank.detected.training_step is False]
    if untrained and not _is_opaque(result):
        yield f"Not a training step ({untrained[0].detected.training_evidence}), so no fixes for training."


def _waits_for_late(result: Result) -> float | None:
    late = None if result.run is UNSET else known(result.run.late)
    slowed = any(wall.id == "communication" for wall in findings(result))
    share = late.exposed_frac if late is not None and slowed else None
    return share if share is not None and share >= HALF else None


def _because(verdict: Verdict) -> str:
    """The first reason for doubt that the headline does not say itself, and how many more there are."""
    reasons = verdict.confidence_reasons
    new = [one.text for one in reasons if not (one.id == "startup" and verdict.startup_ns)]
    said = ["start-up is part of it", *new[:1]] if len(new) < len(reasons) else new[:1]
    more = f" (and {counted(len(new) - 1, 'more reason')})" if len(new) > 1 else ""
    return f": {', and '.join(said)}{more}" if said else ""


def forced_balance(result: Result) -> bool:
    given = result.given.get("routing") == "force_balance"
    return given or is_set(result, "moe_router_force_load_balancing")


def title(result: Result) -> Words:
    names = [trace.name for trace in result.traces]
    return words(Code(names[0]), f" and {len(names) - 1} more" if len(names) > 1 else "")


def facts(result: Result) -> Words:
    rank = telling_rank(result)
    scale, steps = scale_of(rank), rank.steps
    many = len(result.ranks) > 1
    gpu = f"{gpu_of(rank)}, GPU {rank.device}"
    if many:
        gpu = _gpus(result, known(rank.gpu))
    whose = f"{called(result, rank)}: " if many else ""
    if not steps.used:
        return words(gpu, f"; {whose}no steps found, window of {scale.length}")
    low, high = known(steps.min_ns), known(steps.max_ns)
    spread = _spread(low, high) if low is not None and high is not None and low < high else ""
    spread = spread.replace(")", ", alternating)") if steps.alternating else spread
    dropped = f", {len(steps.dropped)} left out" if steps.dropped else ""
    return words(
        gpu, f"; {whose}{counted(len(steps.used), _repeated(steps))} of {scale.lengths}{spread}{dropped}"
    )


def _gpus(result: Result, model: str | None) -> str:
    """How many GPUs, of which model, and how many processes share them; just these where none can tell."""
    physical = [one.physical_gpu for one in result.ranks]
    used = zip(result.ranks, physical, strict=True)
    count = len({(one.trace, one.device if number is UNSET else number) for one, number in used})
    of, processes = "model not recorded" if model is None else gpu_model(model), len(result.ranks)
    if count == processes:
        return f"{count} GPUs, {of}" if model is None else f"{count} x {of}"
    if UNSET in physical:
        return f"{processes} processes, {of}"
    gpus = "one GPU" if count == 1 else f"{count} GPUs"
    return f"{gpus}, {of}, shared by {processes} processes"


def _repeated(steps: Steps) -> str:
    """A block is what repeats where nothing shows that it is a step."""
    return "repeating block" if steps.unit == "block" else stretch_name(steps)


def _spread(low_ns: int, high_ns: int) -> str:
    low, high = milliseconds(low_ns), milliseconds(high_ns)
    return f" ({low} to {high})" if low != high else f" (equal within {percent((high_ns - low_ns) / low_ns)})"
