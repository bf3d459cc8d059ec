"""All fixes by id. A new one is a file beside this and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heuristics.fixes import (
    cmp_1_grouped_gemm,
    cmp_2_fusions,
    cmp_3_low_precision,
    cmp_4_larger_shapes,
    com_1_ep_overlap,
    com_2_dispatcher,
    com_3_dispatcher_sms,
    com_4_dp_overlap,
    com_5_tp_overlap,
    com_6_pp_layout,
    com_10_parallel_folding,
    com_11_routing_balance,
    hst_1_cpu_binding,
    hst_2_manual_gc,
    hst_3_partial_graphs,
    hst_4_fewer_kernels,
    hst_5_more_work_per_launch,
    hst_6_fewer_syncs,
    hst_7_full_iteration_graph,
    mem_1_expandable_segments,
    mem_2_selective_recompute,
    mem_4_low_precision,
    mem_5_flex_dispatcher,
    mem_6_activation_offload,
    mem_7_optimizer_offload,
    mem_8_parallelism,
    mem_9_full_recompute,
)
from heuristics.fixes.fix import Fix

_MODULES: Final = (
    mem_1_expandable_segments,
    mem_2_selective_recompute,
    mem_4_low_precision,
    mem_5_flex_dispatcher,
    mem_6_activation_offload,
    mem_7_optimizer_offload,
    mem_8_parallelism,
    mem_9_full_recompute,
    com_1_ep_overlap,
    com_2_dispatcher,
    com_3_dispatcher_sms,
    com_4_dp_overlap,
    com_5_tp_overlap,
    com_6_pp_layout,
    com_10_parallel_folding,
    com_11_routing_balance,
    hst_1_cpu_binding,
    hst_2_manual_gc,
    hst_3_partial_graphs,
    hst_4_fewer_kernels,
    hst_5_more_work_per_launch,
    hst_6_fewer_syncs,
    hst_7_full_iteration_graph,
    cmp_1_grouped_gemm,
    cmp_2_fusions,
    cmp_3_low_precision,
    cmp_4_larger_shapes,
)

CATALOGUE: Final[Mapping[str, Fix]] = {module.FIX.id: module.FIX for module in _MODULES}
"""Fix id (COM-2) -> fix, in the order of the catalogue."""
