"""What each rule of the ranking asks of a layout, by `ranking.toml`; their sum orders the list.

A cost is a part of the time that the compute alone would need. It orders layouts; it predicts no
step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from typing import Final

from heuristics.config.hardware import family_named
from heuristics.layouts.candidates import EACH, MICRO_BATCHES
from heuristics.layouts.fit import Costs, Fitted
from heuristics.layouts.published import Machine, Near, Published, near, nearness
from heuristics.layouts.rules import rules
from heuristics.recipes import RECIPES
from traces.limits import NEARLY_ALL, Limit
from traces.sizes.model import ModelSize
from traces.sizes.peaks import peak, peak_precision
from traces.sizes.throughput import flops_per_token

REACHED: Final = Limit(
    0.5,
    "of the peak",
    "ours: what large GEMMs in BF16 reach; published runs lie at 28 to 55 % in all",
)
COLLECTIVES: Final = Limit(
    0.7, "of NVLink's rate", "ours: what NCCL's rings reach of 450 (H100) and 900 GB/s (B200)"
)
LINK: Final = {
    "ampere": 300.0,
    "hopper": 450.0,
    "blackwell_nvl8": 900.0,
    "nvl72": 900.0,
}
"""GB/s of one GPU in one direction: NVIDIA's datasheets."""


@dataclass(frozen=True)
class Ranking:
    """What orders layouts of one model on one machine. `compute_s`: of a token, at the rate GEMMs
    reach.
    """

    model: ModelSize
    machine: Machine
    domain: int
    hardware: str
    compute_s: float
    near: tuple[Near, ...]

    def costs(self, layout: Fitted) -> Costs:
        """What each rule asks of a layout: its figure by its weight."""
        figures = _figures(self, layout)
        return {id: rule.weight * figures[id] for id, rule in rules().items()}

    def cost(self, layout: Fitted) -> float:
        return sum(self.costs(layout).values())

    def closest(self, layout: Fitted, count: int = 2) -> tuple[tuple[Near, float], ...]:
        """Published layouts that speak most for this one, each layout once."""
        once = dict[tuple[str, str, str], tuple[Near, float]]()
        for neighbour in sorted(self.near, key=partial(nearness, layout.sizes), reverse=True):
            if (value := nearness(layout.sizes, neighbour)) > 0:
                once.setdefault(
                    (neighbour.of.model, neighbour.of.gpu, neighbour.of.layout), (neighbour, value)
                )
        return tuple(once.values())[:count]


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


def domains(of: Ranking, layout: Fitted) -> int:
    """NVLink domains that an expert group spans."""
    return -(-layout.sizes.ep * layout.sizes.etp // of.domain)


def _token_bytes(of: Ranking) -> int:
    """Of one copy of a token through all MoE layers: dispatch and combine, forward and backward, in
    BF16.
    """
    experts = of.model.experts
    if not experts:
        return 0
    return 4 * 2 * experts.hidden_size * of.model.moe_layer_count


def _copies(of: Ranking, ways: int) -> float:
    """How many of so many places get a token, by even routing; without the one that has it."""
    topk = of.model.experts.topk if of.model.experts else 0
    return ways * (1 - (1 - 1 / ways) ** topk) * (ways - 1) / ways


def _exchanged(hardware: str) -> float:
    """GB/s at which tokens go over NVLink: as measured on Hopper and in a rack, else by the
    links.
    """
    if hardware == "nvl72":
        return RECIPES["hybridep_in_rack"].value
    return RECIPES["deepep_in_node"].value * LINK[hardware] / LINK["hopper"]


def _figures(of: Ranking, layout: Fitted) -> dict[str, float]:
    """The figure of every rule, before its weight; times in parts of what compute alone takes."""
    model, sizes, experts = of.model, layout.sizes, of.model.expert_count or 1
    network, token_bytes = RECIPES["network"].value * 1e9, _token_bytes(of)
    layers = len(model.is_moe) + model.mtp_layers
    # eight exchanges a layer of BF16 rows; each of TP ranks does a part of the token's work
    exchanged = 8 * 2 * model.hidden_size * layers * (sizes.tp - 1)
    inside = token_bytes * _copies(of, min(sizes.ep, of.domain)) / (_exchanged(of.hardware) * 1e9)
    across = token_bytes * _copies(of, domains(of, layout)) / network
    waiting = log2(max(MICRO_BATCHES) / sizes.micro_batch)
    figures = {
        "bubble": sizes.bubble_frac,
        "recompute": layout.recompute.cost_frac,
        "tensor": log2(sizes.tp) + log2(sizes.cp),
        "volume": exchanged / (LINK[of.hardware] * 1e9 * COLLECTIVES.value) / of.compute_s,
        "depth": log2(sizes.pp),
        "uneven": sizes.uneven_frac,
        "virtual": EACH.value * sizes.vpp * (sizes.pp > 1),
        "inside": inside / of.compute_s,
        "across": across / of.compute_s,
        "experts": max(0.0, log2(experts / sizes.ep / RECIPES["few_experts"].value)),
        "gradients": 0.0,
        "full": max(0.0, layout.filled_frac - NEARLY_ALL.value),
        # the host is slower than the GPU there
        "launches": waiting if of.hardware in ("blackwell_nvl8", "nvl72") else waiting / 4,
        "model": 1.0,
        "machine": 1.0,
    }
    if sizes.dp * sizes.cp > 1:  # a step's gather and scatter over the network
        sent = layout.memory.parameters_bytes + layout.memory.gradients_bytes
        tokens = sizes.batch * model.seq_length / sizes.gpus
        figures["gradients"] = sent / network / (tokens * of.compute_s)
    for neighbour in of.near:
        rule = "model" if neighbour.same_model else "machine"
        figures[rule] = min(figures[rule], 1 - nearness(sizes, neighbour))
    return figures
