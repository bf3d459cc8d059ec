"""CUDA graphs of parts of a layer (HST-3) and of the whole iteration (HST-7)."""

from dataclasses import replace
from typing import Final

from msgspec import structs

from heuristics.config.logic import negated
from heuristics.config.view import Trust
from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.memory import BUDGETED_BY
from heuristics.fixes.needs import all_needed, head_room, needed
from heuristics.fixes.precondition import Precondition
from heuristics.guides.cuda_graphs import RNG_TRACKER, GraphChoice, choose_graphs, graph_change
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from heuristics.words import say
from traces.limits import Limit
from traces.replay.changes.graphs import SCOPES
from traces.settings.settings import Value

GRAPHED: Final = Limit(
    0.2,
    "fraction of kernel work in CUDA graphs",
    "ours: router and preprocessing hold less, with attention more; beyond it mostly experts are outside",
)
ROOM: Final = Limit(
    10e9,
    "bytes",
    "Megatron-Bridge, docs/performance-guide.md: a few gigabytes, with pipeline stages over 10 GB",
)
WHOLE: Final = Limit(
    0.8, "fraction of kernel work in CUDA graphs", "ours: all but the optimizer, which no such graph holds"
)
GROWTH: Final = Limit(
    1.5, "times the peak memory", "Megatron-Bridge skill perf-cuda-graphs: 1.5 to 2 times; the lower end here"
)
_NAMES: Final = {
    "attn": "attention",
    "mlp": "MLP",
    "moe": "experts",
    "moe_router": "router",
    "moe_preprocess": "preprocessing",
    "mamba": "Mamba layers",
}


# ---- of parts of a layer ----


def partial_choice(run: Run) -> GraphChoice:
    """The guide's choice where it is such graphs, else the smallest of them (attention without experts).

    What is captured already stays, but for what the guide never captures.
    """
    choice = choose_graphs(_with_fit_recompute(run))
    modules = choice.modules
    if choice.impl != "transformer_engine":
        modules = ("attn",) if run.active.moe is False else ("moe_router", "moe_preprocess")
    captured = run.config.graph_impl == "transformer_engine"
    now = (run.config.names("cuda_graph_modules") or ()) if captured else ()
    held = {*modules, *(name for name in now if name not in choice.row.never)}
    return replace(choice, impl="transformer_engine", modules=tuple(name for name in _NAMES if name in held))


def _with_fit_recompute(run: Run) -> Run:
    """The run after MEM-2, where its recompute forbids graphs, which is a precondition of its own."""
    shown = run.active
    full = None if shown.recompute_full is None else False
    kept = shown.recompute_modules and tuple(name for name in shown.recompute_modules if name != "moe")
    corrected = replace(run, observed=replace(shown, recompute_full=full, recompute_modules=kept))
    config = run.view(Trust.CHECKED)
    if not config.full_recompute and "moe" not in (config.recompute_modules() or ()):
        return corrected
    modules = tuple(name for name in config.recompute_modules() or () if name != "moe")
    return corrected.changed({"recompute_granularity": "selective", "recompute_modules": modules})


def partial(run: Run) -> Change:
    """What the CUDA-graph guide names, in the release's knobs; NCCL keeps out of graphs' memory."""
    choice = partial_choice(run)
    return Change(
        {
            **graph_change(choice.impl, choice.modules, run.config.core_text),
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


def replayed_already(run: Run) -> tuple[Precondition, ...]:
    """Megatron's graphs of parts may hold more parts; what else replays graphs has been captured."""
    if run.framework != "megatron":
        return needed("no_graph_replays", run)
    is_set = run.active.graph_frac != 0 and _configured(run, partial_choice(run).modules)
    asked = needed("not_set_yet", run, False, knob="cuda_graph_impl") if is_set else ()
    return (*asked, *needed("graphs_hold_little", run))


def partial_needs(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-Core asserts for the modules that were chosen, and room for them."""
    choice, shown = choose_graphs(_with_fit_recompute(run)), run.active
    modules, recomputed = partial_choice(run).modules, shown.recompute_modules
    asks = "HST-7" if choice.impl == "full_iteration" else ", ".join(choice.asks)
    parts = choice.impl == "transformer_engine"
    needs = [
        *needed("graphs_guided", run, parts, rule=choice.rule, met_by=asks),
        *all_needed(run, "no_full_recompute", "no_layer_offload", "static_shapes"),
        *head_room(run, ROOM.value),
    ]
    if "moe_router" in modules:
        needs += needed("moe_not_recomputed", run, None if recomputed is None else "moe" not in recomputed)
    if "moe_preprocess" in modules and shown.dispatcher == "alltoall":
        needs += needed("router_unpadded", run)
    return tuple(needs)


def _configured(run: Run, modules: tuple[str, ...]) -> bool:
    asked = run.config.names("cuda_graph_modules")
    return run.config.first("cuda_graph_impl") == "transformer_engine" and (
        asked is not None and (not asked or set(modules) <= set(asked))
    )


def named(fix: Fix, run: Run) -> Fix:
    *first, last = (_NAMES[module] for module in partial_choice(run).modules)
    held = say("fixes.and", several=", ".join(first), last=last) if first else last
    return structs.replace(fix, title=say("fixes.graphs-of", modules=held))


def scopes(run: Run) -> tuple[str, ...]:
    modules = partial_choice(run).modules
    if set(SCOPES) <= set(modules):
        return ("graph_scopes",)
    return tuple(f"graph_{module}" for module in modules if module in SCOPES)


# ---- of the whole iteration ----


def whole(run: Run) -> Change:
    """One graph, in the release's knobs; dropless routing adds HST-6's budget and the stash it feeds."""
    stash = _dropless(run) and not run.config.core_before("0.18.0")
    named: dict[str, Value] = {"cuda_graph_modules": ()} if run.config.names("cuda_graph_modules") else {}
    return Change(
        {
            **named,  # a graph of everything takes no names
            **graph_change("full_iteration", (), run.config.core_text),
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
        since="0.18.0" if _dropless(run) else "0.15.0",
    )


def _dropless(run: Run) -> bool:
    return run.active.moe is not False and run.config.routing != "drop_pad"


def sizes_stay(run: Run) -> tuple[Precondition, ...]:
    """Nothing is read back in the step. HST-6 makes it so where NVIDIA's recipes do: MXFP8 on Blackwell."""
    blackwell = run.config.hardware_class in ("blackwell_nvl8", "nvl72")
    met_by = "HST-6" if blackwell and run.config.runs_mxfp8 else "drop-and-pad routing"
    return needed("no_sizes_back", run, run.tells("sync_free") if _dropless(run) else True, met_by=met_by)


def whole_already(run: Run) -> tuple[Precondition, ...]:
    graphed = run.active.graph_frac
    runs = None if graphed is None else graphed > WHOLE.value
    return needed("no_whole_graph", run, negated(run.config.graph_impl == "full_iteration" or runs))


def room_for_whole(run: Run) -> tuple[Precondition, ...]:
    peak = run.active.peak_bytes
    return head_room(run, None if peak is None else peak * (GROWTH.value - 1))
