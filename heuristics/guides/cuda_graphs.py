"""Which CUDA graphs: NVIDIA's guides as a table, less what the run or a version refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from heuristics.guides.facts import host_visible, is_sync_free, options_for
from heuristics.guides.graph_choice import GraphChoice
from heuristics.guides.graph_config import MODULES, GraphConfig, Impl, graph_config
from heuristics.guides.graph_constraints import graph_needs, graph_refusals
from heuristics.guides.graph_knobs import graph_knobs
from heuristics.guides.graph_rules import PP_DEEP, RULES, GraphRule
from heuristics.guides.table import Facts, Refusal, fire
from heuristics.run.given import Guidance
from heuristics.run.run import Run
from traces.limits import Limit

__all__ = ["GraphChoice", "choose_graphs", "graph_count", "graph_facts", "graph_knobs"]

WARMUP_STEPS: Final = Limit(
    3, "steps", "default of Megatron-Core's cuda_graph_warmup_steps: capture comes after them"
)


_OTHER: Final[dict[Guidance, Guidance]] = {"seed": "main-2026-08", "main-2026-08": "seed"}
_MEMORY: Final[dict[Impl, str]] = {
    "transformer_engine": "takes a few GB: about 7 for DeepSeek-V3 on GB200, over 10 with pipeline stages",
    "full_iteration": "takes 1.5 to 2 times the peak memory",
}


def choose_graphs(run: Run) -> GraphChoice:
    """Choose for a run by its guidance; what the other edition says stands beside it where it differs."""
    choice, other = _choose(run, run.config.guidance), _choose(run, _OTHER[run.config.guidance])
    same = (choice.impl, choice.modules, choice.then) == (other.impl, other.modules, other.then)
    return choice if same else replace(choice, other=other)


def graph_facts(run: Run) -> Facts:
    """What the table asks for. A run of unknown stage counts as tuned."""
    return {
        "host_visible": host_visible(run),
        "full_recompute": run.active.recompute_full,
        "moe": run.active.moe,
        "routing": run.config.routing,
        "sync_free": is_sync_free(run),
        "packed": run.config.packed_sequences,
        "family": run.config.family,
        "stage": run.config.stage or "tuned",
        "memory_tight": run.config.memory_tight,
        "pp_deep": None if run.config.pp is None else run.config.pp >= PP_DEEP.value,
    }


def graph_count(layers: int, microbatches: int, pipeline: bool) -> int:
    """Graphs of one rank: forward and backward of each layer, for each microbatch under pipeline parallelism.

    `layers`: layers of the rank. Source: arXiv 2603.07685, figure 26.
    """
    return layers * 2 * (microbatches if pipeline else 1)


def _choose(run: Run, guidance: Guidance) -> GraphChoice:
    fired = fire(RULES[guidance], graph_facts(run), lambda rule: (rule.impl, rule.modules, rule.then))
    rule = fired.rule
    config, refused = _allowed(run, rule)
    then, more = _may_follow(run, config, rule)
    return GraphChoice(
        config.impl,
        config.modules,
        then,
        rule.never,
        rule.id,
        guidance,
        needs=graph_needs(config),
        notes=_notes(run, rule, config),
        asks=options_for(fired.open_facts),
        refused=tuple(dict.fromkeys((*refused, *more))),
        sources=(rule.source,),
    )


def _allowed(run: Run, rule: GraphRule) -> tuple[GraphConfig, tuple[Refusal, ...]]:
    """The row's setting without the modules this run refuses; no graphs where nothing is left of it."""
    config = graph_config(run, rule.impl, rule.modules)
    refused: tuple[Refusal, ...] = ()
    while found := graph_refusals(config):
        refused += found
        out = {refusal.what for refusal in found}
        left = tuple(module for module in config.modules if module not in out)
        if not left or left == config.modules:
            return graph_config(run, "none", ()), refused
        config = graph_config(run, config.impl, left)
    return config, refused


def _may_follow(
    run: Run, config: GraphConfig, rule: GraphRule
) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """What of the row's `then` the run does not refuse, each added alone; all of it after no graphs."""
    if config.impl != rule.impl or config.impl == "none":
        return (rule.then if config.impl == rule.impl else ()), ()
    then: list[str] = []
    refused: tuple[Refusal, ...] = ()
    for step in rule.then:
        impl: Impl = config.impl if step in MODULES else "full_iteration"
        modules = (*config.modules, step) if step in MODULES else ()
        found = graph_refusals(graph_config(run, impl, modules))
        refused += found
        if not found:
            then.append(step)
    return tuple(then), refused


def _notes(run: Run, rule: GraphRule, config: GraphConfig) -> tuple[str, ...]:
    notes = [rule.note]
    if config.impl != "none":
        notes.append(_MEMORY[config.impl])
        notes.append(
            f"capture comes after {WARMUP_STEPS.value:.0f} steps of warm-up: leave them and its own step out"
        )
        if host_visible(run) is None:
            notes.append("host overhead could not be measured: only where it shows do graphs help")
    return tuple(notes)
