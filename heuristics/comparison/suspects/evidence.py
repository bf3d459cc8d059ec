"""What a trace shows of a cause, by the names that `causes.toml` asks for."""

from collections.abc import Callable, Mapping
from typing import Final

from heuristics.comparison.suspects import communication, compute, host
from heuristics.comparison.suspects.rule import Signs

EVIDENCE: Final[Mapping[str, Callable[..., Signs]]] = {
    one.__name__: one
    for one in (
        communication.main_part_is,
        communication.waits_more,
        compute.class_kernels,
        compute.gemms_ungrouped,
        compute.more_small_kernels,
        compute.more_work,
        compute.slower_alike,
        communication.deepep_before,
        communication.dispatcher_exchanged,
        communication.dispatcher_skipped,
        host.gpu_done_sooner,
        host.host_later,
        host.longer_gaps,
        host.loses_binding,
        host.overlap_costs_host,
        host.own_row,
        host.profiler_more,
        communication.late_rank_came,
        compute.allocates_more,
        compute.copies_more,
        compute.offloads_more,
        compute.recomputes_more,
        host.fewer_bits,
        host.on_gpu,
        host.replays_less,
        host.tp_above_one,
    )
}
"""Each takes what it is asked of, if anything, and last the view."""
