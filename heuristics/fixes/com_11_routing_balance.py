"""COM-11: tokens spread more evenly over experts, so that no rank is late at every all-to-all.

Changes the router's balancing, so it changes what is learned. Helps where most of the expert all-to-all is
waiting and the late rank is the one with the most tokens; bandwidth is then not the matter. Do first: one
benchmark run with --moe-router-force-load-balancing. If its waiting stays, routing is not the cause. That
option must never be in a real run. Useless where routing is forced even or padded to capacity already.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import WAITING, expert_parallel, holds, is_not, right_topology
from heuristics.guides.facts import EP_KINDS
from heuristics.run.run import Run
from traces.spelling import chosen


def change(run: Run) -> Change:
    """An auxiliary loss, as in the example of Megatron-LM's MoE README."""
    del run
    return Change({"moe_router_load_balancing_type": "aux_loss", "moe_aux_loss_coeff": 1e-2})


def advice(run: Run) -> tuple[Precondition, ...]:
    """Waiting dominates, which has to be seen: the change is of what is learned. Routing may be uneven."""
    waiting, routing = run.active.a2a_waiting_frac, run.config.routing
    uneven = run.active.late_cause == "routing_imbalance"
    spread = () if uneven else (expert_parallel(run),)  # work that differs by rank shows it by itself
    return (
        *spread,
        *right_topology(run),
        holds(
            f"waiting is more than {chosen(WAITING.value)} of the expert all-to-all, or "
            "routing makes a rank late",
            uneven or (None if waiting is None else waiting > WAITING.value),
            told_by="record several ranks of a group",
            blocks=True,
        ),
        is_not(
            "routing is neither forced to balance nor padded to capacity",
            None if routing is None else routing != "dropless",
            "what makes one rank late: HST-1, HST-2",
            "--routing",
        ),
    )


FIX: Final = Fix(
    id="COM-11",
    wall="communication",
    title="Balance the routing",
    kinds=EP_KINDS,
    change=change,
    advice=advice,
    versions=(
        "every Megatron-Core release here; expert bias (--moe-router-enable-expert-bias) since 0.11, with "
        "sigmoid scores, later also sqrtsoftplus"
    ),
    side_effects=("the training loss changes: check convergence before keeping it",),
    verify="grouped GEMMs of all ranks take equal time, waiting in expert all-to-all falls",
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/moe/README.md and "
            "megatron/core/transformer/transformer_config.py at d98e8a64"
        ),
        "Megatron-Bridge skill perf-moe-dispatcher-selection (forced balance is for benchmarks only)",
    ),
)
