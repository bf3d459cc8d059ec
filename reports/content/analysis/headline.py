"""The one sentence of a run, what it rests on, and the lines under it."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

from heuristics.result.judged import Bucket, Wall
from heuristics.result.result import Result, late_rank
from heuristics.walls.verdict import by_family
from reports.content.analysis.addresses import address_words
from reports.content.analysis.batches import data_line, input_share
from reports.content.analysis.called import called
from reports.content.analysis.hang import hang_words, leading_hang
from reports.content.analysis.late import late_words, leading
from reports.content.analysis.times import all_windows_ns, telling_rank
from reports.content.analysis.unproven import (
    Own,
    Unused,
    at_most,
    before_work,
    bucket_name,
    by_bandwidth,
    dearest_frac,
    findings,
    held_by,
    is_cold,
    likely_communication,
    nothing_judged,
    open_walls,
    own_compute,
    part_of_time,
    shows_part,
    unjudged,
    unused,
)
from reports.content.blocks import Headline, Tone, Words, filled, words
from reports.content.names import beyond, is_set, name_of, optional, sentence, when
from reports.measures import measures, words_of
from reports.rows import each, those
from traces.limits import HALF_A_WALL, LITTLE, NEARLY_ALL, QUARTER, WALL
from traces.missing import known
from traces.sections.rank import Rank
from traces.spelling import in_ms, percent

_OF_THE_HOST: Final = {"host_overhead", "memory"}
"""Walls of a late host, its allocator included: its code is then named.

Of one rank: where there are several, the room is for who waits for whom.
"""


MOST: Final = 0.8
HALF: Final = 0.5
"""Parts of a wall's cost that its largest kind alone must win to stand for the wall, or beside
it."""
_OWN: Final = "BOUND BY ITS OWN KERNELS"
_BANDWIDTH: Final = "BOUND BY MEMORY BANDWIDTH"
_COPIES: Final = "BOUND BY COPIES"
_MOST_IN: Final[dict[Bucket, str]] = {
    "exposed_copy": _COPIES,
    "exposed_comm": "MOSTLY COMMUNICATION",
}
_UNSTEADY: Final = "NOT A STEADY-STATE RECORDING"
_NAMED: Final = 2
_OPAQUE: Final = 3
"""Walls that a window of graphs recorded whole leaves unjudged: all but the host's."""
_FORCED: Final = (
    "Routing is forced to balance; real routing is slower. Published for one run: 32 % MFU "
    "balanced, 15 % with its learned router (marin#7668)."
)


def headline(result: Result) -> Headline:
    slowing, first, tone = findings(result), "", Tone.NOTICE
    said: str | Words
    led: Unused | None = None  # the copies that lead beside walls
    likely, part, own = likely_communication(result), unused(result), own_compute(result)
    classes, judged, streams = _classes(result), not nothing_judged(result), by_bandwidth(result)
    beside = f"Beside it: {_named(slowing)}." if slowing else _nearest(result)
    open_comm = those(open_walls(result), id="communication")
    if (hang := leading_hang(result)) is not None:
        label, said, tone = "HANGS IN", hang_words(hang), Tone.BAD
    elif differ := those(result.config_findings, state="counted_otherwise"):
        label, said = "RECORDING AND CONFIGURATION DIFFER", sentence(differ[0].text)
        first = when(slowing, f"The recording itself is slowed by {_named(slowing)}.")
    elif not (judged and (own or streams)) and starts_up(result):
        label, said = _UNSTEADY, _startup(result)
        first = when(slowing, f"The rest is slowed by {_named(slowing)}.")
    elif (late := leading(result)) and (run := result.run):
        label, tone = "SLOWED BY", Tone.BAD
        said = late_words(run, late, lambda place: called(result, result.ranks[place]))
        first = when(slowing, beside)
    elif judged and streams:
        takes = words_of("streams")[streams[0]].format(percent(streams[1]))
        label, said = _BANDWIDTH, f"{takes} {beside}"
    elif own and judged:
        inside = "What holds it back inside, this recording does not show."
        label, said = _OWN, words(*_takes(own), f" {inside} {beside}")
    elif slowing and part is not None and part.frac >= max(HALF, dearest_frac(result)):
        label, said = _COPIES, f"{part_of_time(result, part)} {beside}"
    elif classes and judged and dearest_frac(result) < QUARTER.value:
        label, said, classes = "MOSTLY COMPUTE", f"{sentence(classes)} {beside}", ""
    elif slowing:
        led, label, tone = _leading_copies(result, part), "SLOWED BY", Tone.BAD
        said = _named(slowing, led)
    elif not judged and not shows_part(result, part):
        label = _UNSTEADY if is_cold(result) else "NOT JUDGED"
        said = _unjudged(result)
    elif likely and open_comm and (part is None or likely[1] > part.frac):
        (wall,) = open_comm
        label, cost = "MAY BE SLOWED BY", f" The cost is not proven{at_most(wall)}."
        said = words(likely[0], f"{cost} {_open(result, besides=wall)}".rstrip())
        likely = None
    elif part is not None:
        label, said = _largest_part(result, part)
    elif _is_opaque(result):
        label, said = "NOT JUDGED", f"{_unjudged(result)} {_busy(result)}"
    elif open_walls(result):
        said, classes = f"{_closest(result)} {_open(result)}", ""
        label = "NO BOTTLENECK FOUND SO FAR"
    else:
        label, tone = "NO BOTTLENECK OF 10 % OR MORE", Tone.GOOD
        said, classes = _closest(result), ""
    under, rank = list[str | Words](), telling_rank(result)
    if result.verdict.startup_ns and label != _UNSTEADY:
        under.append(_startup(result))
    under.append(when(slowing and not led and label != _COPIES, _beside_walls(result, part)))
    if own and label != _OWN:
        under.append(words("Most of the time is compute: ", *_takes(own)))
    elif not own and label != _BANDWIDTH and judged:
        under.append(optional("Most of the time is compute: {}.", classes))
    under.append(first)
    of_host = not slowing or label == _UNSTEADY or {*each(slowing, "id")} & _OF_THE_HOST
    if len(result.ranks) == 1 and of_host:
        under += address_words(rank)
    if likely:
        under.append(likely[0])
    under += (before_work(result), *_under(result))
    if isinstance(said, str):
        said = words(said.rstrip())
    return Headline(label, said, tone, filled(under))


def _classes(result: Result) -> str:
    """What compute is by class where it is most of the time, is no wall, and is not of training."""
    rank = telling_rank(result)
    named = {*each(findings(result), "id"), *each(open_walls(result), "id")}
    part = rank.budget_frac.compute
    if rank.detected.training_step or "compute" in named or part < HALF:
        return ""
    return _large_classes(rank)


def _large_classes(rank: Rank) -> str:
    classes, window_ns = Counter(rank.compute_by_class_ns or {}), rank.budget_ns.window
    large = [
        f"{name_of(name)} {percent(time_ns / window_ns)}"
        for name, time_ns in classes.most_common(_NAMED)
        if time_ns >= WALL.value * window_ns
    ]
    return ", ".join(large)


def _takes(own: Own) -> Words:
    takes, all_take = percent(own.frac), percent(own.all_frac)
    others = when(all_take != takes, f", all of the program's own {all_take}")
    return words(own.kernel, f" takes {takes}{others}.")


def _largest_part(result: Result, part: Unused) -> tuple[str, str]:
    """No wall is proven, and a tenth or more of the time is not compute: that leads, with what it
    may be.
    """
    if (wall := part.wall) is None:
        text = part_of_time(result, part)
        if part.bucket in _MOST_IN and part.frac >= HALF:
            return _MOST_IN[part.bucket], f"{text} {_open(result)}"
        if part.bucket == "exposed_copy" and _leading_copies(result, part):
            return "SLOWED BY", f"{_named([], part)}. {_nearest(result)}{_open(result)}"
        text += f" {_nearest(result)}{_open(result)}"
        if part.bucket == "idle" and part.frac >= HALF and held_by(result) == "stalled":
            return "HELD BACK ON THE GPU", text
        return "NO SINGLE CAUSE OF 10 %", text
    what = name_of(wall.id) if part.bucket == "idle" else name_of(part.bucket)
    text = f"{what} ({percent(part.frac)} of the time). Its cost is not proven{at_most(wall)}."
    if part.bucket == "compute":
        text += f" {sentence(wall.missing[0])}"
    return "MAY BE SLOWED BY", f"{text} {_open(result, besides=wall)}"


def _open(result: Result, besides: Wall | None = None) -> str:
    named = [name_of(wall.id) + at_most(wall) for wall in open_walls(result) if wall is not besides]
    return optional("Not judged: {}.", named, ", ".join)


def _leading_copies(result: Result, part: Unused | None) -> Unused | None:
    """Exposed copies of steps that take more than any wall costs; without steps they may be what is
    done once.
    """
    if part and part.frac > dearest_frac(result) and telling_rank(result).steps.found:
        return part
    return None


def _beside_walls(result: Result, part: Unused | None) -> str:
    """The time that no wall explains, unless the input's copies, which are told apart, are it."""
    if part is None or (input_share(telling_rank(result)) or 0.0) >= HALF_A_WALL.value:
        return ""
    return part_of_time(result, part)


def _named(walls: list[Wall], led: Unused | None = None) -> str:
    """`led`: the exposed copies that lead."""
    named = [cause(wall) + optional(" ({})", wall.cost_frac, percent) for wall in walls]
    if led:
        named.insert(0, f"exposed copies ({percent(led.frac)})")
    return " and ".join(named[:_NAMED]) + beyond(len(named), _NAMED, ", and {} more")


def main_kind(wall: Wall, least: float = MOST) -> str | None:
    """The kind that alone wins at least such a part of what the wall costs; None where no kind
    does.
    """
    kinds, cost_ns = by_family(wall.cost_by_kind_ns or {}), wall.cost_ns
    largest = next(iter(kinds), None)
    if largest and cost_ns and kinds[largest] >= least * cost_ns:
        return largest
    return None


def kind_name(wall: Wall, kind: str) -> str:
    """A kind of a wall's cost; of matrix work in FP32 or TF32 the one that nearly all of it is
    in.
    """
    if kind == "low_precision_unused":
        for share in those(wall.evidence, measure="tf32_matrix_frac"):
            if share.value >= NEARLY_ALL.value:
                return "matrix work in TF32"
            if 1 - share.value >= NEARLY_ALL.value:
                return "matrix work in FP32"
    return name_of(kind)


def cause(wall: Wall) -> str:
    """A wall by its largest kind where that is nearly all of it, by both where it is half, else by
    itself.
    """
    kinds, small = wall.cost_by_kind_ns or {}, " too small to fill the GPU"
    classes = set()
    if wall.id == "compute":
        classes.update(each(those(measures().values(), group="class"), "name"))
    if kind := main_kind(wall, HALF):
        largest_kind = kind_name(wall, kind) + when(kind in classes, small)
        if main_kind(wall):
            return largest_kind
        return f"{name_of(wall.id)}, mostly {largest_kind}"
    if kinds and {*kinds} <= classes:
        return f"kernels{small}"
    return name_of(wall.id)


def _startup(result: Result) -> str:
    whole_ns, lost_ns, count = all_windows_ns(result), result.verdict.startup_ns, len(result.ranks)
    judged_rest = "too little else was recorded to judge any wall"
    if not nothing_judged(result):
        judged_rest = "walls are judged on the rest"
    takes = f"{in_ms(lost_ns / count)} ({percent(lost_ns / whole_ns)})"
    of = f"{takes} of {when(count > 1, 'a mean window of ')}{in_ms(whole_ns / count)}"
    return f"The profiler, start-up and single pauses take {of}; {judged_rest}."


def starts_up(result: Result) -> bool:
    """Whether start-up takes a quarter of what was recorded, and the first wall costs no more."""
    costs = sum(wall.cost_ns or 0 for wall in findings(result)[:1])
    return result.verdict.startup_ns >= max(costs, QUARTER.value * all_windows_ns(result), 1)


def _closest(result: Result) -> str:
    bucket: Bucket | None = known(result.verdict.largest_bucket)
    part = known(result.verdict.largest_bucket_frac)
    if bucket is None or part is None:
        return _nearest(result).rstrip()
    inside = when(bucket == "compute", optional(" ({})", _large_classes(telling_rank(result))))
    return (
        f"{_nearest(result)}Largest part: {bucket_name(result, bucket)}, {percent(part)}{inside}."
    )


def _nearest(result: Result) -> str:
    """What costs most of what was judged clear; nobody acts on less than a hundredth."""
    nearest = max(those(result.walls, outcome="clear"), key=_clear_frac, default=None)
    if nearest is None:
        return ""
    if _clear_frac(nearest) < LITTLE.value:
        return "Nothing that was judged costs 1 % or more. "
    return f"Closest: {cause(nearest)}, at most {percent(_clear_frac(nearest))}. "


def _clear_frac(wall: Wall) -> float:
    return max(wall.cost_frac or 0.0, wall.at_most_frac or 0.0)


def _is_opaque(result: Result) -> bool:
    return len(unjudged(result)) >= _OPAQUE


def _busy(result: Result) -> str:
    """How busy the GPU is, which bounds the one wall that an opaque window leaves to judge."""
    busy = 1 - sum(each(result.ranks, "budget_ns.idle")) / all_windows_ns(result)
    busy_words = f"The GPU is busy for {percent(busy)} of the time"
    for wall in those(result.walls, id="host_overhead"):
        busy_words += optional(", so the host costs at most {}", wall.cost_frac, percent)
    return f"{busy_words}."


def _unjudged(result: Result) -> str:
    reasons = chain.from_iterable(each(result.walls, "missing"))
    return sentence(next(reasons, "this recording does not show what the time is lost to"))


def _under(result: Result) -> Iterator[str]:
    verdict = result.verdict
    walls, late = findings(result), late_rank(result)
    if level := verdict.confidence:
        # the first reason for doubt that the headline does not say itself, and how many more there
        # are
        reasons = verdict.confidence_reasons
        new = [
            reason.text for reason in reasons if reason.id != "startup" or not verdict.startup_ns
        ]
        doubts = new[:1]
        if len(new) < len(reasons):
            doubts.insert(0, "start-up is part of it")
        because = optional(": {}", ", and ".join(doubts))
        yield f"Confidence {level}{because}{beyond(len(new), 1, ' (and {})', 'more reason')}."
    yield data_line(result, walls)
    rank = telling_rank(result)
    graphed = rank.detected.graph_share_frac or 0.0
    if graphed >= WALL.value and those(walls, id="host_overhead"):
        yield f"CUDA graphs hold {percent(graphed)} of the kernel work."
    waits = (late and late.exposed_frac) or 0.0
    if waits >= HALF and those(walls, id="communication"):
        yield f"{percent(waits)} of the exposed communication is waiting for a late rank."
    retried, later = rank.memory.allocator_retry_frac, len(rank.steps.used) - 1
    if retried and those(walls, id="memory"):
        in_steps = f"{round(retried * later)} of {later} steps after the first"
        yield f"GPU memory is freed and taken again in {in_steps}."
    if verdict.tied_with:
        yield "Both cost about the same: which one costs more is within the error."
    is_forced = result.given.get("routing") == "force_balance"
    if is_forced or is_set(result, "moe_router_force_load_balancing"):
        yield _FORCED
    untrained = those(each(result.ranks, "detected"), training_step=False)
    if untrained and not _is_opaque(result):
        evidence = untrained[0].training_evidence
        yield f"Not a training step ({evidence}), so no fixes for training."
