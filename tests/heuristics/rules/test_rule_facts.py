"""Facts of rules that only code can tell: of a configuration each value, and None where a part is unknown."""

from __future__ import annotations

from typing import Final

import pytest

from heuristics.config.view import Trust
from heuristics.rules.condition import named
from heuristics.rules.failures import in_pieces
from tests.configurations.constraints import run_with
from traces.training_log.log import LoggedMemory, OutOfMemory, TrainingLog

L: Final = "pipeline_model_parallel_layout"
P: Final = "hybrid_layer_pattern"
PP: Final = "pipeline_model_parallel_size"
VPP: Final = "virtual_pipeline_model_parallel_size"
FIRST, LAST = "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
BACKEND: Final = "moe_flex_dispatcher_backend"
DOMAIN: Final = "env.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
ENDS: Final[dict[str, object]] = {"num_layers": 16, PP: 4, FIRST: 4, LAST: 4}
KINDS, LOSSES = "moe_router_load_balancing_type", "moe_aux_loss_coeff"
SIZES: Final = "hierarchical_context_parallel_sizes"


@pytest.mark.parametrize(
    ("fact", "knobs", "value"),
    [
        ("layout_text", {L: "x"}, True), ("layout_text", {L: "null"}, False), ("layout_text", {}, None),
        ("layout_reads", {L: "Et|x"}, False), ("layout_reads", {L: "Et|tL"}, True),
        ("layout_stages", {L: "Et|tt|L"}, 3), ("layout_stages", {L: "Et|x"}, None),
        ("layout_vpp", {L: "Et|t|t|tL", PP: 2}, 2), ("layout_vpp", {L: "Et|t|tL", PP: 2}, None),
        ("layout_vpp", {L: "Et|t|t|tL"}, None),
        ("layout_layers", {L: "Et|(tt|)*2mL"}, 5), ("layout_mtp", {L: "Et|tmmL"}, 2),
        ("layout_ends", {L: "Et|tL"}, True), ("layout_ends", {L: "tE|tL"}, False), ("layout_ends",
         {L: "Et|Lt"}, False),
        ("layout_ends", {L: "EEt|tL"}, False), ("layout_ends", {L: "Et|LL"}, False),
        ("layout_mtp_last", {L: "Et|tmL"}, True), ("layout_mtp_last", {L: "Etm|tL"}, False),
        ("layout_mtp_last", {L: "Et|tL"}, True),
        ("layout_mtp_together", {L: "Et|t|mm|tL", PP: 2}, True), ("layout_mtp_together",
         {L: "Et|m|t|tL", PP: 2}, False),
        ("layout_mtp_together", {L: "Et|t|m|mL", PP: 2}, False), ("layout_mtp_together", {L: "Et|tL"}, None),
        ("pattern_segments", {P: "ME|M*/M|M"}, 2), ("pattern_segments", {P: "MEM"}, 1), ("pattern_segments",
         {}, None),
        ("pattern_stages_fit", {P: "ME|M*|E", PP: 2}, False), ("pattern_stages_fit", {P: "MEM", PP: 2}, True),
        ("pattern_stages_fit", {P: "ME|M*", PP: 2}, True), ("pattern_stages_fit", {P: "ME|M*"}, None),
        ("pattern_virtual_fits", {P: "M|E|M|E", PP: 2, VPP: 2}, True),
        ("pattern_virtual_fits", {P: "M|E|M|E", PP: 2, VPP: "null"}, False),
        ("pattern_virtual_fits", {P: "MEM", PP: 2, VPP: "null"}, True), ("pattern_virtual_fits",
         {P: "MEM", PP: 2}, None),
        ("even_stages", {L: "null", FIRST: "null", LAST: "null"}, True), ("even_stages",
         {L: "null", FIRST: 3}, False),
        ("even_stages", {L: "null", FIRST: "null", LAST: 3}, False), ("even_stages",
         {L: "null", FIRST: "null"}, None),
        ("even_stages", {L: "null", FIRST: "null", LAST: "null", P: "M|E"}, False),
        ("spread_layers", {"num_layers": 16, EMBEDDING: True, LOSS: True}, 18),
        ("spread_layers", {"num_layers": 16, EMBEDDING: False, LOSS: True}, 17),
        ("spread_layers", {"num_layers": 16, EMBEDDING: True}, None),
        ("middle_fits", ENDS, True), ("middle_fits", {**ENDS, FIRST: 3}, False), ("middle_fits",
         {**ENDS, PP: 2}, False),
        ("middle_fits", {**ENDS, PP: 2, "num_layers": 8}, True), ("middle_fits", {**ENDS, "num_layers": 8},
         False),
        ("middle_fits", {**ENDS, FIRST: "null"}, True), ("middle_fits", {"num_layers": 16, PP: 4, FIRST: 4},
         None),
        ("virtual_fits", {**ENDS, VPP: 2}, True), ("virtual_fits", {**ENDS, FIRST: 6, LAST: 2, VPP: 4},
         False),
        ("virtual_fits", {**ENDS, FIRST: 3, LAST: 5, VPP: 2}, False), ("virtual_fits", {**ENDS, VPP: "null"},
         None),
        ("virtual_fits", {**ENDS, PP: 2, "num_layers": 8, VPP: 2}, True),
        ("flex_backend", {BACKEND: "hybridep"}, "hybridep"), ("flex_backend", {"moe_enable_deepep": True},
         "deepep"),
        ("flex_backend", {"core": "0.15.3"}, "deepep"), ("flex_backend", {BACKEND: "null", "core": "0.16.0"},
         ""),
        ("flex_backend", {"core": "0.16.0"}, None),
        ("padded_to_capacity", {"moe_pad_expert_input_to_capacity": False}, False), ("padded_to_capacity", {},
         None),
        ("domain_ranks", {DOMAIN: "8"}, 8), ("domain_ranks", {DOMAIN: "x"}, "x"), ("domain_ranks",
         {DOMAIN: "null"}, None),
        ("fsdp", {"ddp.use_megatron_fsdp": False, "use_torch_fsdp2": True}, True), ("fsdp", {}, None),
        ("fsdp", {"ddp.use_megatron_fsdp": False, "use_torch_fsdp2": False}, False), ("megatron_fsdp", {},
         False),
        ("platform_recipe", {"gpu": "H100", "fp8": "e4m3", "fp8_recipe": "blockwise"}, True),
        ("platform_recipe", {"gpu": "H100", "fp8": "e4m3", "fp8_recipe": "mxfp8"}, False), ("platform_recipe",
         {}, None),
        ("cp_list_fits", {"cp_comm_type": ["p2p", "a2a"], "num_layers": 2}, True),
        ("cp_list_fits", {"cp_comm_type": ["p2p", "a2a"], "num_layers": 3}, False),
        ("cp_list_fits", {"cp_comm_type": ["p2p", "a2a"]}, None), ("cp_list_fits", {"cp_comm_type": "p2p"},
         True),
        ("cp_list_fits", {}, None),
        ("balance_lists_fit", {KINDS: ["aux_loss", "z"], LOSSES: [0.1, 0.2]}, True),
        ("balance_lists_fit", {KINDS: ["aux_loss", "z"], LOSSES: [0.1]}, False),
        ("balance_lists_fit", {KINDS: ["aux_loss", "z"], LOSSES: 0.1}, False),
        ("balance_lists_fit", {KINDS: ["aux_loss", "z"]}, None), ("balance_lists_fit", {KINDS: ["aux_loss"]},
         True),
        ("balance_lists_fit", {}, None),
        ("hierarchy_first", {SIZES: [4, 2]}, 4), ("hierarchy_product", {SIZES: [4, 2]}, 8),
        ("hierarchy_product", {SIZES: [4, "x"]}, None), ("hierarchy_first", {SIZES: "null"}, None),
    ],
)  # fmt: skip
def test_a_fact_is_told_by_its_knobs(fact: str, knobs: dict[str, object], value: object) -> None:
    found = named(fact).of(run_with(knobs).view(Trust.CHECKED))
    assert (type(found), found) == (type(value), value)


GB: Final = 10**9


@pytest.mark.parametrize(
    ("inactive", "asked", "allocated", "found"),
    [
        (25, None, None, True), (24, None, None, False), (6, 6, None, True), (5, 6, None, False),
        (25, None, 70, False), (0, None, None, False),
    ],
)  # fmt: skip
def test_fragments_are_a_quarter_of_what_is_reserved_or_what_was_asked_for(
    inactive: int, asked: int | None, allocated: int | None, found: bool
) -> None:
    error = OutOfMemory(
        9,
        "unknown",
        allocated_bytes=allocated and allocated * GB,
        requested_bytes=asked and asked * GB,
    )
    report = LoggedMemory(1, 0, reserved_bytes=100 * GB, inactive_bytes=inactive * GB)
    assert (
        in_pieces(TrainingLog("a.log", 10, memory=(report,), out_of_memory=(error,))) is not None
    ) is found
