"""The sizes of a model, from the knobs that Megatron-Core's TransformerConfig and the model
provider take.
"""

from typing import Final

from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import Missing, unless
from traces.settings.settings import Settings
from traces.sizes.knobs import Knobs
from traces.sizes.recognised import filled_in
from traces.spelling import gigabytes
from traces.texts import Texts

_PATH: Final = "sizes.model"
_MOST_LAYERS: Final = 2_000
"""No model has as many; a slip of the pen must not fill memory."""

_OTHER_LAYERS: Final = (
    "hybrid_layer_pattern",
    "experimental_attention_variant",
)


@frozen
class Latent:
    """Multi-latent attention (MLA); `q_rank` None: queries are not compressed."""

    q_rank: int | None
    kv_rank: int
    qk_head_dim: int
    qk_pos_dim: int
    v_head_dim: int


@frozen
class Experts:
    """Routed and shared experts. `hidden_size` is what routed experts take in (the latent size, if
    any).
    """

    count: int
    topk: int
    ffn_size: int
    hidden_size: int
    latent: bool
    shared_ffn_size: int
    shared_gate: bool


@frozen
class Window:
    """Sliding-window attention: tokens seen, and each how many layers one sees everything (None:
    never).
    """

    token_count: int
    full_every: int | None


@frozen
class Layers:
    """Layers of a MoE model without their sizes: `is_moe` and `assumed` as in `ModelSize`."""

    is_moe: tuple[bool, ...]
    mtp_layers: int
    expert_count: int
    assumed: Texts


@frozen
class ModelSize:
    """A GPT-like model. `is_moe`: per decoder layer, whether its MLP is a mixture of experts.

    `heads`, `query_groups` and `head_dim` are of ordinary attention; MLA takes its dimensions from
    `latent`. `assumed`: knobs taken at Megatron's default because the configuration does not have
    them.
    """

    is_moe: tuple[bool, ...]
    hidden_size: int
    heads: int
    query_groups: int
    head_dim: int
    ffn_size: int
    gated: bool
    vocab_size: int
    tied_embeddings: bool
    mtp_layers: int
    seq_length: int
    latent: Latent | None
    experts: Experts | None
    window: Window | None
    norm_weights: int
    bias: bool
    qk_norm: bool
    output_gate: bool
    assumed: Texts

    @property
    def expert_count(self) -> int | None:
        if self.experts:
            return self.experts.count
        return None

    @property
    def mtp_is_moe(self) -> bool:
        """Multi-token prediction layers are built like the last decoder layer."""
        return self.is_moe[-1]

    @property
    def moe_layer_count(self) -> int:
        """MoE layers, those of multi-token prediction included."""
        return sum(self.is_moe) + self.mtp_layers * self.mtp_is_moe

    @property
    def dense_layer_count(self) -> int:
        """Layers with a dense MLP, those of multi-token prediction included."""
        return len(self.is_moe) + self.mtp_layers - self.moe_layer_count

    @property
    def qk_size(self) -> int:
        return self.heads * (
            self.latent.qk_head_dim + self.latent.qk_pos_dim if self.latent else self.head_dim
        )

    @property
    def v_size(self) -> int:
        return self.heads * (self.latent.v_head_dim if self.latent else self.head_dim)


def layers_of(settings: Settings) -> Layers | Missing:
    """Which layers of a MoE model route tokens; Missing names the knobs that tell it."""
    if (missing := _other_layers(settings)) is not None:
        return missing
    knobs = Knobs(settings)
    layers, experts = knobs.need("num_layers"), knobs.need("num_moe_experts")
    if layers > _MOST_LAYERS:
        return _TOO_MANY
    is_moe, mtp_layers = _pattern(knobs, layers), knobs.positive("mtp_num_layers") or 0
    return unless(knobs.gap(_PATH), Layers(is_moe, mtp_layers, experts, tuple(knobs.assumed)))


_TOO_MANY: Final = Missing(_PATH, "num_layers is not that of a model", "check num_layers")


def _other_layers(settings: Settings) -> Missing | None:
    for knob in _OTHER_LAYERS:
        if settings.value(knob) is not None:
            why = f"{knob} is set: only layers of ordinary or multi-latent attention are counted"
            return Missing(_PATH, why, "nothing: such layers are not counted yet")
    return None


def model_size(settings: Settings, any_vocabulary: bool = False) -> ModelSize | Missing:
    """Sizes of the model a configuration describes; Missing names the knobs that are not there.

    What is left out of a model that its sizes tell is that model's. Models with other than
    attention layers (Mamba, linear or sparse attention) are Missing too. `any_vocabulary`: one that
    nobody names is taken as that of usual models, not as missing.
    """
    if (missing := _other_layers(settings)) is not None:
        return missing
    settings, taken = filled_in(settings)
    knobs = Knobs(settings)
    knobs.assumed += taken
    needed = ("num_layers", "hidden_size", "num_attention_heads")
    layers, hidden, heads = map(knobs.need, needed)
    if layers > _MOST_LAYERS:
        return _TOO_MANY
    experts = _experts(knobs, hidden)
    is_moe = _pattern(knobs, layers) if experts else (False,) * layers
    vocab = "padded_vocab_size" if settings.value("padded_vocab_size") is not None else "vocab_size"
    size = ModelSize(
        is_moe=is_moe,
        hidden_size=hidden,
        heads=heads,
        query_groups=knobs.positive("num_query_groups") or heads,
        head_dim=knobs.positive("kv_channels") or max(1, hidden // heads),
        ffn_size=0 if all(is_moe) else knobs.need("ffn_hidden_size"),
        gated=knobs.flag("gated_linear_unit", False),
        vocab_size=_vocabulary(knobs, vocab, hidden, any_vocabulary),
        tied_embeddings=knobs.flag("share_embeddings_and_output_weights", True),
        mtp_layers=knobs.positive("mtp_num_layers") or 0,
        seq_length=knobs.need("seq_length"),
        latent=_latent(knobs),
        experts=experts,
        window=_window(knobs),
        norm_weights=2 if settings.value("normalization") == "LayerNorm" else 1,
        bias=settings.value("add_bias_linear") is True,
        qk_norm=settings.value("qk_layernorm") is True,
        output_gate=settings.value("attention_output_gate") is True,
        assumed=tuple(knobs.assumed),
    )
    return unless(knobs.gap(_PATH), size)


VOCABULARY: Final = Limit(
    131_072,
    "words",
    "ours: between Mixtral's 32,000 and Gemma 3's 262,144; nearly that of DeepSeek-V3",
)
_SMALLEST, _LARGEST = 32_000, 262_144
_STATE_BYTES: Final = 6
"""Of a word of an embedding that is not shared out: its weight, and its gradient in FP32."""


def _vocabulary(knobs: Knobs, knob: str, hidden: int, any_size: bool) -> int:
    if knobs.positive(knob) is not None or not any_size:
        return knobs.need(knob)
    word, taken = hidden * _STATE_BYTES, VOCABULARY.whole
    least, most = gigabytes(_SMALLEST * word), gigabytes(_LARGEST * word)
    knobs.assumed.append(
        f"vocab_size {taken:,} (not given; an embedding takes {least} to {most} before TP)"
    )
    return taken


def _experts(knobs: Knobs, hidden: int) -> Experts | None:
    if knobs.value("num_moe_experts") is None:
        if (
            "num_moe_experts" not in knobs.settings
            and knobs.value("moe_ffn_hidden_size") is not None
        ):
            knobs.missing.append("num_moe_experts")
        return None
    latent = knobs.positive("moe_latent_size")
    ffn = knobs.positive("moe_ffn_hidden_size")
    return Experts(
        count=knobs.need("num_moe_experts"),
        topk=knobs.need("moe_router_topk"),
        ffn_size=ffn or knobs.need("ffn_hidden_size"),
        hidden_size=latent or hidden,
        latent=latent is not None,
        shared_ffn_size=knobs.positive("moe_shared_expert_intermediate_size") or 0,
        shared_gate=knobs.value("moe_shared_expert_gate") is True,
    )


def _pattern(knobs: Knobs, layers: int) -> tuple[bool, ...]:
    freq = knobs.value("moe_layer_freq")
    if isinstance(freq, tuple):
        if len(freq) != layers or not {*freq} <= {0, 1}:
            knobs.missing.append("moe_layer_freq with one 0 or 1 for each layer")
            return (True,) * layers
        return tuple(map(bool, freq))
    every = max(1, knobs.whole("moe_layer_freq"))
    return tuple(layer % every == 0 for layer in range(layers))


def _latent(knobs: Knobs) -> Latent | None:
    if knobs.value("multi_latent_attention") is not True:
        return None
    return Latent(
        q_rank=knobs.positive("q_lora_rank")
        if "q_lora_rank" in knobs.settings
        else knobs.need("q_lora_rank"),
        kv_rank=knobs.need("kv_lora_rank"),
        qk_head_dim=knobs.whole("qk_head_dim", 128),
        qk_pos_dim=knobs.whole("qk_pos_emb_head_dim", 64),
        v_head_dim=knobs.whole("v_head_dim", 128),
    )


def _window(knobs: Knobs) -> Window | None:
    every = knobs.positive("window_attn_skip_freq")
    match knobs.value("window_size"):
        case (int(before), int(after)) if min(before, after) >= 0:
            return Window(before + after + 1, every)
        case int(whole) if whole > 0 and whole is not True:
            return Window(whole, every)
    return None
