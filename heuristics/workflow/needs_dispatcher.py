"""What the flex dispatcher and the overlap of shared experts need (documents 000, 001 and 004)."""

from __future__ import annotations

from typing import Final

from heuristics.config.features import FLEX
from heuristics.run.run import Run
from heuristics.workflow.need import Need, switch

DOMAIN_RANKS: Final = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
SM_KNOBS: Final = {
    "deepep": ("moe_flex_dispatcher_num_sms", "moe_deepep_num_sms"),
    "hybridep": ("moe_flex_dispatcher_num_sms", "moe_hybridep_num_sms"),
}


def backend_wanted(run: Run) -> str | None:
    """A backend of flex, whether or not flex itself is asked for."""
    backend = run.config.word("moe_flex_dispatcher_backend")
    return backend if backend in FLEX else None


def _wants_flex(run: Run) -> bool | None:
    """A backend other than the default, which every dumped configuration holds, is a wish for flex."""
    if backend_wanted(run) in ("hybridep", "ncclep"):
        return True
    return run.config.flex


def _type_says(run: Run) -> str:
    asked = run.config.dispatcher
    kind = "not known" if asked is None else asked if asked in ("alltoall", "allgather") else "flex"
    return f"type {kind}, backend {backend_wanted(run) or 'not known'}"


def _flex_active(run: Run) -> bool | None:
    flex = run.config.flex
    if flex:
        return True if run.config.dispatcher in FLEX else None
    return flex


def gpu_takes(run: Run, backend: str) -> bool | None:
    """Whether Megatron-Bridge lets a backend run on the GPU.

    DeepEP on compute capability 8 and 9, and on devices called B200 or B300; HybridEP on 8, 9 and 10
    (training/flex_dispatcher_backend.py). None where the GPU is not known, or the backend has no such gate.
    """
    family, capability = run.config.gpu_family, run.config.capability
    if capability is None or backend not in SM_KNOBS:
        return None
    if backend == "hybridep":
        return capability[0] in (8, 9, 10)
    if family is not None:
        return family.hardware != "nvl72" and capability[0] in (8, 9, 10)
    return None if capability[0] == 10 else capability[0] in (8, 9)


def _gpu(run: Run) -> bool | None:
    return gpu_takes(run, run.config.dispatcher or "")


def _gpu_says(run: Run) -> str:
    family = run.config.gpu_family
    return f"{run.config.dispatcher} on {family.name if family else 'an unknown GPU'}"


def ranks_a_domain(run: Run) -> int | None:
    """Ranks of one expert-parallel group in an NVLink domain, as HybridEP must be told.

    Source: apply_target_topology_environment, Megatron-Bridge, scripts/performance/utils/utils.py.
    """
    ep, domain = run.config.positive("expert_model_parallel_size"), run.config.nvlink_domain
    return None if ep is None or domain is None else min(ep, domain)


def domain_ranks_said(run: Run) -> int | None:
    """What HybridEP is told; None where nothing or no number is."""
    said = run.config.value(DOMAIN_RANKS)
    text = str(said)
    return int(text) if said is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def _topology(run: Run) -> bool | None:
    said, right = domain_ranks_said(run), ranks_a_domain(run)
    return None if said is None or right is None else said == right


def _topology_says(run: Run) -> str:
    said, right = domain_ranks_said(run), ranks_a_domain(run)
    return f"ranks in an NVLink domain {said or 'not known'}, here they are {right or 'not known'}"


def _sms(run: Run) -> bool | None:
    knobs = SM_KNOBS.get(run.config.dispatcher or "", ())
    if any(run.config.count(knob) is not None for knob in knobs):
        return True
    return False if any(run.config.known(knob) for knob in knobs) else None


def router_in_fp32(run: Run) -> bool | None:
    """Whether the router computes in FP32 or wider."""
    if not run.config.known("moe_router_dtype"):
        return None
    return run.config.word("moe_router_dtype") in ("fp32", "fp64")


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
        lambda run: run.config.flex,
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
        lambda run: run.config.flex,
        lambda run: None if run.config.shared_overlap is None else not run.config.shared_overlap,
        lambda run: f"moe_shared_expert_overlap {switch(run.config.shared_overlap)}",
        "moe_shared_expert_overlap: false; Bridge's helper sets it so, Megatron-Core 0.16 raises",
        "moe_shared_expert_overlap of the configuration",
    ),
    Need(
        "flex-router-fp32",
        _FLEX,
        "Flex dispatcher: router probabilities in FP32",
        "003, FP8 Recipe Quick Decision",
        lambda run: None if run.config.dispatcher is None else run.config.dispatcher in SM_KNOBS,
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
        lambda run: None if run.config.dispatcher is None else run.config.dispatcher in SM_KNOBS,
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
        lambda run: None if run.config.dispatcher is None else run.config.dispatcher == "hybridep",
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
        lambda run: run.config.shared_overlap,
        lambda run: None if run.config.ep_overlap is None else not run.config.ep_overlap,
        lambda run: f"EP overlap {switch(run.config.ep_overlap)}",
        "one of the two: moe_shared_expert_overlap: false beside EP overlap",
        "overlap_moe_expert_parallel_comm of the configuration",
        "COM-1",
    ),
    Need(
        "shared-overlap-dispatcher",
        "shared-expert overlap",
        "Shared-expert overlap: with the alltoall dispatcher",
        "001, Code Anchors",
        lambda run: run.config.shared_overlap,
        lambda run: None if run.config.dispatcher is None else run.config.dispatcher == "alltoall",
        lambda run: f"dispatcher {run.config.dispatcher or 'not known'}",
        "alltoall; Megatron-Core 0.16 raises on any other, Bridge's flex helper turns the overlap off",
        "moe_token_dispatcher_type of the configuration",
        "COM-8",
    ),
)
