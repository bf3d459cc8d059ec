"""Dispatchers, routers, recompute, offload, precision."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, Seen, refused, said
from traces.settings.settings import Settings
from traces.training_log.log import TrainingLog

_SKILL: Final = "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987d"
_BACKENDS: Final = ("hybridep", "ncclep")
"""Not deepep: it is Megatron-Core's default from 0.16 on, whatever the dispatcher."""


def _backend_without_type(log: TrainingLog, settings: Settings) -> Seen | None:
    """A backend of flex that somebody chose, beside another type of dispatcher."""
    kind = settings.value("moe_token_dispatcher_type")
    chosen = settings.value("moe_flex_dispatcher_backend") in _BACKENDS
    return Seen(None) if chosen and isinstance(kind, str) and kind != "flex" else None


MOE_ROWS: Final[tuple[Row, ...]] = (
    Row(
        "flex-inert",
        "flex_dispatcher",
        "ineffective",
        "a flex backend is set while the dispatcher's type is another one: the backend alone does nothing",
        "moe_token_dispatcher_type; no deep_ep:: or hybrid_ep:: kernels in a trace",
        "set moe_token_dispatcher_type to flex as well; Megatron-Bridge: call apply_flex_dispatcher_backend",
        "CFG-18",
        _backend_without_type,
        {"moe_token_dispatcher_type": "flex"},
        _SKILL,
    ),
    Row(
        "flex-skipped",
        "flex_dispatcher",
        "skipped",
        "this GPU is not served by the backend, and the run went on with another dispatcher: DeepEP takes "
        "Ampere, Hopper, B200 and B300, HybridEP these and GB200 and GB300",
        "the GPU's name; no deep_ep:: or hybrid_ep:: kernels in a trace. Megatron-Bridge hides warnings by "
        "default, so that other logs may not show it",
        "HybridEP on GB200 and GB300; else alltoall on purpose",
        "COM-2",
        said("flex-skipped"),
        source=_SKILL,
    ),
    Row(
        "flex-dense-model",
        "flex_dispatcher",
        "skipped",
        "a flex backend was asked for in a model without experts",
        "num_moe_experts",
        "leave the backend out",
        "CFG-18",
        said("flex-dense-model"),
    ),
    Row(
        "flex-no-backend",
        "flex_dispatcher",
        "skipped",
        "the name given is no flex backend, and the dispatcher stays as it was",
        "moe_flex_dispatcher_backend",
        "deepep or hybridep",
        "COM-2",
        said("flex-no-backend"),
    ),
    refused(
        "flex-gpu",
        "flex_dispatcher",
        "this GPU is not served by the backend",
        "the GPU's name",
        "HybridEP on GB200 and GB300; alltoall where neither is served",
        "COM-2",
    ),
    refused(
        "deepep-missing",
        "flex_dispatcher",
        "DeepEP is not installed; NeMo's 26.02 container comes without it",
        "import deep_ep in the run's container",
        "install DeepEP, or alltoall until then",
        "ENV-4",
        {"moe_token_dispatcher_type": "alltoall"},
        "Megatron-Bridge, docs/releases/known-issues.md (26.02) at 067f987d",
    ),
    refused(
        "hybridep-missing",
        "flex_dispatcher",
        "HybridEP is not installed: it is DeepEP's branch hybrid-ep",
        "import deep_ep and its HybridEPBuffer in the run's container",
        "install DeepEP's branch hybrid-ep, or alltoall until then",
        "ENV-4",
        {"moe_token_dispatcher_type": "alltoall"},
    ),
    refused(
        "ncclep-missing",
        "flex_dispatcher",
        "Transformer Engine was built without NCCL EP",
        "import transformer_engine.pytorch.ep in the run's container",
        "Transformer Engine built with NVTE_BUILD_WITH_NCCL_EP=1, or another backend",
        "ENV-3",
    ),
    refused(
        "backend-without-flex",
        "flex_dispatcher",
        "the backend needs the flex dispatcher",
        "moe_token_dispatcher_type",
        "set moe_token_dispatcher_type to flex",
        "CFG-18",
        {"moe_token_dispatcher_type": "flex"},
    ),
    refused(
        "flex-without-backend",
        "flex_dispatcher",
        "flex without a backend it knows: moe_enable_deepep up to Megatron-Core 0.15, "
        "moe_flex_dispatcher_backend from 0.16 on",
        "Megatron-Core's version and these two fields",
        "name the backend in the spelling of the version that runs",
        "COM-2",
    ),
    refused(
        "flex-shared-experts",
        "flex_dispatcher",
        "shared-expert overlap does not go with this dispatcher: alltoall only up to Megatron-Core 0.17, "
        "flex as well from 0.18 on",
        "moe_shared_expert_overlap and moe_token_dispatcher_type",
        "switch shared-expert overlap off",
        "CFG-3",
        {"moe_shared_expert_overlap": False},
    ),
    refused(
        "flex-padding",
        "flex_dispatcher",
        "DeepEP does not pad experts to their capacity",
        "moe_pad_expert_input_to_capacity",
        "no padding to capacity, or HybridEP",
        "CFG-19",
        {"moe_pad_expert_input_to_capacity": False},
    ),
    refused(
        "flex-fake-group",
        "flex_dispatcher",
        "a fake process group cannot stand for a flex dispatcher",
        "fake_process_group",
        "alltoall for the run on one GPU; its memory is not that of flex",
        "CFG-20",
        {"moe_token_dispatcher_type": "alltoall"},
    ),
    refused(
        "flex-no-group",
        "flex_dispatcher",
        "DeepEP has nobody to talk to: TP times EP is 1",
        "tensor_model_parallel_size and expert_model_parallel_size",
        "EP above 1, or alltoall",
        "COM-10",
    ),
    refused(
        "router-dtype-refused",
        "flex_dispatcher",
        "DeepEP takes router probabilities in FP32 only",
        "moe_router_dtype",
        "moe_router_dtype fp32",
        "CFG-21",
        {"moe_router_dtype": "fp32"},
    ),
    Row(
        "router-dtype-cast",
        "flex_dispatcher",
        "ineffective",
        "the flex backend casts router probabilities to FP32 in every layer",
        "moe_router_dtype",
        "moe_router_dtype fp32",
        "CFG-21",
        said("router-dtype-cast"),
        {"moe_router_dtype": "fp32"},
    ),
    Row(
        "deepep-timeout",
        "flex_dispatcher",
        "failed",
        "DeepEP waited in vain for other nodes: a known issue of DeepSeek V3 on H100 in NeMo's 25.11 "
        "container, else its transport",
        "the container's release; NVSHMEM's network settings on all nodes",
        "another container, or IBGDA and NVSHMEM_ENABLE_NIC_PE_MAPPING=1",
        "COM-12",
        said("deepep-timeout"),
    ),
    Row(
        "hybridep-unfused",
        "flex_dispatcher",
        "skipped",
        "the installed HybridEP is too old to permute inside dispatch: permute runs apart",
        "moe_permute_fusion_into_hybridep and permute kernels in a trace",
        "a newer DeepEP of branch hybrid-ep",
        "ENV-4",
        said("hybridep-unfused"),
    ),
    refused(
        "allgather-lengths",
        "expert_parallel",
        "the allgather dispatcher needs one sequence length",
        "moe_token_dispatcher_type, variable_seq_lengths",
        "alltoall",
        "COM-2",
        {"moe_token_dispatcher_type": "alltoall"},
    ),
    refused(
        "expert-bias",
        "router",
        "expert bias needs a sigmoid score function; sqrtsoftplus as well from Megatron-Core 0.18 on",
        "moe_router_enable_expert_bias and moe_router_score_function",
        "moe_router_score_function sigmoid, if the model was made with it; else no expert bias",
        "CFG-22",
        {"moe_router_score_function": "sigmoid"},
    ),
    refused(
        "router-padding",
        "router",
        "router padding for low precision needs a dispatcher other than allgather",
        "moe_router_padding_for_quantization, fp8, moe_token_dispatcher_type",
        "leave the padding off, or change the dispatcher",
        "CFG-23",
        {"moe_router_padding_for_quantization": False},
    ),
    refused(
        "experts-not-divisible",
        "expert_parallel",
        "the experts do not divide among the EP ranks",
        "num_moe_experts and expert_model_parallel_size",
        "an EP that divides the number of experts",
        "COM-10",
    ),
    refused(
        "ep-without-experts",
        "expert_parallel",
        "EP above 1 in a model without experts",
        "num_moe_experts",
        "EP of 1, or the number of experts",
        "CFG-1",
        {"expert_model_parallel_size": 1},
    ),
    refused(
        "ep-tp-without-sp",
        "expert_parallel",
        "experts with TP above 1 need sequence parallelism for training",
        "sequence_parallel and tensor_model_parallel_size",
        "set sequence_parallel",
        "CFG-24",
        {"sequence_parallel": True},
    ),
    Row(
        "ep-tp-without-sp-warned",
        "expert_parallel",
        "failed",
        "experts with TP above 1 need sequence parallelism for training: the first forward of an MoE layer "
        "raises",
        "sequence_parallel and tensor_model_parallel_size",
        "set sequence_parallel",
        "CFG-24",
        said("ep-tp-without-sp-warned"),
        {"sequence_parallel": True},
    ),
)
