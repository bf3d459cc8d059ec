"""COM-7: another way for context parallelism to exchange keys and values.

Changes the kind of exchange. A ring of sends (p2p) runs under attention, all-gather and all-to-all never do;
a ring of many ranks has chunks too short to hide under, and then all-to-all inside NVLink with a ring between
domains (a2a+p2p) is the middle way. Helps where the exchange is exposed. All-to-all needs heads that its
ranks divide.
"""

from math import gcd
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds, is_not
from heuristics.run.run import Run

_RING: Final = "p2p"
_BOTH: Final = "a2a+p2p"
_INSIDE: Final = "a2a"


def kind_and_sizes(run: Run) -> tuple[str, tuple[int, ...]]:
    """The kind to try next, and the ranks of its levels: the ring, unless it is known to run already."""
    if run.config.first("cp_comm_type") != _RING or run.config.cp is None:
        return _RING, ()
    inner = _inside(run, run.config.cp)
    outer = run.config.cp // inner
    return (_BOTH, (inner, outer)) if inner > 1 and outer > 1 else (_INSIDE, ())


def _heads(run: Run) -> int | None:
    return run.config.positive("num_query_groups") or run.config.positive("num_attention_heads")


def _inside(run: Run, cp: int) -> int:
    """Largest part of CP that divides CP and the heads, and that one NVLink domain holds."""
    domain = run.config.nvlink_domain or cp
    heads = _heads(run) or cp
    heads //= run.config.tp if run.config.tp and not heads % run.config.tp else 1
    both = gcd(cp, heads)
    return max(size for size in range(1, min(both, domain) + 1) if not both % size)


def change(run: Run) -> Change:
    """One kind for all layers, with the ranks of each level where there are two."""
    kind, sizes = kind_and_sizes(run)
    levels = {"hierarchical_context_parallel_sizes": sizes} if sizes else {}
    return Change({"cp_comm_type": kind, **levels})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Context parallelism, of another kind so far, and heads to spread."""
    kind, now, cp = kind_and_sizes(run)[0], run.config.first("cp_comm_type"), run.config.cp
    cut = run.active.cp_active if cp is None else cp > 1
    needs = [
        holds("sequences are cut across ranks (CP above 1)", cut, told_by="--cp"),
        is_not(
            f"context parallelism does not use {kind} yet",
            None if now is None else now == kind,
            told_by="cp_comm_type of the configuration",
        ),
    ]
    if kind == _INSIDE and cp is not None:
        heads = _heads(run)
        told = None if heads is None else heads % (cp * (run.config.tp or 1)) == 0
        cure = "num_attention_heads of the configuration"
        needs.append(holds("CP divides the heads of a rank", told, told_by=cure))
    return tuple(needs)


FIX: Final = Fix(
    id="COM-7",
    wall="communication",
    title="Change the communication type of context parallelism",
    kinds=("cp",),
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; a list names a kind for each layer. Megatron-LM and "
        "Megatron-Bridge refuse a2a+p2p without hierarchical_context_parallel_sizes, whose product is CP"
    ),
    side_effects=(
        "all-to-all and all-gather stay exposed: they pay only where they are shorter than what is now",
        "heads, or groups of them, limit how far all-to-all can cut",
    ),
    verify="the exchange lies under attention, exposed cp time falls",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and megatron/training/arguments.py "
            "at d98e8a64"
        ),
        "Megatron-Bridge, docs/performance-guide.md and src/megatron/bridge/training/config.py at 067f987d",
        "Megatron-Bridge skill perf-hierarchical-context-parallel",
    ),
)
