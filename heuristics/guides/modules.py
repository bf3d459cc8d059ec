"""Modules that Megatron-Core can recompute, with what makes each legal, and those that graphs
capture.
"""

from typing import Final

from heuristics.config.families import MLA, NO_SHARED, QWEN, by_family
from heuristics.config.logic import first_known
from heuristics.facts.dictionary import fact
from heuristics.recipes import Published
from heuristics.rules.condition import RUNS, Condition
from heuristics.run.run import Run
from traces.toml_tables import TableRow, read_keyed

INSIDE_MOE: Final = frozenset({"moe_act", "shared_experts"})
"""Labels that recompute of the whole MoE layer covers."""
OF_EXPERTS: Final = INSIDE_MOE | {"moe"}
"""Labels that only a model with experts has."""


class Module(TableRow):
    """A row of `modules.toml`, which says what its fields are."""

    id: str
    needs: str
    legal: Condition | None = None
    source: str = "Megatron-LM, megatron/core/transformer/transformer_config.py at d98e8a64"
    usual: bool = False
    avoid: str = ""
    option: str = ""
    costs: Published | None = None


@fact
def latent_attention(run: Run) -> bool | None:
    """Whether attention has a latent projection: by the configuration, else by the family."""
    config = run.config
    return first_known(config.on("multi_latent_attention"), by_family(config.family, MLA, QWEN))


@fact
def gated_delta_net(run: Run) -> bool | None:
    """Whether attention is a gated delta net: by the configuration, else by the family."""
    variant = run.config.first("experimental_attention_variant")
    of_family = by_family(run.config.family, ("qwen3_next",), (*MLA, *NO_SHARED))
    if variant is None:
        return of_family
    return variant in ("gdn", "gdn2", "gated_delta_net")


CORE_ATTENTION: Final = "core_attn"


def attention_unfused(run: Run) -> bool:
    """Whether attention keeps its scores: no fused or flash kernel computes it."""
    return run.config.first("attention_backend") == "unfused"


def is_avoided(label: str, run: Run) -> bool:
    """Whether a label is not recommended although legal: the core of attention only where it is
    fused.
    """
    return bool(MODULES[label].avoid) and not (label == CORE_ATTENTION and attention_unfused(run))


MODULES: Final = read_keyed("heuristics.guides", "modules.toml", Module, RUNS.readers)
"""By label."""


def meets(label: str, run: Run) -> bool | None:
    """Whether a run meets what a label needs; None where unknown."""
    legal = MODULES[label].legal
    if legal:
        return legal.holds(run)
    return None


def recomputed_now(run: Run) -> frozenset[str]:
    """Labels that the trace shows recomputed; none where that is unknown or whole layers are."""
    if run.active.recompute_full:
        return frozenset()
    return frozenset(run.active.recompute_modules or ())


@fact
def exhausted(run: Run) -> bool:
    """Whether every selective module is recomputed already or known to be impossible."""
    now = recomputed_now(run)
    covered = now | INSIDE_MOE if "moe" in now else now
    return all(
        is_avoided(label, run) or label in covered or meets(label, run) is False
        for label in MODULES
    )
