"""Values that would meet a rule in one run, in words, by the names that rows use as `example`."""

from collections.abc import Mapping
from typing import Final

from heuristics.config.facts import Fact
from heuristics.config.view import Config


def _expert_ranks(config: Config) -> str | None:
    """Sizes of EP that the experts and the ranks allow."""
    experts, world = config.positive("num_moe_experts"), config.world
    etp, pp = config.expert_tensor_size, config.pp
    if experts is None or world is None or etp is None or pp is None:
        return None
    fit = [ep for ep in range(2, experts + 1) if experts % ep == 0 and world % (etp * ep * pp) == 0]
    return f"EP {_one_of(fit)}" if fit else None


def _hierarchy(config: Config) -> str | None:
    """Two levels of CP, of which the first divides what TP leaves of heads and query groups."""
    cp, tp, heads = config.cp, config.tp, config.positive("num_attention_heads")
    groups = config.positive("num_query_groups") or heads
    if cp is None or tp is None or heads is None or groups is None:
        return None
    fit = [one for one in range(2, cp) if cp % one == 0 and heads % (tp * one) == groups % (tp * one) == 0]
    return _one_of([f"[{one}, {cp // one}]" for one in fit]) if fit else None


def _one_of(values: list[int] | list[str]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


EXAMPLES: Final[Mapping[str, Fact]] = {
    "expert_ranks_that_fit": Fact(_expert_ranks),
    "hierarchy_that_fits": Fact(_hierarchy),
}
"""By name."""
