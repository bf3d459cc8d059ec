"""A host that launches later, and what a run is set up as.

Pauses, waits, where its process runs, a GPU too fast for it; graphs, precision, GPU, tensor parallelism.
"""

from collections.abc import Sequence
from typing import Final

from heuristics.comparison.suspects.causes import named
from heuristics.comparison.suspects.direction import way
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import CLASSES, MAIN, View, grew, kernel_counts, same_count
from traces.limits import Limit
from traces.missing import known
from traces.sections.trace import Trace
from traces.spelling import in_ms, percent, signed_ms

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
    return (f"compute, communication and copies move {signed_ms(view.sign * gpu_ns)} a step",)


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
    return (f"the host costs {in_ms(host_ns)} a step, and {in_ms(hidden_ns)} more are hidden",)


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
