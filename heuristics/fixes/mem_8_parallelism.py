"""MEM-8: parallel sizes, so that each rank holds less.

Changes how the model is cut: experts over more ranks first, then layers over more stages; TP last. Helps
where weights and optimizer state fill memory, or recompute and offload have taken all they can. Forbidden
where EP does not divide the experts. EP beyond one NVLink domain sends tokens over the network, so stages
come next there.
"""

from typing import Final

from heuristics.config.sizes import deeper_pp, experts_divide, wider_ep
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run


def change(run: Run) -> Change:
    """Twice the EP inside the domain, else twice the stages (N where PP is unknown)."""
    if ep := wider_ep(run):
        return Change({"expert_model_parallel_size": ep})
    stages = deeper_pp(run) or (None if run.config.pp else "N")
    return Change({"pipeline_model_parallel_size": stages}) if stages else Change()


def advice(run: Run) -> tuple[Precondition, ...]:
    """A reason to cut further, and sizes that divide."""
    needs = [
        holds(
            "expandable segments and selective recompute were tried first",
            _recomputes(run),
            "a run with MEM-1 and MEM-2 that still does not fit",
        ),
        holds("memory has no room left", run.config.memory_tight, told_by="--memory-tight"),
        holds(
            "EP, ETP and the NVLink domain are known", _told(run), told_by="--ep, --etp and --nvlink-domain"
        ),
    ]
    if ep := wider_ep(run):
        told = "num_moe_experts of the configuration"
        needs.append(holds(f"EP {ep} divides the experts", experts_divide(run, ep), told_by=told))
    else:
        text, met_by = (
            "a layout of stages and virtual stages fits the layers",
            "more ranks, or a layout of unequal stages",
        )
        needs.append(holds(text, _stages_fit(run), met_by, "COM-6, or num_layers"))
    return tuple(needs)


def _recomputes(run: Run) -> bool | None:
    modules = run.active.recompute_modules
    return True if run.active.recompute_full else None if modules is None else bool(modules)


def _stages_fit(run: Run) -> bool | None:
    """Known where layers and stages are: then the next PP divides them, or none does."""
    known = run.config.positive("num_layers") is not None and run.config.pp is not None
    return deeper_pp(run) is not None if known else None


def _told(run: Run) -> bool | None:
    if run.active.moe is False:
        return True
    sizes = (run.config.ep, run.config.expert_tensor_size, run.config.nvlink_domain)
    return None if None in sizes else True


FIX: Final = Fix(
    id="MEM-8",
    wall="memory",
    title="Split the model over more ranks: EP first, then PP",
    change=change,
    advice=advice,
    versions="every Megatron-Core release here; pipeline_model_parallel_layout since 0.13",
    side_effects=(
        "each cut costs: Llama3 70B on 32 H100 lost 28.4 % from TP4 to TP8, and 5.9 % when PP8 halved DP",
        "an EP twice as large has half the experts a rank, and more of its traffic leaves the rank",
        "virtual stages shorten bubbles; they do not save memory",
        "batch layout and checkpoints change with the parallel sizes",
    ),
    excludes=("MEM-15",),
    verify=(
        "allocated peak per rank falls, stages stay balanced, expert traffic stays inside the NVLink domain"
    ),
    sources=(
        "Megatron-Bridge skill perf-memory-tuning and docs/training/moe-optimization.md at 067f987d",
        "Megatron-LM, megatron/core/transformer/moe/README.md at d98e8a64",
        "Megatron-Bridge skill perf-moe-optimization-workflow",
    ),
)
