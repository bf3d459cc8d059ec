"""Dispatchers, routers, recompute, offload, precision."""

from __future__ import annotations

from typing import Final

from heuristics.rules.failures.failure import Row, refused, said

MOE_ROWS: Final[tuple[Row, ...]] = (
    refused(
        "flex-gpu",
        "flex_dispatcher",
        "this GPU is not served by the backend",
        "the GPU's name",
        "HybridEP on GB200 and GB300; alltoall where neither is served",
        "COM-2",
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
        "router-padding",
        "router",
        "router padding for low precision needs a dispatcher other than allgather",
        "moe_router_padding_for_quantization, fp8, moe_token_dispatcher_type",
        "leave the padding off, or change the dispatcher",
        "CFG-23",
        {"moe_router_padding_for_quantization": False},
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
