"""What autograd keeps of one layer and one micro-batch, in bytes by part, read off Megatron-Core's
modules.

Dropless routing over experts that get equally many tokens; fused attention (unless the
configuration says otherwise); rotary embeddings; probabilities multiplied inside the experts'
activation (core 0.13 and later: the experts' output is not kept). Row statistics of norms and token
indices are left out.
"""

from typing import Final, Literal

from traces.frozen import frozen
from traces.settings.knobs import release
from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.layout import Layout
from traces.sizes.model import Experts, ModelSize
from traces.toml_tables import read_table

Part = Literal[
    "residual", "attention_norm", "mlp_norm", "latent", "query_key_value", "softmax",
    "attention_output", "router", "expert_input", "expert_fc1",
    "moe_act", "shared_experts", "dense_mlp",
]  # fmt: skip

ACTIVATION_BYTES: Final = 2
"""BF16 or FP16: what activations are kept in outside low-precision linear layers."""

_ROUTER_BYTES: Final = 13
"""Per token and expert: scores, their normalised copy and the chosen probabilities in FP32, a map
of bool."""

_MODULES: Final = read_table("traces.sizes", "modules.toml", dict[str, dict[str, tuple[Part, ...]]])
RECOMPUTED: Final = _MODULES["recomputed"]
OFFLOADED: Final = _MODULES["offloaded"]


Held = dict[Part, float]
"""Bytes of each part that a layer keeps."""


@frozen
class Keeping:
    """How activations are kept.

    `linear_bytes`: an element of a linear layer's input. `copies`: low-precision copies beside a
    BF16 input that something else keeps; core 0.14 (commit 781e7658) keeps the BF16 one alone.
    """

    linear_bytes: float
    copies: bool
    recompute: frozenset[str]
    offload: frozenset[str]
    offload_frac: float
    unfused_attention: bool
    glu_input_bytes: int


def keeping(settings: Settings, core_version: str | None, low: float | None) -> Keeping:
    """How a configuration keeps activations. `core_version`: such as "0.16.1"; unknown counts as
    new.

    `low`: bytes of an element of the matrices where it is in low precision.
    """
    knobs, core = Knobs(settings), release(core_version)
    selective = settings.value("recompute_granularity") == "selective"
    fine = settings.value("fine_grained_activation_offloading") is True
    compact = settings.value("activation_func_fp8_input_store") is True
    return Keeping(
        linear_bytes=low or float(ACTIVATION_BYTES),
        copies=low is not None and core is not None and core < (0, 14, 0),
        recompute=_recomputed(knobs) if selective else frozenset(),
        offload=frozenset(knobs.names("offload_modules") or ()) if fine else frozenset(),
        offload_frac=knobs.fraction("activation_offload_fraction", 1.0),
        unfused_attention=settings.value("attention_backend") in ("unfused", "local")
        or settings.value("transformer_impl") == "local",
        glu_input_bytes=1 if compact else ACTIVATION_BYTES,
    )


def _recomputed(knobs: Knobs) -> frozenset[str]:
    if knobs.value("recompute_modules") is None:
        return frozenset({"core_attn"})
    return frozenset(knobs.names("recompute_modules") or ())


def layer_bytes(model: ModelSize, layout: Layout, kept: Keeping, *, moe: bool) -> dict[Part, int]:
    """Bytes that one layer keeps for one micro-batch on one rank, by part, after recompute and
    offloading.
    """
    parts = _attention(model, layout, kept) | (
        _moe(model, model.experts, layout, kept)
        if moe and model.experts
        else _dense(model, layout, kept)
    )
    for module in kept.recompute:
        for part in RECOMPUTED.get(module, ()):
            if part in parts and _acts_on(module, part, model, moe):
                parts[part] = 0
    norms = {"attn_norm", "mlp_norm"} & kept.offload
    for module in kept.offload - norms:
        for part in OFFLOADED.get(module, ()):
            if part in parts:
                parts[part] *= 1 - kept.offload_frac
    parts["residual"] *= 1 - kept.offload_frac * len(norms if moe else norms - {"mlp_norm"}) / 2
    return {part: round(held) for part, held in parts.items()}


def token_count(model: ModelSize, layout: Layout) -> float:
    """Tokens of one micro-batch that a rank's attention sees: its part of the sequence, times
    micro-batch.
    """
    return model.seq_length * layout.micro_batch / layout.cp


def shard_count(model: ModelSize, layout: Layout) -> float:
    """Tokens of one micro-batch between the tensor parallel regions: a shard with sequence
    parallelism.
    """
    return token_count(model, layout) / (layout.tp if layout.sequence_parallel else 1)


def _acts_on(module: str, part: Part, model: ModelSize, moe: bool) -> bool:
    if module == "layernorm":
        # A norm fused into the linear layer after it cannot be recomputed alone: only MLA and MoE
        # layers have norms of their own (gpt_layer_specs.py).
        if part == "attention_norm":
            return model.latent is not None
        return moe
    if module == "mla_up_proj":
        return model.latent is not None
    return module != "mlp" or not moe


def _attention(model: ModelSize, layout: Layout, kept: Keeping) -> Held:
    tokens = token_count(model, layout)
    shard = shard_count(model, layout)
    hidden = model.hidden_size
    low = kept.linear_bytes
    row_bytes = model.seq_length * ACTIVATION_BYTES if kept.unfused_attention else 4
    parts: Held = {
        "residual": 2 * shard * hidden * ACTIVATION_BYTES,
        "softmax": tokens * model.heads / layout.tp * row_bytes,
        "attention_output": tokens
        * model.v_size
        / layout.tp
        * (ACTIVATION_BYTES + low * kept.copies),
    }
    if model.latent is None:
        # Queries and keys are kept after the rotation, and the fused projection's output as the
        # values' home.
        keys = max(model.query_groups, layout.tp) * model.head_dim
        wide = 2 * model.qk_size + 3 * keys + model.output_gate * model.qk_size
        parts["attention_norm"] = shard * hidden * low
        parts["query_key_value"] = tokens * wide / layout.tp * ACTIVATION_BYTES
        return parts
    latent = model.latent
    ranks = latent.kv_rank + (latent.q_rank or 0)
    consumers = 1 if low == ACTIVATION_BYTES else 2
    parts["attention_norm"] = shard * hidden * low * consumers
    parts["latent"] = shard * (ranks + latent.qk_pos_dim) * ACTIVATION_BYTES
    wide = 2 * model.qk_size + model.v_size
    parts["query_key_value"] = tokens * wide / layout.tp * ACTIVATION_BYTES + shard * ranks * low
    return parts


def _dense(model: ModelSize, layout: Layout, kept: Keeping) -> Held:
    return {
        "mlp_norm": shard_count(model, layout) * model.hidden_size * kept.linear_bytes,
        "dense_mlp": token_count(model, layout) * _mlp(model, model.ffn_size, kept) / layout.tp,
    }


def _moe(model: ModelSize, experts: Experts, layout: Layout, kept: Keeping) -> Held:
    shard, low = shard_count(model, layout), kept.linear_bytes
    copies = shard * experts.topk * layout.etp
    fc1 = experts.ffn_size * (2 if model.gated else 1)
    shared_copy = low * (kept.copies and experts.shared_ffn_size > 0)
    parts: Held = {
        "mlp_norm": shard * model.hidden_size * (ACTIVATION_BYTES + shared_copy),
        "router": shard * experts.count * _ROUTER_BYTES,
        "expert_input": copies * experts.hidden_size * low,
        "expert_fc1": copies * fc1 / layout.etp * kept.glu_input_bytes,
        "moe_act": copies * experts.ffn_size / layout.etp * low,
    }
    if experts.shared_ffn_size:
        parts["shared_experts"] = (
            token_count(model, layout) * _mlp(model, experts.shared_ffn_size, kept) / layout.tp
        )
    return parts


def _mlp(model: ModelSize, ffn: int, kept: Keeping) -> float:
    return ffn * ((2 if model.gated else 1) * ACTIVATION_BYTES + kept.linear_bytes)
