"""What each rule of the ranking asks of a layout, by `ranking.toml`; their sum orders the list.

A cost is a part of the time that the compute alone would need. It orders layouts; it predicts no step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Final

from heuristics.config.hardware import family_named
from heuristics.layouts.candidates import EACH, MICRO_BATCHES
from heuristics.layouts.fit import Fitted
from heuristics.layouts.published import Machine, Near, Published, near, nearness
from heuristics.layouts.rules import rules
from heuristics.recipes import RECIPES
from traces.limits import NEARLY_ALL, Limit
from traces.sizes.model import ModelSize
from traces.sizes.peaks import peak, peak_precision
from traces.sizes.throughput import flops_per_token

REACHED: Final = Limit(
    0.5, "of the peak", "ours: what large GEMMs in BF16 reach; published runs lie at 28 to 55 % in all"
)
COLLECTIVES: Final = Limit(
    0.7, "of NVLink's rate", "ours: what NCCL's rings reach of 450 (H100) and 900 GB/s (B200)"
)
LINK: Final[Mapping[str, float]] = {"ampere": 300.0, "hopper": 450.0, "blackwell_nvl8": 900.0, "nvl72": 900.0}
"""GB/s of one GPU in one direction: NVIDIA's datasheets."""


@dataclass(frozen=True)
class Ranking:
    """What orders layouts of one model on one machine. `compute_s`: of a token, at the rate GEMMs reach."""

    model: ModelSize
    machine: Machine
    domain: int
    hardware: str
    compute_s: float
    near: tuple[Near, ...]

    def figures(self, one: Fitted) -> Mapping[str, float]:
        """The figure of every rule, before its weight."""
        return {id: _FIGURES[id](self, one) for id in rules()}

    def cost(self, one: Fitted) -> float:
        return sum(rules()[id].weight * figure for id, figure in self.figures(one).items())

    def closest(self, one: Fitted, count: int = 2) -> tuple[tuple[Near, float], ...]:
        """Published layouts that speak most for this one, each layout once."""
        found = sorted(((nearness(one.sizes, of), of) for of in self.near), key=lambda pair: -pair[0])
        once: dict[tuple[str, str, str], tuple[Near, float]] = {}
        for value, of in found:
            once.setdefault((of.of.model, of.of.gpu, of.of.layout), (of, value))
        return tuple(pair for pair in once.values() if pair[1] > 0)[:count]


def ranking_of(
    model: ModelSize, machine: Machine, precision: str, domain: int, among: Sequence[Published]
) -> Ranking:
    family = family_named(machine.gpu)
    ceiling = peak(machine.gpu, peak_precision(precision)) or peak("H100", "bf16")
    assert ceiling is not None
    rate = ceiling.tflops * 1e12 * REACHED.value
    return Ranking(
        model,
        machine,
        domain,
        family.hardware if family and family.hardware in LINK else "hopper",
        sum(flops_per_token(model).values()) / rate,
        near(machine, among),
    )


def _bubble(_: Ranking, one: Fitted) -> float:
    return one.sizes.bubble_frac


def _recompute(_: Ranking, one: Fitted) -> float:
    return one.recompute.cost_frac


def _tensor(_: Ranking, one: Fitted) -> float:
    return log2(one.sizes.tp) + log2(one.sizes.cp)


def _volume(of: Ranking, one: Fitted) -> float:
    """Eight exchanges a layer of BF16 rows; each of TP ranks does a part of the token's work."""
    layers = len(of.model.is_moe) + of.model.mtp_layers
    sent = 8 * 2 * of.model.hidden_size * layers * (one.sizes.tp - 1)
    return sent / (LINK[of.hardware] * 1e9 * COLLECTIVES.value) / of.compute_s


def _depth(_: Ranking, one: Fitted) -> float:
    return log2(one.sizes.pp)


def _uneven(_: Ranking, one: Fitted) -> float:
    return one.sizes.uneven_frac


def _virtual(_: Ranking, one: Fitted) -> float:
    return EACH.value * one.sizes.vpp if one.sizes.pp > 1 else 0.0


def domains(of: Ranking, one: Fitted) -> int:
    """NVLink domains that an expert group spans."""
    return -(-one.sizes.ep * one.sizes.etp // of.domain)


def _token_bytes(of: Ranking) -> int:
    """Of one copy of a token through all MoE layers: dispatch and combine, forward and backward, in BF16."""
    experts = of.model.experts
    return 0 if experts is None else 4 * 2 * experts.hidden_size * of.model.moe_layer_count


def _copies(of: Ranking, ways: int) -> float:
    """How many of so many places get a token, by even routing; without the one that has it."""
    topk = of.model.experts.topk if of.model.experts else 0
    return ways * (1 - (1 - 1 / ways) ** topk) * (ways - 1) / ways


def _exchanged(hardware: str) -> float:
    """GB/s at which tokens go over NVLink: as measured on Hopper and in a rack, else by the links."""
    if hardware == "nvl72":
        return RECIPES["hybridep_in_rack"].value
    return RECIPES["deepep_in_node"].value * LINK[hardware] / LINK["hopper"]


def _inside(of: Ranking, one: Fitted) -> float:
    ways = min(one.sizes.ep, of.domain)
    return _token_bytes(of) * _copies(of, ways) / (_exchanged(of.hardware) * 1e9) / of.compute_s


def _across(of: Ranking, one: Fitted) -> float:
    sent = _token_bytes(of) * _copies(of, domains(of, one))
    return sent / (RECIPES["network"].value * 1e9) / of.compute_s


def _experts(of: Ranking, one: Fitted) -> float:
    return max(0.0, log2((of.model.expert_count or 1) / one.sizes.ep / RECIPES["few_experts"].value))


def _gradients(of: Ranking, one: Fitted) -> float:
    """Bytes of a step's gather and scatter over the network, beside its compute; none without data ranks."""
    sizes = one.sizes
    if sizes.dp * sizes.cp == 1:
        return 0.0
    sent = one.memory.parameters_bytes + one.memory.gradients_bytes
    tokens = sizes.batch * of.model.seq_length / sizes.gpus
    return sent / (RECIPES["network"].value * 1e9) / (tokens * of.compute_s)


def _full(_: Ranking, one: Fitted) -> float:
    return max(0.0, one.filled_frac - NEARLY_ALL.value)


def _launches(of: Ranking, one: Fitted) -> float:
    """Doublings that the micro-batch stays below the largest, where the host is slower than the GPU."""
    missing = log2(max(MICRO_BATCHES) / one.sizes.micro_batch)
    return missing if of.hardware in ("blackwell_nvl8", "nvl72") else missing / 4


def _model(of: Ranking, one: Fitted) -> float:
    return 1 - max((nearness(one.sizes, each) for each in of.near if each.same_model), default=0.0)


def _machine(of: Ranking, one: Fitted) -> float:
    return 1 - max((nearness(one.sizes, each) for each in of.near if not each.same_model), default=0.0)


_FIGURES: Final[Mapping[str, Callable[[Ranking, Fitted], float]]] = {
    "bubble": _bubble,
    "recompute": _recompute,
    "tensor": _tensor,
    "volume": _volume,
    "depth": _depth,
    "uneven": _uneven,
    "virtual": _virtual,
    "inside": _inside,
    "across": _across,
    "experts": _experts,
    "gradients": _gradients,
    "full": _full,
    "launches": _launches,
    "model": _model,
    "machine": _machine,
}
