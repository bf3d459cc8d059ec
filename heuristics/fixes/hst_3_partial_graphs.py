"""HST-3: CUDA graphs of the parts of a layer whose sizes never change.

Changes attention, router and preprocessing to graphs that one call launches; experts of dropless routing stay
outside. Helps where the host cannot keep up. A graph that captures is no gain yet: compare replay with eager
steps. Forbidden by full recompute, by recompute of `moe` beside the router's graph, by layer-level CPU
offloading, and by sizes that change. Takes gigabytes that the allocator cannot reuse.
"""

from dataclasses import replace
from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form, Gain
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import (
    already_so,
    head_room,
    holds,
    is_not,
    no_layer_offload,
    static_shapes,
)
from heuristics.guides.cuda_graphs import choose_graphs
from heuristics.guides.graph_choice import RNG_TRACKER, GraphChoice, graph_change
from heuristics.run.run import Run
from traces.cures import cure
from traces.limits import Limit
from traces.replay.changes.graphs import SCOPES
from traces.spelling import chosen

GRAPHED: Final = Limit(
    0.2,
    "fraction of kernel work in CUDA graphs",
    "ours: router and preprocessing hold less, with attention more; beyond it mostly experts are outside",
)
_NAMES: Final = {
    "attn": "attention",
    "mlp": "MLP",
    "moe": "experts",
    "moe_router": "router",
    "moe_preprocess": "preprocessing",
    "mamba": "Mamba layers",
}
ROOM: Final = Limit(
    10e9,
    "bytes",
    "Megatron-Bridge, docs/performance-guide.md: a few gigabytes, with pipeline stages over 10 GB",
)


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
    held = {*modules, *(name for name in now if name not in choice.never)}
    return replace(choice, impl="transformer_engine", modules=tuple(name for name in _NAMES if name in held))


def _with_fit_recompute(run: Run) -> Run:
    """The run after MEM-2, where its recompute forbids graphs, which is a precondition of its own."""
    shown = run.active
    full = None if shown.recompute_full is None else False
    kept = shown.recompute_modules and tuple(name for name in shown.recompute_modules if name != "moe")
    corrected = replace(run, observed=replace(shown, recompute_full=full, recompute_modules=kept))
    config = run.validated
    if not config.full_recompute and not config.recomputes("moe"):
        return corrected
    modules = tuple(name for name in config.recompute_modules() or () if name != "moe")
    return corrected.changed({"recompute_granularity": "selective", "recompute_modules": modules})


def change(run: Run) -> Change:
    """What the CUDA-graph guide names, in the release's knobs; NCCL keeps out of graphs' memory."""
    choice = partial_choice(run)
    return Change(
        {**graph_change(choice, run.config.core_text), **RNG_TRACKER, "env.NCCL_GRAPH_REGISTER": "0"},
        harness=(
            "--cuda_graph_impl transformer_engine",
            f"--cuda_graph_scope {','.join(choice.modules)}",
        ),
        by_release=True,
        since="0.16.0",
    )


def advice(run: Run) -> tuple[Precondition, ...]:
    """What Megatron-Core asserts for the modules that were chosen, and room for them."""
    choice, shown = choose_graphs(_with_fit_recompute(run)), run.active
    modules, recomputed, graphed = partial_choice(run).modules, shown.recompute_modules, shown.graph_frac
    whole = choice.impl == "full_iteration"
    needs = [
        *already_so("cuda_graph_impl", graphed != 0 and _configured(run, modules)),
        holds(
            f"the CUDA-graph guide asks for graphs of parts of a layer ({choice.rule})",
            choice.impl == "transformer_engine",
            "HST-7" if whole else ", ".join(choice.asks),
        ),
        holds(
            f"graphs hold at most {chosen(GRAPHED.value)} of the kernel work so far",
            None if graphed is None else graphed <= GRAPHED.value,
            "for what is outside: HST-6, HST-7",
            cure("graphs", run.active.recorder),
        ),
        is_not("no full recompute", shown.recompute_full, "MEM-2"),
        no_layer_offload(run),
        static_shapes(run),
        head_room(run, ROOM.value),
    ]
    if "moe_router" in modules:
        fact = None if recomputed is None else "moe" in recomputed
        needs.append(is_not("moe is not recomputed", fact, "MEM-2"))
    if "moe_preprocess" in modules and shown.dispatcher == "alltoall":
        padding = run.config.router_padding
        needs.append(is_not("the router does not pad for low precision", padding, told_by="--router-padding"))
    return tuple(needs)


def _configured(run: Run, modules: tuple[str, ...]) -> bool:
    """Whether these modules, or whole layers, are configured already."""
    asked = run.config.names("cuda_graph_modules")
    return run.config.first("cuda_graph_impl") == "transformer_engine" and (
        asked is not None and (not asked or set(modules) <= set(asked))
    )


def _of_run(fix: Fix, run: Run) -> Fix:
    """Named after the modules that its change captures."""
    *first, last = (_NAMES[module] for module in partial_choice(run).modules)
    held = f"{', '.join(first)} and {last}" if first else last
    return replace(fix, title=f"CUDA graphs of {held}")


def changes(run: Run) -> tuple[str, ...]:
    """The scopes that the guide chooses here."""
    modules = partial_choice(run).modules
    if set(SCOPES) <= set(modules):
        return ("graph_scopes",)
    return tuple(f"graph_{module}" for module in modules if module in SCOPES)


FIX: Final = Fix(
    id="HST-3",
    wall="host_overhead",
    title="CUDA graphs of parts of a layer",
    kinds=("launch", "python", "arrival"),
    change=change,
    advice=advice,
    versions=(
        "router and preprocess scopes since Megatron-Core 0.16 (before: attn alone, 0.14 as "
        "--external-cuda-graph); cuda_graph_modules since 0.18, cuda_graph_scope before; never both. "
        "Megatron-Bridge's harness calls it scope in every version"
    ),
    gains=(
        Gain(
            (
                "84.8 TFLOPS/GPU in all: DeepSeek-V3, 256 GB200, MXFP8, EP32, graphs of attention, router, "
                "preprocess and shared experts"
            ),
            "Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8",
        ),
        Gain(
            (
                "623 to 484 ms a step: Qwen3-30B-A3B, 16 H100, TP2 PP2 EP4, attention, router and "
                "preprocess; but 41.36 to 42.00 s on EP16 with alltoall, BF16"
            ),
            "Megatron-Bridge, skills/nemo-mbridge-perf-cuda-graphs/card.yaml",
        ),
        Gain(
            "467 to 520 ms down to 391 to 399 ms a step: GPT-OSS-20B, 16 H100, TP2 PP4 EP4, same scopes",
            "Megatron-Bridge, skills/nemo-mbridge-perf-cuda-graphs/card.yaml",
        ),
    ),
    side_effects=(
        "a few gigabytes more, over 10 with pipeline stages",
        "with delayed weight gradients it needs Transformer Engine 2.10, with attention in graphs 2.12",
        "warm-up and capture steps are slow: leave them out of every comparison",
        "look at recompute again once graphs run: they take memory, and whole-layer recompute excludes them",
    ),
    excludes=("HST-7", "MEM-9"),
    verify=(
        "cudaGraphLaunch in each layer, the share of graphed kernels up, replayed steps faster than eager "
        "ones of the same stack"
    ),
    sources=(
        (
            "Megatron-LM, megatron/core/transformer/transformer_config.py and "
            "megatron/training/arguments.py at d98e8a64"
        ),
        "Megatron-Bridge skill perf-cuda-graphs",
        "Megatron-Bridge, docs/performance-guide.md and scripts/performance/utils/overrides.py at 067f987d",
    ),
    changes=changes,
    of_run=_of_run,
    any_program=True,
    pytorch=Form(
        title="Launch the model as CUDA graphs",
        code=(
            'torch.compile(model, mode="reduce-overhead")',
            "or torch.cuda.make_graphed_callables for the modules that compile badly",
        ),
        verify="cudaGraphLaunch in each step, and fewer launches by themselves",
        sources=("PyTorch, torch/__init__.py and torch/cuda/graphs.py",),
        side_effects=(
            "graphs keep memory of their own",
            "the first steps compile: leave them out",
        ),
        advice=lambda run: (
            holds("shapes stay the same from step to step", None, told_by="TORCH_LOGS=recompiles"),
        ),
    ),
)
