"""Facts of how ranks are grouped and tokens spread over them, and values that would fit a run."""

from math import gcd, prod
from typing import Final

from heuristics.config.sizes import divisors
from heuristics.config.view import Config
from heuristics.facts.dictionary import fact, told_by
from traces.limits import Limit
from traces.patterns import whole_number
from traces.settings.derive import DEFAULT
from traces.settings.knobs import EP, ETP, MICRO_BATCH
from traces.settings.settings import Framework
from traces.settings.spelling import spell

_BACKEND: Final = "moe_flex_dispatcher_backend"
_DEEPEP: Final = "moe_enable_deepep"
_DOMAIN: Final = "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"
_KINDS: Final = "moe_router_load_balancing_type"
_LOSSES: Final = "moe_aux_loss_coeff"
_LEVELS: Final = "hierarchical_context_parallel_sizes"


SMALL_EXPERT: Final = Limit(
    3072,
    "width of an expert",
    "Megatron-Bridge pull request 3561: 2,880 and top-4 of GPT-OSS-120B is too little for "
    "HybridEP's set-up",
)
FEW_CHOICES: Final = Limit(
    4, "experts a token", "Megatron-Bridge pull request 3561: top-4 of GPT-OSS-120B"
)
QUEUE_TOKENS: Final = Limit(
    21_844,
    "tokens",
    "Megatron-LM pull request 4094: 3 x tokens + 1 entries of a queue of at most 65,535",
)


@told_by(_BACKEND, _DEEPEP)
def flex_backend(config: Config) -> str | None:
    """The backend that flex runs on, where it runs; before 0.16 DeepEP alone. No text: null."""
    backend = config.word(_BACKEND)
    if backend:
        return backend
    if config.on(_DEEPEP) or config.before("core", "0.16.0"):
        return "deepep"
    if config.null(_BACKEND):
        return ""
    return None


@told_by("seq_length", MICRO_BATCH)
def rank_tokens(config: Config) -> int | None:
    """Tokens that a rank dispatches at once: of its micro-batch, less what TP with sequences and CP
    cut.
    """
    length, batch = config.positive("seq_length"), config.micro_batch
    tp, cp = config.tp or 1, config.cp or 1
    if length is None or batch is None:
        return None
    return length * batch // (tp * cp)


# ---- NVLink domains ----


@told_by(EP, option="--gpu-model")
def ep_in_domain(config: Config) -> int | None:
    """Ranks of an expert group in one NVLink domain."""
    topology = config.hybrid_topology
    if topology:
        return topology.ranks_per_domain
    return None


@told_by(f"env.{_DOMAIN}")
def domain_ranks(config: Config) -> int | str | None:
    """What HybridEP is told; a text that is no number as it is."""
    text = config.env(_DOMAIN)
    number = whole_number(text or "")
    if number is None:
        return text or None
    return number


@fact
def domain_ranks_that_fit(config: Config) -> str | None:
    """What HybridEP should be told."""
    ranks = ep_in_domain(config)
    if ranks is None:
        return None
    return f"{_DOMAIN}={ranks}"


@fact
def expert_ranks_that_fit(config: Config) -> str | None:
    """ETP 1 where the EP then fits; else sizes of EP that experts and ranks allow."""
    experts, world = config.positive("num_moe_experts"), config.world
    etp, pp, ep = config.expert_tensor_size, config.pp, config.ep
    if experts is None or world is None or etp is None or pp is None:
        return None
    if etp > 1 and ep and world % (ep * pp) == 0:
        framework: Framework = (
            "megatron_bridge" if config.framework == "megatron_bridge" else "megatron_lm"
        )
        return spell({ETP: 1}, framework)[0]
    ranks, odd_ranks = divmod(world, etp * pp)
    if not odd_ranks and (fit := divisors(gcd(experts, ranks), experts)[1:]):
        return f"EP {_one_of(fit)}"
    return None


@told_by(_KINDS, _LOSSES)
def balance_lists_fit(config: Config) -> bool | None:
    """A coefficient for each kind of balancing; Megatron-LM takes a list of one as no list."""
    kinds, losses = config.value(_KINDS), config.value(_LOSSES)
    if not isinstance(kinds, tuple) or len(kinds) < 2:
        if config.known(_KINDS):
            return True
        return None
    if not config.known(_LOSSES):
        return None
    return isinstance(losses, tuple) and len(losses) == len(kinds)


@told_by(_KINDS, _LOSSES)
def balance_off(config: Config) -> bool | None:
    """Whether no loss keeps the experts' load even: none is chosen, or its coefficient is nothing.

    Routing that is forced to balance, or by Sinkhorn, needs none. What nobody wrote, neither kind
    nor coefficient, is left open; with expert bias only a coefficient that somebody wrote counts.
    """
    kinds, loss = config.names(_KINDS), config.value(_LOSSES)
    if kinds is None and config.known(_LOSSES):
        kinds = ("aux_loss",)  # the default of both frameworks
    if kinds is None:
        return None
    if config.routing == "force_balance":
        return False
    if kinds == ("none",):
        return True
    if not any("aux_loss" in kind for kind in kinds):
        return False
    if not config.known(_LOSSES):
        return None
    losses = loss if isinstance(loss, tuple) else (loss,)
    unsaid = [knob for knob in (_KINDS, _LOSSES) if config.settings.said(knob) in (DEFAULT, "")]
    by_bias = config.on("moe_router_enable_expert_bias") and _LOSSES in unsaid
    if by_bias or len(unsaid) == 2:
        return None
    return not any(losses)


# ---- context parallelism ----


@told_by("cp_comm_type", "num_layers")
def cp_list_fits(config: Config) -> bool | None:
    """One entry a layer, where it is a list."""
    kinds, layers = config.value("cp_comm_type"), config.count("num_layers")
    if not isinstance(kinds, tuple):
        if config.known("cp_comm_type"):
            return True
        return None
    if layers is None:
        return None
    return len(kinds) == layers


def _hierarchy(config: Config) -> list[int]:
    sizes, whole = config.value(_LEVELS), []
    for word in sizes if isinstance(sizes, tuple) else ():
        number = whole_number(str(word))
        if number is None:
            return []
        whole.append(number)
    return whole


@told_by(_LEVELS)
def hierarchy_first(config: Config) -> int | None:
    """Ranks of CP's first level."""
    return next(iter(_hierarchy(config)), None)


@told_by(_LEVELS)
def hierarchy_product(config: Config) -> int | None:
    """Ranks of all its levels."""
    if sizes := _hierarchy(config):
        return prod(sizes)
    return None


@fact
def hierarchy_that_fits(config: Config) -> str | None:
    """Two levels of CP, of which the first divides what TP leaves of heads and query groups."""
    cp, tp, heads = config.cp, config.tp, config.positive("num_attention_heads")
    groups = config.positive("num_query_groups") or heads
    if cp is None or tp is None or heads is None or groups is None:
        return None
    fit = [
        f"[{size}, {cp // size}]"
        for size in divisors(cp, cp - 1)[1:]
        if heads % (tp * size) == groups % (tp * size) == 0
    ]
    if fit:
        return _one_of(fit)
    return None


def _one_of(values: list[int] | list[str]) -> str:
    *first, last = map(str, values)
    if first:
        return f"{', '.join(first)} or {last}"
    return last
