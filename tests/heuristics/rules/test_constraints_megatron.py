"""Our rules against Megatron-Core's own TransformerConfig, over configurations drawn at random.

Skipped without megatron-core 0.16.1 and PyTorch: what Megatron-Core itself confirms of our rules. Not drawn:
knobs that want Transformer Engine itself (moe_permute_fusion, apply_rope_fusion), whose answer no host
without it can give, and full_iteration beside other graph modules, which has a rule of ours.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import pytest

from heuristics.rules.check import check_rules
from heuristics.rules.rules import rules
from tests.configurations.constraints import megatron_cases, messages, whole_run

COUNT: Final = 400
VERSION: Final = "0.16.1"
TE: Final = "2.9.0"
PACKAGE_ITSELF: Final = {64, 66}
NO_SUCH_KNOB: Final = {87}

LABELS: Final = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
SCOPES: Final = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "full_iteration")
OFFLOADED: Final = ("core_attn", "attn_proj", "expert_fc1", "moe_act", "qkv_linear", "fused_group_mlp")

POOL: Final[Mapping[str, tuple[object, ...]]] = {
    "num_layers": (12, 16, 18),
    "num_attention_heads": (8, 12),
    "num_query_groups": ("null", 2, 3, 8),
    "num_moe_experts": (64, 48, "null"),
    "moe_ffn_hidden_size": (256, "null"),
    "moe_router_topk": (1, 2, 8),
    "moe_router_score_function": ("softmax", "sigmoid"),
    "moe_router_pre_softmax": (False, True),
    "moe_router_load_balancing_type": ("aux_loss", "sinkhorn", "none"),
    "moe_router_enable_expert_bias": (False, True),
    "moe_router_group_topk": ("null", 2, 5),
    "moe_router_num_groups": ("null", 4, 5),
    "moe_router_padding_for_quantization": (False, True),
    "moe_grouped_gemm": (True, False),
    "moe_layer_freq": (1, 2),
    "moe_token_dispatcher_type": ("alltoall", "allgather", "flex"),
    "moe_flex_dispatcher_backend": ("deepep", "hybridep"),
    "moe_enable_deepep": (False, True),
    "moe_expert_capacity_factor": ("null", 1.0),
    "moe_pad_expert_input_to_capacity": (False, True),
    "moe_shared_expert_intermediate_size": ("null", 256),
    "moe_shared_expert_overlap": (False, True),
    "moe_input_jitter_eps": ("null", 0.01),
    "variable_seq_lengths": (False, True),
    "tensor_model_parallel_size": (1, 2, 3, 4),
    "sequence_parallel": (False, True),
    "pipeline_model_parallel_size": (1, 2, 4),
    "virtual_pipeline_model_parallel_size": ("null", 2),
    "pipeline_dtype": ("bf16", "null"),
    "expert_model_parallel_size": (1, 8),
    "expert_tensor_parallel_size": ("null", 1, 2),
    "num_layers_in_first_pipeline_stage": ("null", 4, 3),
    "num_layers_in_last_pipeline_stage": ("null", 4, 5),
    "account_for_embedding_in_pipeline_split": (False, True),
    "account_for_loss_in_pipeline_split": (False, True),
    "pipeline_model_parallel_layout": ("null", "E(t|)*15tL", "Et*8|t*8L", "Et*8|t*4L", "Et|x"),
    "mtp_num_layers": ("null", 1, 2),
    "bf16": (True, False),
    "fp16": (False, True),
    "fp8": ("null", "hybrid"),
    "fp8_recipe": ("delayed", "blockwise", "mxfp8"),
    "fp8_param": (False, True),
    "fp4": ("null", "e2m1"),
    "fp4_param": (False, True),
    "activation_func_fp8_input_store": (False, True),
    "gated_linear_unit": (True, False),
    "distribute_saved_activations": (False, True),
    "first_last_layers_bf16": (False, True),
    "add_bias_linear": (False, True),
    "attention_dropout": (0.0, 0.1),
    "hidden_dropout": (0.0, 0.1),
    "multi_latent_attention": (False, True),
    "recompute_granularity": ("null", "selective", "full", "block"),
    "recompute_method": ("null", "uniform", "all"),
    "recompute_num_layers": ("null", 1),
    "moe_layer_recompute": (False, True),
    "overlap_moe_expert_parallel_comm": (False, True),
    "delay_wgrad_compute": (False, True),
    "ep_overlap_early_attn_memory_release": (False, True),
    "cpu_offloading": (False, True),
    "cpu_offloading_num_layers": (4, 12),
    "fine_grained_activation_offloading": (False, True),
    "enable_cuda_graph": (False, True),
    "external_cuda_graph": (False, True),
    "cuda_graph_impl": ("none", "transformer_engine", "local"),
    "cp_comm_type": ("null", "p2p", ["p2p", "a2a"]),
    "context_parallel_size": (1, 2),
}
LISTS: Final = {"recompute_modules": LABELS, "cuda_graph_modules": SCOPES, "offload_modules": OFFLOADED}


def drawn(seed: int) -> dict[str, object]:
    """The base with one to eight knobs drawn anew, first those of one ninety's case."""
    draw = random.Random(seed)
    allowed = [case for case in megatron_cases() if case["number"] not in PACKAGE_ITSELF | NO_SUCH_KNOB]
    knobs = dict(cast(dict[str, object], draw.choice(allowed)["knobs"]))
    for knob in draw.sample(sorted({*POOL, *LISTS}), draw.randint(0, 7)):
        if knob in LISTS:
            names = draw.sample(LISTS[knob], draw.randint(0, 2))
            knobs[knob] = ["full_iteration"] if "full_iteration" in names else names
        else:
            knobs[knob] = draw.choice(POOL[knob])
    return knobs


@pytest.fixture(scope="module")
def refusal(megatron: None) -> Iterator[Callable[[Mapping[str, object]], str | None]]:
    """What Megatron-Core says to a configuration: its error, or None where it takes it."""
    torch = importlib.import_module("torch")
    configs = importlib.import_module("megatron.core.transformer.transformer_config")
    if importlib.metadata.version("megatron-core") != VERSION:
        pytest.skip(f"the rules are asked of megatron-core {VERSION}")
    utils: Any = importlib.import_module("megatron.core.utils")
    # Its cache of Transformer Engine's version: that of the user's run, which this host need not have.
    before = utils._te_version
    utils._te_version = importlib.import_module("packaging.version").Version(TE)
    dtypes = {"bf16": torch.bfloat16, "fp32": torch.float32, "null": None}

    def asked(knobs: Mapping[str, object]) -> str | None:
        fields = {knob: None if value == "null" else value for knob, value in knobs.items()}
        fields = {knob: list(one) if isinstance(one, list) else one for knob, one in fields.items()}
        for knob in ("pipeline_dtype", "params_dtype"):
            fields[knob] = dtypes[cast(str, knobs[knob])]
        fields["activation_func"] = torch.nn.functional.silu
        if "cuda_graph_modules" in fields:
            fields["cuda_graph_scope"] = fields.pop("cuda_graph_modules")
        mla = fields.pop("multi_latent_attention", False)
        try:
            (configs.MLATransformerConfig if mla else configs.TransformerConfig)(**fields)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    yield asked
    utils._te_version = before


def of_core(knobs: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    run = whole_run(knobs, core=VERSION, te=TE, torch="2.13.0")
    return {
        one.id: messages(one) or ("",)
        for one in check_rules(run)
        if one.level == "error" and one.by == "core"
    }


@pytest.mark.megatron
@pytest.mark.filterwarnings("ignore")
def test_core_confirms_what_we_say_it_refuses_and_takes_what_we_let_pass(
    refusal: Callable[[Mapping[str, object]], str | None],
) -> None:
    wrong: list[tuple[object, ...]] = []
    refused, seen = 0, set[str]()
    for seed in range(COUNT):
        knobs = drawn(seed)
        said, ours = refusal(knobs), of_core(knobs)
        refused += said is not None
        seen |= set(ours)
        if bool(ours) != (said is not None) or (
            said is not None and not any(message in said for several in ours.values() for message in several)
        ):
            wrong.append((seed, sorted(ours), said))
    assert wrong == []
    assert COUNT // 5 < refused < COUNT
    assert len(seen) > 60, sorted(seen)


@pytest.mark.megatron
@pytest.mark.filterwarnings("ignore")
def test_each_of_the_ninety_answers_as_it_was_measured(
    refusal: Callable[[Mapping[str, object]], str | None],
) -> None:
    for case in megatron_cases():
        number = cast(int, case["number"])
        said = refusal(cast(dict[str, object], case["knobs"]))
        if number == 55:
            assert "TE version >= 2.10.0 is required" in str(said)
        elif case.get("answer_with_te") == "ok":
            assert said is None, (number, said)
        else:
            assert (said is None) == (case["answer"] == "ok"), (number, said)
            assert said is None or str(case["message"]) in said, (number, said)


def test_every_core_rule_of_that_version_has_words_to_be_known_by() -> None:
    silent = {"offload-no-modules", "graphs-module-name"}
    assert {rule.id for rule in rules().values() if rule.by == "core" and not messages(rule)} == {
        *silent,
        "recompute-core-attn",
    }
