"""Parallel folding: attention and experts each cut the same ranks their own way, under one pipeline."""

from typing import Final

from heuristics.run.run import Run
from heuristics.workflow.layout import layout_of
from heuristics.workflow.rule import Judged, WorkflowRule, met, not_applicable, unknown, violated

_WORLD: Final = "world_size, or the configuration's sizes and the number of ranks"


def judge_own_layout(run: Run) -> Judged:
    """Where attention is cut by TP or CP, experts get sizes of their own."""
    layout = layout_of(run)
    if layout.tp is None or layout.cp is None or layout.etp is None or layout.ep is None:
        return unknown("TP, CP, ETP or EP is not known", "--tp, --cp, --etp and --ep, or the configuration")
    if layout.tp * layout.cp == 1:
        return not_applicable("attention has neither TP nor CP, so there is nothing to fold away from")
    if layout.tp > 1 and layout.etp == layout.tp:
        return violated(
            f"experts take attention's TP{layout.tp} as ETP{layout.etp}: one layout is a tax on both",
            "--expert-tensor-parallel-size 1, and the EP that then fits",
            "COM-10",
        )
    return met(f"attention TP{layout.tp} x CP{layout.cp}, experts ETP{layout.etp} x EP{layout.ep}")


def judge_larger_expert_parallel(run: Run) -> Judged:
    """EP beyond DP is what folding gives: it runs over the ranks of TP and CP too."""
    layout, experts = layout_of(run), run.config.positive("num_moe_experts")
    if layout.dp is None or layout.ep is None or layout.etp is None or layout.tp is None or layout.cp is None:
        return unknown("DP, EP, TP or CP is not known", _WORLD)
    if layout.tp * layout.cp == 1:
        return not_applicable("without TP and CP, EP cannot be larger than DP")
    said = f"EP{layout.ep} x ETP{layout.etp} beside DP{layout.dp}"
    if layout.ep * layout.etp > layout.dp:
        return met(f"{said}: folded over TP{layout.tp} x CP{layout.cp}")
    if experts is None:
        return unknown(f"{said}; experts are not known", "num_moe_experts of the configuration")
    if layout.ep < layout.dp or experts == layout.ep:
        return met(f"{said}: it fits beside attention without folding")
    if (widest := widest_expert_parallel(run)) is None or widest <= layout.ep:
        return met(f"{said}: no larger EP stays inside one NVLink domain")
    return violated(
        f"{said}, so EP stops at DP, while a rank holds {experts // layout.ep} experts",
        f"let EP fold over TP and CP, up to EP{widest} inside one NVLink domain",
        "COM-10",
    )


def widest_expert_parallel(run: Run) -> int | None:
    """Largest EP that experts, ranks and one NVLink domain allow with ETP1; None where one is unknown."""
    layout, experts, domain = layout_of(run), run.config.positive("num_moe_experts"), run.config.nvlink_domain
    if not layout.world or not layout.pp or not experts or not domain:
        return None
    ranks = layout.world // layout.pp
    return max(size for size in range(1, min(experts, domain) + 1) if not experts % size and not ranks % size)


FOLDING_RULES: Final = tuple(
    WorkflowRule(f"folding-{name}", "folding", title, seed, judge, moe=True)
    for name, title, seed, judge in (
        ("own-layout", "Experts have a layout of their own", "003, Pitfalls, 5", judge_own_layout),
        (
            "larger-ep",
            "EP may be larger than the dense layers can take",
            "002 and 003, Parallel Folding",
            judge_larger_expert_parallel,
        ),
    )
)
