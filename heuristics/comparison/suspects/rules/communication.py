"""Communication that is hidden less, slower, more often, or waits for another rank; by what it is for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from heuristics.comparison.figures import milliseconds, signed_milliseconds
from heuristics.comparison.suspects.rules.rule import Rule, Signs, way_of
from heuristics.comparison.suspects.rules.signs import MAIN, Part, grew, main_part
from heuristics.comparison.suspects.view import View
from heuristics.result.rank import Rank
from heuristics.result.told import known

FAMILIES: Final = {
    "ep": ("expert all-to-all", ("ep_dispatch", "ep_combine", "ep_a2a", "ep_control")),
    "dp": ("data-parallel communication", ("dp_reduce_scatter", "dp_all_gather")),
    "all_reduce": ("all-reduce", ("all_reduce",)),
    "tp": ("tensor-parallel communication", ("tp",)),
    "pp": ("pipeline sends and receives", ("pp_p2p",)),
    "cp": ("context-parallel communication", ("cp",)),
    "sendrecv": ("send and receive of unknown purpose", ("sendrecv_unresolved",)),
    "other": ("other communication", ("other_comm",)),
}
"""Words and kinds of each family."""

_OVERLAPS: Final = {
    "ep": (
        "*overlap_moe_expert_parallel_comm",
        "*delay_wgrad_compute",
        "moe_shared_expert_overlap",
        "overlap_dispatch_backward_with_experts_wgrad",
        "high_priority_a2a_comm_stream",
        "env.TORCH_NCCL_HIGH_PRIORITY",
    ),
    "dp": ("*overlap_grad_reduce", "*overlap_param_gather*", "*bucket_size", "*align_param_gather"),
    "tp": ("*tp_comm_overlap*", "sequence_parallel"),
    "pp": ("*overlap_p2p_comm*", "*batch_p2p_comm", "virtual_pipeline_model_parallel_size"),
}
_SPEEDS: Final = ("version.nccl", "env.NCCL_*", "env.NVSHMEM_*", "env.USE_MNNVL", "gpu")
_SIZES: Final = {
    "ep": (
        "expert_model_parallel_size",
        "ep",
        "moe_*num_sms*",
        "moe_router_topk",
        "moe_router_load_balancing_type",
        "env.NUM_OF_*",
        "env.NVLINK_DOMAIN_SIZE",
        "nvlink_domain",
    ),
    "tp": ("tensor_model_parallel_size", "tp"),
    "pp": ("pipeline_model_parallel_size", "pp", "virtual_pipeline_model_parallel_size", "vpp", "*layout"),
    "cp": ("context_parallel_size", "cp", "cp_comm_type"),
    "dp": ("data_parallel_size", "ddp.*"),
}
_BATCH: Final = ("train.micro_batch_size", "train.global_batch_size", "*seq_length")
_SLOWER_NEXT: Final = {
    "pp": "look at the other stages' traces: a slow or heavier stage makes this one wait",
    "ep": "record all ranks of the group; then nccl-tests alltoall_perf on these nodes, both NCCL versions",
}
_SLOWER_ELSE: Final = (
    "nccl-tests on these nodes, with the NCCL of both sides (NCCL_DEBUG=INFO tells the choice)"
)
_NCCL: Final = (
    "ours: what count and duration say. NCCL releases differ: NVIDIA/nccl issue 1876 (2.22 to 2.25, ring), "
    "2094 (2.28 to 2.29, small all-reduce)"
)


def _rows(family: str) -> tuple[str, ...]:
    return tuple(f"exposed_comm.{kind}" for kind in FAMILIES[family][1])


def _part(family: str, wanted: Part, view: View) -> Signs:
    """The main part of what a family grew by; expert all-to-all that waits is not slower."""
    rows = grew(view, *_rows(family))
    if main_part(rows) != wanted:
        return None
    if family == "ep" and wanted == "duration" and _waits(view):
        return None
    before, after = sum(row.base_count for row in rows), sum(row.new_count for row in rows)
    parts = [(row.count_ns or 0, row.duration_ns or 0, row.overlap_ns or 0) for row in rows]
    sums = [signed_milliseconds(view.sign * sum(part)) for part in zip(*parts, strict=True)]
    return (
        view.arrow(f"{FAMILIES[family][0]}, kernels a step", f"{before:.0f}", f"{after:.0f}"),
        f"by number {sums[0]}, by duration {sums[1]}, by overlap {sums[2]} a step",
    )


def _seen(family: str, wanted: Part) -> Callable[[View], Signs]:
    return partial(_part, family, wanted)


def _waiting_ns(rank: Rank) -> int | None:
    a2a = known(rank.a2a)
    waiting_ns = known(a2a.waiting_like_ns) if a2a else None
    return None if waiting_ns is None else waiting_ns // len(rank.lengths_ns)


def _waits(view: View) -> Signs:
    before, after = _waiting_ns(view.before), _waiting_ns(view.after)
    grown_ns = sum(row.delta_ns for row in grew(view, *_rows("ep")))
    if before is None or after is None or grown_ns <= 0 or after - before < MAIN.value * grown_ns:
        return None
    return (
        view.arrow("of expert all-to-all like waiting a step", milliseconds(before), milliseconds(after)),
    )


def _family_rules(family: str) -> tuple[Rule, ...]:
    words, rows = FAMILIES[family][0], _rows(family)
    return (
        Rule(
            id=f"overlap_lost.{family}",
            title=f"Less of {words} is hidden under compute",
            mirrored=f"More of {words} is hidden under compute",
            slower=rows,
            seen=_seen(family, "overlap"),
            said=_OVERLAPS.get(family, ()),
            says=way_of(-1),
            needs="seen",
            next="compare the overlap settings of both logs; CUDA_DEVICE_MAX_CONNECTIONS may serialise them",
            source=(
                "Megatron-Bridge, docs/training/communication-overlap.md at 067f987d: overlap of TP is off "
                "without a word where sequence parallelism is off"
            ),
        ),
        Rule(
            id=f"comm_slower.{family}",
            title=f"Each call of {words} takes longer: link, NCCL, or a rank that is late",
            mirrored=f"Each call of {words} takes less: link, NCCL, or a rank that was late",
            slower=rows,
            seen=_seen(family, "duration"),
            said=(*_SPEEDS, *_SIZES.get(family, ()), *_BATCH),
            needs="seen",
            next=_SLOWER_NEXT.get(family, _SLOWER_ELSE),
            source=_NCCL,
        ),
        Rule(
            id=f"comm_more.{family}",
            title=f"There are more calls of {words}",
            mirrored=f"There are fewer calls of {words}",
            slower=rows,
            seen=_seen(family, "count"),
            said=(*_SIZES.get(family, ()), *_BATCH),
            needs="seen",
            next="compare microbatches, layers, buckets and parallel sizes of both runs",
            source="ours: what count and duration say",
        ),
    )


WAITS: Final = Rule(
    id="arrival_wait",
    title="Expert all-to-all waits longer for another rank",
    mirrored="Expert all-to-all waits less for other ranks",
    slower=_rows("ep"),
    seen=_waits,
    said=("moe_router_load_balancing_type", "moe_aux_loss_coeff", "moe_router_force_*"),
    needs="seen",
    next="record all ranks of the expert-parallel group on the new side: which one is late, and in what?",
    source="Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64: balance; waiting by repetition",
)

RULES: Final = (WAITS, *(rule for family in FAMILIES for rule in _family_rules(family)))
