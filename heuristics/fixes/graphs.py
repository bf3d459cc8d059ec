"""CUDA graphs of parts of a layer (HST-3) and of the whole iteration (HST-7)."""

from dataclasses import replace
from typing import Final

from heuristics.config.features import GRAPH_MODULES
from heuristics.facts.dictionary import fact
from heuristics.fixes.change import Change
from heuristics.fixes.memory import BUDGETED_BY
from heuristics.guides.cuda_graphs import (
    RNG_TRACKER,
    GraphChoice,
    Graphs,
    choose_graphs,
    graph_change,
)
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import Limit
from traces.texts import Texts

GRAPHED: Final = Limit(
    0.2,
    "fraction of kernel work in CUDA graphs",
    "ours: router and preprocessing hold less, with attention more; beyond it mostly experts are "
    "outside",
)
ROOM: Final = Limit(
    10e9,
    "bytes",
    "Megatron-Bridge, docs/performance-guide.md: a few gigabytes, with pipeline stages over 10 GB",
)
WHOLE: Final = Limit(
    0.8,
    "fraction of kernel work in CUDA graphs",
    "ours: all but the optimizer, which no such graph holds",
)
GROWTH: Final = Limit(
    1.5,
    "times the peak memory",
    "Megatron-Bridge skill perf-cuda-graphs: 1.5 to 2 times; the lower end here",
)


# ---- of parts of a layer ----


@fact
def graph_guide(run: Run) -> GraphChoice:
    """What the guide of graphs chooses, where recompute allows it."""
    return choose_graphs(_with_fit_recompute(run))


@fact
def partial_graphs(run: Run) -> GraphChoice:
    """The guide's choice where it is such graphs, else the smallest of them (attention without
    experts).

    What is captured already stays, but for what the guide never captures.
    """
    choice = graph_guide(run)
    modules = choice.modules
    if choice.impl != "transformer_engine":
        modules = ("attn",) if run.active.moe is False else ("moe_router", "moe_preprocess")
    captured = run.config.graph_impl == "transformer_engine"
    now = (run.config.names("cuda_graph_modules") or ()) if captured else ()
    held = {*now} - {*choice.row.never} | {*modules}
    return replace(
        choice,
        graphs=Graphs("transformer_engine", tuple(name for name in GRAPH_MODULES if name in held)),
    )


def _with_fit_recompute(run: Run) -> Run:
    """The run after MEM-2, where its recompute forbids graphs, which is a precondition of its
    own.
    """
    shown = run.active
    full = None if shown.recompute_full is None else False
    kept = shown.recompute_modules and _without_experts(shown.recompute_modules)
    corrected = replace(run, observed=replace(shown, recompute_full=full, recompute_modules=kept))
    config = run.checked
    if not config.full_recompute and "moe" not in (config.recompute_modules() or ()):
        return corrected
    modules = _without_experts(config.recompute_modules() or ())
    return corrected.changed({"recompute_granularity": "selective", "recompute_modules": modules})


def _without_experts(modules: Texts) -> Texts:
    return tuple(name for name in modules if name != "moe")


def partial(run: Run) -> Change:
    """What the CUDA-graph guide names, in the release's knobs; NCCL keeps out of graphs' memory."""
    choice = run.tells("partial_graphs")
    return Change(
        {
            **graph_change(choice.graphs, run.config.core_text),
            **RNG_TRACKER,
            "env.NCCL_GRAPH_REGISTER": "0",
        },
        harness=(
            "--cuda_graph_impl transformer_engine",
            f"--cuda_graph_scope {','.join(choice.modules)}",
        ),
        by_release=True,
        since="0.16.0",
    )


@fact
def graphs_configured(run: Run) -> bool:
    """Whether these graphs are asked for, and none is known not to replay."""
    chosen, modules = run.config.names("cuda_graph_modules"), run.tells("partial_graphs").modules
    if chosen is None or run.config.first("cuda_graph_impl") != "transformer_engine":
        return False
    return run.active.graph_frac != 0 and (not chosen or {*modules} <= {*chosen})


@fact
def graphs_held(run: Run) -> str:
    """What these graphs hold, in words."""
    *first, last = (say(f"fixes.scope-{module}") for module in run.tells("partial_graphs").modules)
    if first:
        return " and ".join((", ".join(first), last))
    return last


# ---- of the whole iteration ----


def whole(run: Run) -> Change:
    """One graph, in the release's knobs; dropless routing adds HST-6's budget and the stash it
    feeds.
    """
    stash = not run.tells("drops_tokens") and not run.config.core_before("0.18.0")
    named = {"cuda_graph_modules": ()} if run.config.names("cuda_graph_modules") else {}
    return Change(
        {
            **named,  # a graph of everything takes no names
            **graph_change(Graphs("full_iteration", ()), run.config.core_text),
            **RNG_TRACKER,
            "rerun.check_for_nan_in_loss": False,
            "ddp.check_for_nan_in_grad": False,
            **(
                {
                    BUDGETED_BY: RECIPES["expert_budget"].value,
                    "use_transformer_engine_op_fuser": True,
                    "moe_paged_stash": True,
                }
                if stash
                else {}
            ),
        },
        harness=("--cuda_graph_impl local", "--cuda_graph_scope full_iteration"),
        by_release=True,
        since="0.18.0" if not run.tells("drops_tokens") else "0.15.0",
    )
