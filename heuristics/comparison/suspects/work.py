"""What a trace shows of compute and of its host: slower, more or other kernels, launches that come later."""

from collections.abc import Sequence
from typing import Final, Literal

from heuristics.comparison.figures import milliseconds, signed_milliseconds
from heuristics.comparison.suspects.rule import Signs, named, way
from heuristics.comparison.suspects.view import (
    CLASSES,
    MAIN,
    View,
    grew,
    kernel_counts,
    main_part,
    same_count,
)
from heuristics.result.compared import KernelDelta
from heuristics.result.known import known
from heuristics.result.rank import Rank
from heuristics.result.trace import Trace
from heuristics.walls.words import percent
from traces.limits import Limit

LESS: Final = Limit(
    0.05, "fraction of kernel work", "ours: a judgement: what one small module of a layer holds"
)


def graph_shares(view: View) -> tuple[float, float] | None:
    """Kernel work in CUDA graphs before and after, as a fraction; None where a side does not tell it."""
    before, after = (known(rank.detected.graph_share_frac) for rank in (view.before, view.after))
    return None if before is None or after is None else (before, after)


def replays_less(view: View) -> Signs:
    """Less kernel work in CUDA graphs; whether a setting of them changed."""
    shares = graph_shares(view)
    if shares is None:
        return ()
    before, after = shares
    if before - after < LESS.value:
        return None
    sentence = view.arrow("kernel work in CUDA graphs", percent(before), percent(after))
    if view.changes(*named("@graphs")) or known(view.facts.new.configuration) is None:
        return (sentence,)
    return sentence, "no setting of CUDA graphs changed: graphs that are asked for do not replay"


def fewer_bits(view: View) -> Signs:
    """Matrix work in a narrower precision, or casts that are new."""
    signs: tuple[str, ...] = ()
    for change in view.changes("detected.precision"):
        if way(change) == -1:
            return None
        signs += (view.arrow("precision in the trace", change.base, change.new),)
    none, some = view.counts.get("compute.quantize", (0.0, 0.0))
    if not none and some:
        signs += (view.arrow("kernels that cast to fewer bits a step", "0", f"{some:.0f}"),)
    pair = [known(rank.detected.precision) for rank in (view.before, view.after)]
    return signs or (() if None in pair or pair[0] != pair[1] else None)


def on_gpu(names: Sequence[str], view: View) -> Signs:
    """Ruled out on another GPU than it was published for."""
    gpu = known(view.after.gpu)
    if gpu is None:
        return ()
    return (f"it was published for this GPU: {gpu}",) if any(name in gpu for name in names) else None


def tp_above_one(view: View) -> Signs:
    """Ruled out where tensor parallelism is known to be 1."""
    _, size = view.known("tensor_model_parallel_size", "tp")
    if not isinstance(size, int):
        return ()
    return (f"tensor parallelism of {size}",) if size > 1 else None


SLOWER: Final = Limit(
    0.02, "fraction", "ours: the classes of two GPUs of one real run differ by 0.6 % at most"
)
SPREAD: Final = Limit(
    0.5, "of the slowdown", "ours: a judgement: what waits for memory loses less with the clock"
)
SHARE: Final = Limit(
    0.05, "fraction of compute", "ours: a judgement: smaller classes are a few short kernels"
)
MOST: Final = Limit(0.8, "fraction of compute", "ours: the rest are classes too small to be judged")
EXCHANGED: Final = Limit(
    0.25, "fraction of the class", "ours: a judgement: less is one GEMM of a layer out of many"
)
ClassWay = Literal["more", "exchanged", "grid", "slower"]


def _mean_ns(rank: Rank) -> dict[str, tuple[float, int]]:
    """Of each class the mean time of a kernel and the work of all."""
    rows = [row for row in known(rank.ledger) or () if row.row in CLASSES and row.count and row.work_ns]
    return {row.row: (row.work_ns / row.count, row.work_ns) for row in rows}


def slowdowns(view: View) -> dict[str, float]:
    """How many times longer a kernel of each large class takes; only of classes with as many as before."""
    before, after = _mean_ns(view.before), _mean_ns(view.after)
    total_ns = sum(work_ns for _, work_ns in before.values())
    large = [name for name, (_, work_ns) in before.items() if work_ns >= SHARE.value * total_ns]
    both = [name for name in large if name in after and same_count(*view.counts[name])]
    return {name: after[name][0] / before[name][0] for name in both}


def all_slower(view: View) -> float | None:
    """By how many times all large classes of compute are slower alike; None where they are not."""
    times, work = slowdowns(view), _mean_ns(view.before)
    told_ns = sum(work[name][1] for name in times)
    if len(times) < 3 or told_ns < MOST.value * sum(one[1] for one in work.values()):
        return None
    mean = sum(times[name] * work[name][1] for name in times) / told_ns
    alike = all(abs(one - mean) <= SPREAD.value * (mean - 1) for one in times.values())
    return mean if mean - 1 >= SLOWER.value and alike else None


def slower_alike(view: View) -> Signs:
    """All large classes take longer by the same factor."""
    mean = all_slower(view)
    if mean is None:
        return None
    times = slowdowns(view)
    least, most = percent(min(times.values()) - 1), percent(max(times.values()) - 1)
    return (
        f"{len(times)} classes with as many kernels as before differ alike: {percent(mean - 1)} in the mean, "
        f"from {least} to {most}",
    )


def way_of_class(view: View, class_: str) -> ClassWay | None:
    """How a class of compute that grew got longer; None where it did not, or nothing is the main part."""
    row = view.rows.get(f"compute.{class_}")
    if row is None or row.delta_ns <= 0:
        return None
    deltas = view.kernels(row.row)
    work_ns = max(row.base_ns, row.new_ns)
    new_ns, gone_ns = (_work_ns(deltas, change) for change in ("new", "gone"))
    if min(new_ns, gone_ns) >= EXCHANGED.value * work_ns:
        return "exchanged"
    if _work_ns(deltas, "grid") >= EXCHANGED.value * work_ns:
        return "grid"
    part = main_part((row,))
    if part != "duration":
        counts = row.base_count, row.new_count
        return "more" if part != "overlap" and counts[1] > counts[0] and not same_count(*counts) else None
    return "slower"


def _work_ns(deltas: tuple[KernelDelta, ...], change: str) -> float:
    """Work per step of the kernels of one change, on the side that has more of it."""
    mine = [one for one in deltas if one.change == change]
    return sum(
        max((one.base_each_ns or 0) * one.base_count, (one.new_each_ns or 0) * one.new_count) for one in mine
    )


def class_kernels(class_: str, wanted: ClassWay, view: View) -> Signs:
    """How one class got longer, with its kernels that changed most."""
    if way_of_class(view, class_) != wanted or (wanted == "slower" and all_slower(view) is not None):
        return None
    row = view.rows[f"compute.{class_}"]
    counts = view.arrow(f"{class_} kernels a step", f"{row.base_count:.0f}", f"{row.new_count:.0f}")
    changes: dict[ClassWay, tuple[str, ...]] = {
        "slower": ("slower",), "more": ("more", "new"), "exchanged": ("new", "gone"), "grid": ("grid",),
    }  # fmt: skip
    deltas = [one for one in view.kernels(row.row) if one.change in changes[wanted]]
    return (counts, *(_kernel(view, one) for one in deltas[:2]))


def _kernel(view: View, kernel: KernelDelta) -> str:
    before, after = (_each(ns) for ns in (kernel.base_each_ns, kernel.new_each_ns))
    grids = ""
    if kernel.base_grid != kernel.new_grid and kernel.base_grid and kernel.new_grid:
        grids = ", " + view.arrow("grid", _grid(kernel.base_grid), _grid(kernel.new_grid))
    return view.arrow(f"one {kernel.name[:60]}", before, after) + grids


def _each(ns: int | None) -> str:
    return "none" if ns is None else milliseconds(ns)


def _grid(grid: tuple[int, int, int]) -> str:
    return "x".join(str(blocks) for blocks in grid)


def more_small_kernels(view: View) -> Signs:
    """More small kernels beside as many others."""
    small, others = (
        kernel_counts(view, [name for name in CLASSES if (name in named("@small")) is wanted])
        for wanted in (True, False)
    )
    if not same_count(*others) or small[1] <= small[0] or same_count(*small):
        return None
    return (
        view.arrow("small kernels a step", f"{small[0]:.0f}", f"{small[1]:.0f}"),
        view.arrow("all other compute kernels a step", f"{others[0]:.0f}", f"{others[1]:.0f}"),
    )


def gemms_ungrouped(view: View) -> Signs:
    """Grouped GEMMs went, and others came."""
    grouped = view.counts.get("compute.grouped_gemm", (0.0, 0.0))
    gemms = view.counts.get("compute.gemm", (0.0, 0.0))
    if grouped[1] > (1 - MAIN.value) * grouped[0] or gemms[1] <= gemms[0] or not grouped[0]:
        return None
    return (
        view.arrow("grouped GEMMs a step", f"{grouped[0]:.0f}", f"{grouped[1]:.0f}"),
        view.arrow("other GEMMs a step", f"{gemms[0]:.0f}", f"{gemms[1]:.0f}"),
    )


def more_work(view: View) -> Signs:
    """All large classes have more kernels, alike."""
    before, after = kernel_counts(view)
    if after <= before or same_count(before, after):
        return None
    large = [counts for name, counts in view.counts.items() if name in CLASSES and counts[0] >= 1]
    times = [one[1] / one[0] for one in large]
    mean = after / before
    alike = [abs(one - mean) <= SPREAD.value * (mean - 1) for one in times]
    if len(times) < 3 or sum(alike) < len(alike) - 1:
        return None
    return (view.arrow("compute kernels a step, classes alike", f"{before:.0f}", f"{after:.0f}"),)


BINDING: Final = ("launcher.numa_binding", "cpu_bound_to_numa")
_GPU_ROWS: Final = (*CLASSES, "exposed_comm.*", "exposed_copy.*")


def own_row(name: str, view: View) -> Signs:
    """The row is its own sign: nothing else has that name."""
    rows = grew(view, name)
    return tuple(f"{row.row.partition('.')[2]} is what the launching thread does then" for row in rows)


def host_later(view: View) -> Signs:
    """The host is later for as many kernels, and not because the GPU has less to do."""
    before, after = kernel_counts(view)
    shares = graph_shares(view)
    host_ns, gpu_ns = view.delta_ns(*named("@own")), view.delta_ns(*_GPU_ROWS)
    regraphed = shares is not None and abs(shares[1] - shares[0]) >= LESS.value
    if host_ns <= 0 or not before or not same_count(before, after) or regraphed:
        return None
    if gpu_ns <= -MAIN.value * host_ns:
        return None
    return (view.arrow("compute kernels a step", f"{before:.0f}", f"{after:.0f}"),)


def longer_gaps(view: View) -> Signs:
    """As many kernels and as many of them in graphs, and longer gaps."""
    before, after = kernel_counts(view)
    shares = graph_shares(view)
    regraphed = shares is not None and abs(shares[1] - shares[0]) >= LESS.value
    if not before or not same_count(before, after) or regraphed:
        return None
    return (view.arrow("compute kernels a step", f"{before:.0f}", f"{after:.0f}"),)


def gpu_done_sooner(view: View) -> Signs:
    """The GPU has less to do, so that a host as slow as before shows."""
    host_ns, gpu_ns = view.delta_ns(*named("@own")), view.delta_ns(*_GPU_ROWS)
    if host_ns <= 0 or gpu_ns > -MAIN.value * host_ns:
        return None
    return (f"compute, communication and copies move {signed_milliseconds(view.sign * gpu_ns)} a step",)


def loses_binding(view: View) -> Signs:
    """As a host that is later; ruled out where the side after is bound."""
    _, bound = view.known(*BINDING)
    if bound is True:
        return None
    unbound = "not bound" if bound is False else "not known to be bound"
    signs = host_later(view)
    return None if signs is None else (*signs, f"ranks are {unbound} to NUMA nodes there")


def overlap_costs_host(view: View) -> Signs:
    """The host got later by more than is hidden now."""
    host_ns = view.delta_ns(*named("@host"), "launch_starved.sync")
    hidden_ns = max(-view.delta_ns("exposed_comm.ep_*", "exposed_comm.sendrecv_unresolved"), 0)
    if host_ns <= hidden_ns:
        return None
    return (f"the host costs {milliseconds(host_ns)} a step, and {milliseconds(hidden_ns)} more are hidden",)


def profiler_more(view: View) -> Signs:
    """The profiler's own part of the step grew."""
    before, after = (_perturbed(side) for side in (view.facts.base.traces, view.facts.new.traces))
    signs = own_row("launch_starved.profiler", view) or ()
    if before is not None and after is not None and after > before:
        signs += (view.arrow("profiler's part of the step", percent(before), percent(after)),)
    return signs


def _perturbed(traces: tuple[Trace, ...]) -> float | None:
    parts = (known(trace.capture.perturbation_frac) for trace in traces)
    return max((frac for frac in parts if frac is not None), default=None)
