"""What the flex dispatcher and the overlap of shared experts need (documents 000, 001 and 004)."""

from __future__ import annotations

from typing import Final

from heuristics.config.features import (
    BACKENDS,
    dispatcher_asked,
    expert_overlap_asked,
    flex_asked,
    shared_overlap_asked,
)
from heuristics.config.hardware import family_of, gpu_capability, nvlink_domain
from heuristics.config.said import number, size, told, value, word
from heuristics.run.run import Run
from heuristics.workflow.need import Need, switch

DOMAIN_RANKS: Final = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
SM_KNOBS: Final = {
    "deepep": ("moe_flex_dispatcher_num_sms", "moe_deepep_num_sms"),
    "hybridep": ("moe_flex_dispatcher_num_sms", "moe_hybridep_num_sms"),
}


def backend_wanted(run: Run) -> str | None:
    """A backend of flex, whether or not flex itself is asked for."""
    backend = word(run, "moe_flex_dispatcher_backend")
    return backend if backend in BACKENDS else None


def _wants_flex(run: Run) -> bool | None:
    """A backend other than the default, which every dumped configuration holds, is a wish for flex."""
    if backend_wanted(run) in ("hybridep", "ncclep"):
        return True
    return flex_asked(run)


def _type_says(run: Run) -> str:
    asked = dispatcher_asked(run)
    kind = "not known" if asked is None else asked if asked in ("alltoall", "allgather") else "flex"
    return f"type {kind}, backend {backend_wanted(run) or 'not known'}"


def _flex_active(run: Run) -> bool | None:
    flex = flex_asked(run)
    if flex:
        return True if dispatcher_asked(run) in BACKENDS else None
    return flex


def gpu_takes(run: Run, backend: str) -> bool | None:
    """Whether Megatron-Bridge lets a backend run on the GPU.

    DeepEP on compute capability 8 and 9, and on devices called B200 or B300; HybridEP on 8, 9 and 10
    (training/flex_dispatcher_backend.py). None where the GPU is not known, or the backend has no such gate.
    """
    family, capability = family_of(run), gpu_capability(run)
    if capability is None or backend not in SM_KNOBS:
        return None
    if backend == "hybridep":
        return capability[0] in (8, 9, 10)
    if family is not None:
        return family.hardware != "nvl72" and capability[0] in (8, 9, 10)
    return None if capability[0] == 10 else capability[0] in (8, 9)


def _gpu(run: Run) -> bool | None:
    return gpu_takes(run, dispatcher_asked(run) or "")


def _gpu_says(run: Run) -> str:
    family = family_of(run)
    return f"{dispatcher_asked(run)} on {family.name if family else 'an unknown GPU'}"


def ranks_a_domain(run: Run) -> int | None:
    """Ranks of one expert-parallel group in an NVLink domain, as HybridEP must be told.

    Source: apply_target_topology_environment, Megatron-Bridge, scripts/performance/utils/utils.py.
    """
    ep, domain = size(run, "expert_model_parallel_size"), nvlink_domain(run)
    return None if ep is None or domain is None else min(ep, domain)


def domain_ranks_said(run: Run) -> int | None:
    """What HybridEP is told; None where nothing or no number is."""
    said = value(run, DOMAIN_RANKS)
    text = str(said)
    return int(text) if said is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _topology(run: Run) -> bool | None:
    said, right = domain_ranks_said(run), ranks_a_domain(run)
    return None if said is None or right is None else said == right


def _topology_says(run: Run) -> str:
    said, right = domain_ranks_said(run), ranks_a_domain(run)
    return f"ranks in an NVLink domain {said or 'not known'}, here they are {right or 'not known'}"


def _sms(run: Run) -> bool | None:
    knobs = SM_KNOBS.get(dispatcher_asked(run) or "", ())
    if any(number(run, knob) is not None for knob in knobs):
        return True
    return False if any(told(run, knob) for knob in knobs) else None


def router_in_fp32(run: Run) -> bool | None:
    """Whether the router computes in FP32 or wider."""
    if not told(run, "moe_router_dtype"):
        return None
    return word(run, "moe_router_dtype") in ("fp32", "fp64")


_FLEX: Final = "flex dispatcher"

DISPATCHER_NEEDS: Final = (
    Need(
        "flex-type",
        _FLEX,
        "Flex dispatcher: the type is flex, the backend alone does nothing",
        "004, Flex dispatcher activation; 004, Pitfalls, 3",
        _wants_flex,
        _flex_active,
        _type_says,
        "moe_token_dispatcher_type=flex beside the backend (Bridge: apply_flex_dispatcher_backend)",
        "moe_token_dispatcher_type and moe_flex_dispatcher_backend of the configuration",
        "COM-2",
    ),
    Need(
        "flex-gpu",
        _FLEX,
        "Flex dispatcher: a GPU that its backend takes",
        "001, Troubleshooting",
        flex_asked,
        _gpu,
        _gpu_says,
        "hybridep on GB200 and GB300, deepep on Hopper, B200 and B300",
        "--gpu-model",
        "COM-2",
    ),
    Need(
        "flex-shared-experts",
        _FLEX,
        "Flex dispatcher: no overlap of shared experts",
        "001, Code Anchors",
        flex_asked,
        lambda run: None if shared_overlap_asked(run) is None else not shared_overlap_asked(run),
        lambda run: f"moe_shared_expert_overlap {switch(shared_overlap_asked(run))}",
        "moe_shared_expert_overlap: false; Bridge's helper sets it so, Megatron-Core 0.16 raises",
        "moe_shared_expert_overlap of the configuration",
    ),
    Need(
        "flex-router-fp32",
        _FLEX,
        "Flex dispatcher: router probabilities in FP32",
        "003, FP8 Recipe Quick Decision",
        lambda run: None if dispatcher_asked(run) is None else dispatcher_asked(run) in SM_KNOBS,
        router_in_fp32,
        lambda run: f"router in FP32: {switch(router_in_fp32(run))}",
        "moe_router_dtype: fp32; DeepEP asserts it of what it dispatches",
        "moe_router_dtype of the configuration",
    ),
    Need(
        "flex-sm-count",
        _FLEX,
        "Flex dispatcher: its SM count is tuned",
        "000, Pitfalls, 3",
        lambda run: None if dispatcher_asked(run) is None else dispatcher_asked(run) in SM_KNOBS,
        _sms,
        lambda run: "an SM count is set" if _sms(run) else "no SM count is known to be set",
        "sweep it: DeepEP from 20, HybridEP from 16 to 32",
        "the SM-count knob of the configuration",
        "COM-3",
    ),
    Need(
        "hybridep-topology",
        "HybridEP",
        "HybridEP: its ranks in an NVLink domain match the deployment",
        "000, Tuning Parameters, HybridEP; 000, Pitfalls, 2",
        lambda run: None if dispatcher_asked(run) is None else dispatcher_asked(run) == "hybridep",
        _topology,
        _topology_says,
        "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN = EP on NVL72, at most 8 on NVL8, before any other tuning",
        "the environment in the configuration or by --env, --ep and --gpu-model",
        "COM-3",
    ),
    Need(
        "shared-overlap-alone",
        "shared-expert overlap",
        "Shared-expert overlap: not beside EP overlap",
        "001, Prerequisites; 004, Pitfalls, 1",
        shared_overlap_asked,
        lambda run: None if expert_overlap_asked(run) is None else not expert_overlap_asked(run),
        lambda run: f"EP overlap {switch(expert_overlap_asked(run))}",
        "one of the two: moe_shared_expert_overlap: false beside EP overlap",
        "overlap_moe_expert_parallel_comm of the configuration",
        "COM-1",
    ),
    Need(
        "shared-overlap-dispatcher",
        "shared-expert overlap",
        "Shared-expert overlap: with the alltoall dispatcher",
        "001, Code Anchors",
        shared_overlap_asked,
        lambda run: None if dispatcher_asked(run) is None else dispatcher_asked(run) == "alltoall",
        lambda run: f"dispatcher {dispatcher_asked(run) or 'not known'}",
        "alltoall; Megatron-Core 0.16 raises on any other, Bridge's flex helper turns the overlap off",
        "moe_token_dispatcher_type of the configuration",
        "COM-8",
    ),
)
