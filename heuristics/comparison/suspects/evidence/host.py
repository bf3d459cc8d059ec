"""A host that launches later: pauses, waits, where its process runs, and a GPU too fast for it."""

from typing import Final

from heuristics.comparison.suspects.causes import named
from heuristics.comparison.suspects.evidence.setup import LESS, graph_shares
from heuristics.comparison.suspects.evidence.signs import CLASSES, MAIN, grew, kernel_counts, same_count
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View
from traces.missing import known
from traces.sections.trace import Trace
from traces.spelling import in_ms, percent, signed_ms

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
