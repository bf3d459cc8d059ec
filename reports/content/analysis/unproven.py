"""Where no wall is proven: what the time may go to.

Of compute the part is what it can cost. The steps that find its cause: `find_out.py`.
"""

from collections import Counter
from math import prod
from typing import Final, Literal

from heuristics.result.judged import Bucket, Wall
from heuristics.result.result import Result
from reports.content.analysis.times import all_windows_ns, telling_rank
from reports.content.blocks import Code, Words, words
from reports.content.names import WHOLE_NAME, around, beyond, kernel_name, name_of, short_code, when
from reports.measures import words_of
from reports.rows import each, known_of, those
from traces.cures import cure
from traces.frozen import frozen
from traces.limits import MOST, NEARLY_ALL, QUARTER, WALL
from traces.measure.detected import SHORT
from traces.missing import Missing, known
from traces.names.kernels import classify_kernel
from traces.sections.tables import Kernel, WallId
from traces.spelling import duration, percent

_UNUSED: Final[dict[Bucket, tuple[WallId, ...]]] = {
    "exposed_comm": ("communication",),
    "exposed_copy": ("memory", "host_overhead"),
    "idle": ("host_overhead",),
}
"""Time that is not compute -> the walls that it may be, the likelier first."""


_PRODUCTS: Final = frozenset(f"compute.{name}" for name in ("gemm", "grouped_gemm", "attention"))
_MULTIPLIES: Final = _PRODUCTS | {"compute.convolution"}
_PASSES: Final = frozenset(
    f"compute.{name}"
    for name in (
        "activation",
        "elementwise",
        "layout",
        "loss",
        "memory",
        "norm",
        "pool",
        "quantize",
        "softmax",
    )
)
Streams = Literal["vector_products", "passes"]
_WIDE: Final = "wide_matrix_frac"
"""The measure that tells of matrix work in FP32 or TF32."""


@frozen
class Unused:
    """The largest part of time that is not compute; `wall`: the wall that it may be and nothing
    decides.

    Compute where matrix work is in FP32 or TF32, and what that costs, undecided, can be more than
    this part.
    """

    bucket: Bucket
    frac: float
    wall: Wall | None


def unused(result: Result) -> Unused | None:
    """That part, where it is a tenth or more and no wall is proven; start-up is none of it.

    Beside a wall: exposed copies, where memory is not that wall.
    """
    startup_ns, whole_ns = result.verdict.startup_ns, all_windows_ns(result)
    if not whole_ns:
        return None
    parts = Counter[Bucket]()
    for bucket in _UNUSED:
        parts[bucket] = sum(known_of(result.ranks, f"budget_ns.{bucket}"))
    parts["idle"] -= startup_ns
    if result.verdict.wall:
        copied_frac = parts["exposed_copy"] / whole_ns
        if those(findings(result), id="memory") or copied_frac < WALL.value:
            return None
        return Unused("exposed_copy", copied_frac, None)
    ((largest, time_ns),) = parts.most_common(1)
    open_ = {wall.id: wall for wall in open_walls(result)}
    compute = open_.get("compute")
    if (
        compute
        and those(compute.evidence, measure=_WIDE)
        and (compute.at_most_frac or 0.0) * whole_ns > time_ns
    ):
        compute_ns = sum(each(result.ranks, "budget_ns.compute"))
        return Unused("compute", compute_ns / whole_ns, compute)
    if time_ns < WALL.value * (whole_ns - startup_ns):
        return None
    frac = time_ns / whole_ns
    likely = [open_[wall] for wall in _UNUSED[largest] if wall in open_]
    may_be = [wall for wall in likely if (wall.at_most_frac or frac) > MOST.value * frac]
    return Unused(largest, frac, next(iter(may_be), None))


def findings(result: Result) -> list[Wall]:
    """Walls of 10 % or more: the verdict's first, then by cost."""
    return sorted(
        those(result.walls, outcome="finding"),
        key=lambda wall: (wall.id != result.verdict.wall, -(wall.cost_frac or 0)),
    )


def dearest_frac(result: Result) -> float:
    """What the wall that costs most costs; 0 where none is proven."""
    return max((wall.cost_frac or 0.0 for wall in findings(result)), default=0.0)


@frozen
class Own:
    """The kernel of the program's own that takes longest, its part of the windows, that of all such
    kernels, and how many threads its largest launches have, None where that is unknown.
    """

    kernel: Code
    frac: float
    all_frac: float
    threads: int | None


def own_compute(result: Result) -> Own | None:
    """Where they take most of the time: kernels of unknown class that do not communicate, or one
    that is no product of matrices, outside of training. No change is known for these. None where
    compute is the wall, or a wall costs more.
    """
    may_communicate = those(open_walls(result), id="communication") and not nothing_judged(result)
    if may_communicate or not result.ranks:
        return None
    rank = telling_rank(result)
    trains, times_ns = rank.detected.training_step, Counter[str]()
    threads = dict[str, int | None]()
    for row in rank.kernel_table.rows:
        of_library = row.key in _PRODUCTS and classify_kernel(row.name).subclass != "own"
        if row.key.startswith("compute.") and not (trains or of_library):
            name = kernel_name(row.name, WHOLE_NAME)
            times_ns[name] += row.work_ns
            threads.setdefault(name, _threads(row))
    for name, time_ns in times_ns.most_common(1):
        frac = min(1.0, time_ns / rank.budget_ns.window)
        all_frac = min(1.0, max(frac, sum(each(rank.unknown_kernels, "frac"))))
        if all_frac >= max(MOST.value, dearest_frac(result)) and result.verdict.wall != "compute":
            return Own(short_code(name), frac, all_frac, threads[name])
    return None


def by_bandwidth(result: Result) -> tuple[Streams, float] | None:
    """What moves more bytes than it computes, and how much of the windows it takes; None where that
    is not most of them, or a wall costs more. Outside of training, where walls are small, it need
    only take more than matrix products do.

    Products of a matrix and a vector read each weight for one product, outside of training. Kernels
    that are no products pass over their tensors once, if they fill the GPU and outlast their
    launch.
    """
    times_ns, wall_frac = Counter[Streams | Literal["products"]](), dearest_frac(result)
    for rank in result.ranks[:1]:
        sms, trains = rank.sm.sm_count or 0, rank.detected.training_step
        for row in rank.kernel_table.rows:
            fills = prod(row.grid or (sms,)) >= sms
            if row.key in _PASSES and fills and row.work_ns >= SHORT.value * row.count:
                times_ns["passes"] += row.work_ns
            elif row.key in _MULTIPLIES:
                is_vector = not trains and classify_kernel(row.name).subclass == "gemv"
                times_ns["vector_products" if is_vector else "products"] += row.work_ns
        largest = not trains and wall_frac < QUARTER.value
        for what, time_ns in times_ns.most_common(1):
            frac = min(1.0, time_ns / rank.budget_ns.window)
            least = QUARTER.value if largest else MOST.value
            if what != "products" and frac >= max(least, wall_frac):
                return what, frac
    return None


def _threads(kernel: Kernel) -> int | None:
    grid, block = kernel.grid, kernel.block
    return prod(grid) * prod(block) if grid and block else None


def before_work(result: Result) -> Words:
    """That a program without steps takes longer up to its first work on the GPU, or to what repeats
    of it, than from there; and where it is meanwhile.
    """
    for rank in result.ranks[:1]:
        outside, first = rank.steps.outside_ns, words_of("first_of_unit").get(rank.steps.unit)
        if outside and first and outside.before_ns > rank.budget_ns.window:
            takes = f"Up to its {first} the program takes {duration(outside.before_ns)}"
            meanwhile = f", {duration(outside.preparing_ns)} of it in "
            return words(
                takes, around(meanwhile, words(outside.preparing and Code(outside.preparing))), "."
            )
    return words()


def unjudged(result: Result) -> list[Wall]:
    return those(result.walls, outcome="unmeasurable")


def nothing_judged(result: Result) -> bool:
    return len(unjudged(result)) == len(result.walls)


def is_cold(result: Result) -> bool:
    """Whether no wall is judged because the recording holds a start alone."""
    return cure("startup", recorder_kind(result)) in each(result.walls, "cure")


def shows_part(result: Result, part: Unused | None) -> bool:
    """Whether the largest part that is not compute is said: where a wall is judged, or it is most
    of whole programs, or nearly all of what was recorded.
    """
    if not nothing_judged(result):
        return True
    is_whole = {*each(result.ranks, "steps.whole")} == {True}
    enough = MOST if is_whole else NEARLY_ALL
    return part is not None and part.frac >= enough.value and not is_cold(result)


def open_walls(result: Result) -> list[Wall]:
    """Walls that could cost a tenth for all that this recording tells, the most they can cost
    first.
    """
    could_cost = [wall for wall in unjudged(result) if most_frac(wall) >= WALL.value]
    return sorted(could_cost, key=most_frac, reverse=True)


def most_frac(wall: Wall) -> float:
    """What a wall costs at most; all there is where nothing bounds it."""
    most = known(wall.at_most_frac)
    if most is None:
        return 1.0
    return most


def at_most(wall: Wall) -> str:
    most = most_frac(wall)
    return when(most < 1, f" (at most {percent(most)})")


def likely_communication(result: Result) -> tuple[Words, float] | None:
    """What is said of kernels of unknown class that are probably communication, and their share of
    a rank.
    """
    share, first, names = 0.0, "", set()
    for rank in result.ranks:
        probable = those(rank.unknown_kernels, probably_communication=True)
        names.update(each(probable, "name"))
        of_rank = sum(each(probable, "frac"))
        if of_rank > share:
            share, first = of_rank, probable[0].name
    if not names:
        return None
    probably = (
        "is probably communication: it runs on a stream of its own, and compute waits for it."
    )
    if len(names) > 1:
        probably = (
            "are probably communication: they run on streams of their own, and compute "
            "waits for them."
        )
    likely = f"{beyond(len(names), 1)} ({percent(share)} of the time) {probably}"
    return words(Code(kernel_name(first)), likely), share


def part_of_time(result: Result, part: Unused) -> str:
    takes = words_of("takes")[part.bucket]
    if part.bucket == "idle" and bucket_name(result, "idle") != name_of("idle"):
        takes = "Nothing was recorded for"
    elif part.bucket == "idle" and held_by(result) == "stalled":
        takes = "Launched work is held back on the GPU, idle for"
    return f"{takes} {percent(part.frac)} of the time."


def bucket_name(result: Result, bucket: Bucket) -> str:
    """A bucket's name; what may be work that was not seen is not called idle, nor unnamed work
    compute.
    """
    if bucket == "idle" and (
        held_by(result) == "unrecorded"
        or any(isinstance(rank.absent_ns, Missing) for rank in result.ranks)
    ):
        return "nothing recorded"
    if bucket == "compute" and not known_of(result.ranks, "budget_ns.exposed_comm"):
        return "busy"
    return name_of(bucket)


def held_by(result: Result) -> str:
    """What most of the idle time is where the host has launched: `unrecorded`, it waits for work
    from before the recording; `stalled`, the work does not begin; else nothing.
    """
    held_ns = Counter[str]()
    for rank in result.ranks:
        if absent := rank.absent_ns:
            held_ns["unrecorded"] += absent.blocking.get("unrecorded", 0)
            held_ns["stalled"] += absent.dependency_stalled
    for held, time_ns in held_ns.items():
        if time_ns > MOST.value * sum(each(result.ranks, "budget_ns.idle")):
            return held
    return ""


def recorder_kind(result: Result) -> str | None:
    """Who recorded it, by the kind of its first trace."""
    return next(iter(each(result.traces, "kind")), None)
