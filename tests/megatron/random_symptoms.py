"""What a run shows, drawn at random: one cost that may be a wall, and shares of all the others."""

from __future__ import annotations

import json
from random import Random
from typing import Final

from heuristics.evidence.symptoms import Symptoms, read_symptoms
from traces.account.pieces import CAUSES
from traces.names.kernels import COMM_KINDS
from traces.settings.settings import Settings
from traces.training_log.log import Stage

GB: Final = 10**9
LATE: Final = ("slow_device", "slow_host", "slow_link", "routing_imbalance")
STAGES: Final[tuple[Stage, ...]] = ("setup", "forward", "backward", "optimizer")
_CAUSES: Final = tuple(cause for cause in CAUSES if cause != "host_comm")
"""Megatron moves data by NCCL's kernels and not by MPI's calls."""
_BUCKETS: Final = ("compute", "exposed_comm", "exposed_copy", "idle")
_OVERLAP: Final = "overlap_moe_expert_parallel_comm"
_SIZE_OF: Final = {
    "tp": "tensor_model_parallel_size",
    "pp_p2p": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
}


def random_symptoms(draw: Random, settings: Settings) -> Symptoms:
    """Symptoms of one rank or two; sometimes the log says that memory ran out."""
    ranks = [_rank(draw, number, settings) for number in range(draw.choice((1, 1, 2)))]
    found: dict[str, object] = {"ranks": ranks}
    if draw.random() < 0.2:
        wait = draw.choice((0.0, 0.1, 0.3))
        found["run"] = {"late": {"cause": draw.choice(LATE), "rank": 0, "wait_frac": wait}}
    if draw.random() < 0.1:
        found["log"] = {"out_of_memory": draw.choice(STAGES)}
    if draw.random() < 0.3:
        found["capture"] = {"ranks_seen": len(ranks), "world_size": 8}
    return read_symptoms(json.dumps(found), "symptoms.json")


def _rank(draw: Random, number: int, settings: Settings) -> dict[str, object]:
    budget = _shares(draw, _BUCKETS, 1.0)
    absent = 1.0 - budget["compute"]
    starved = draw.choice((0.0, 0.1, 0.5, 0.9)) * absent
    peak = draw.choice((None, 30, 60, 79))
    wrong = draw.random() < 0.05
    facts = Settings() if wrong else settings  # now and then the trace contradicts the configuration
    dense = "num_moe_experts" in facts and facts.value("num_moe_experts") is None
    grouped = facts.value("moe_grouped_gemm") is not False
    overlapped = any(facts.value(f"{section}{_OVERLAP}") for section in ("", "comm_overlap."))
    return {
        "rank": number,
        "budget_frac": budget,
        "exposed_comm_by_kind_frac": _shares(draw, _some(draw, _kinds(facts)), budget["exposed_comm"]),
        "hidden_comm_by_kind_frac": {"ep_a2a": 0.2 if overlapped or wrong else 0.0}
        if draw.random() < 0.3
        else None,
        "compute_by_class_frac": _shares(draw, _classes(facts), budget["compute"]),
        "absent_frac": {
            "launch_starved": _shares(draw, _some(draw, _CAUSES), starved),
            "launch_latency": draw.choice((None, 0.0, 0.02)) if starved < 0.9 * absent - 0.02 else None,
            "graph_opaque": draw.choice((None, 0.0)),
            "dependency_stalled": draw.choice((None, 0.0)),
        },
        "a2a": {
            "waiting_like_frac": draw.choice((None, 0.0, 0.01)),
            "payload_frac": draw.choice((None, 0.1)),
        },
        "sm": {
            "fill_frac": draw.choice((None, 0.3, 0.95)),
            "under_filled_frac": draw.choice((None, 0.0, 0.5 * budget["compute"])),
        },
        "memory": {
            "recompute_frac": draw.choice((0.0, 0.02, 0.2, 0.4)) * budget["compute"],
            "offload_exposed_frac": draw.choice((0.0, 0.0, 0.1)),
            "allocator_frac": draw.choice((0.0, 0.0, 0.1)),
            "allocator_retry_frac": draw.choice((None, 0.0, 0.0, 0.2)),
            "peak_bytes": None if peak is None else peak * GB,
            "capacity_bytes": 80 * GB,
        },
        "detected": {
            "dispatcher": "alltoall" if wrong else None,
            "graph_share_frac": draw.choice((None, None, 0.0, 0.8)) if wrong else None,
            "training_step": draw.choice((None, True)),
            "permute_fused": None if dense else draw.choice((None, True, False)),
        },
        "kernels": {
            "short_kernel_frac": draw.choice((None, 0.05, 0.6)),
            "expert_gemms_per_layer": None if dense else draw.choice((None, 6 if grouped else 64)),
            "router_kernels_per_layer": None if dense else draw.choice((None, 3, 20)),
        },
    }


def _kinds(facts: Settings) -> tuple[str, ...]:
    """Communication that such a configuration can have."""
    experts = facts.value("num_moe_experts") is not None or "num_moe_experts" not in facts
    without = {kind for kind in COMM_KINDS if kind.startswith("ep_") and not experts}
    without |= {kind for kind, knob in _SIZE_OF.items() if facts.value(knob) == 1}
    return tuple(kind for kind in COMM_KINDS if kind not in without)


def _classes(facts: Settings) -> tuple[str, ...]:
    if "num_moe_experts" in facts and facts.value("num_moe_experts") is None:
        return ("gemm", "attention", "norm", "elementwise")
    grouped = ("grouped_gemm",) if facts.value("moe_grouped_gemm") is not False else ()
    return ("gemm", "attention", "norm", "elementwise", "permute", "router", *grouped)


def _some(draw: Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(draw.sample(names, draw.randint(1, len(names))))


def _shares(draw: Random, names: tuple[str, ...], whole: float) -> dict[str, float]:
    """Parts of a whole, in which now and then one has nearly all."""
    weights = [draw.randint(0, 10) for _ in names]
    if draw.random() < 0.5:
        weights[draw.randrange(len(names))] += 60
    every = sum(weights) or 1
    return {name: whole * weight / every for name, weight in zip(names, weights, strict=True)}
