"""Which CUDA graphs: NVIDIA's guides as a table, less what the run or a version refuses."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final, cast

from heuristics.config.features import GRAPH_MODULES
from heuristics.guides.facts import host_visible, is_sync_free, options_for
from heuristics.guides.graph_choice import SWITCHES, GraphChoice, Impl, graph_knobs, graph_settings
from heuristics.guides.table import OTHER, Facts, Refusal, Row, fire, table
from heuristics.rules.check import Asked, asked_by
from heuristics.rules.rules import Rule
from heuristics.run.given import Guidance
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Value

__all__ = ["GraphChoice", "choose_graphs", "graph_count", "graph_facts", "graph_knobs"]

WARMUP_STEPS: Final = Limit(
    3, "steps", "default of Megatron-Core's cuda_graph_warmup_steps: capture comes after them"
)


PP_DEEP: Final = Limit(
    4,
    "pipeline stages",
    "ours: no guide has a number; a stage keeps a graph per layer and microbatch, over 10 GB in all",
)
TABLE: Final = "cuda_graphs"
_OF_MODULES: Final = frozenset(("graph_modules", "graph_parts", "captured", "graphed_wgrad"))
_MEMORY: Final[dict[Impl, str]] = {
    "transformer_engine": "takes a few GB: about 7 for DeepSeek-V3 on GB200, over 10 with pipeline stages",
    "full_iteration": "takes 1.5 to 2 times the peak memory",
}


def choose_graphs(run: Run) -> GraphChoice:
    """Choose for a run by its guidance; what the other edition says stands beside it where it differs."""
    choice, other = _choose(run, run.config.guidance), _choose(run, OTHER[run.config.guidance])
    same = (choice.impl, choice.modules, choice.then) == (other.impl, other.modules, other.then)
    return choice if same else replace(choice, other=other)


def graph_facts(run: Run) -> Facts:
    """What the table asks for. A run of unknown stage counts as tuned.

    `graphs_run`: a quiet host is then what they gave, and no reason to do without them.
    """
    return {
        "graphs_run": run.config.graph_impl not in (None, "none") or bool(run.active.graph_frac),
        "host_visible": host_visible(run),
        "full_recompute": run.active.recompute_full,
        "moe": run.active.moe,
        "routing": run.config.routing,
        "sync_free": is_sync_free(run),
        "packed": run.config.packed_sequences,
        "family": run.config.family,
        "stage": run.config.stage or "tuned",
        "memory_tight": run.config.memory_tight,
        "fits": not run.does_not_fit,
        "pp_deep": None if run.config.pp is None else run.config.pp >= PP_DEEP.value,
    }


def graph_count(layers: int, microbatches: int, pipeline: bool) -> int:
    """Graphs of one rank: forward and backward of each layer, for each microbatch under pipeline parallelism.

    `layers`: layers of the rank. Source: arXiv 2603.07685, figure 26.
    """
    return layers * 2 * (microbatches if pipeline else 1)


def _choose(run: Run, guidance: Guidance) -> GraphChoice:
    fired = fire(table(TABLE)[guidance], graph_facts(run), lambda rule: (rule.how, rule.answer, rule.then))
    rule = fired.rule
    impl, modules, refused = _allowed(run, rule)
    then, more = _may_follow(run, impl, modules, rule)
    return GraphChoice(
        impl,
        modules,
        then,
        rule.never,
        rule.id,
        guidance,
        needs=_needs(run, impl, modules, rule),
        notes=_notes(run, rule, impl),
        asks=options_for(fired.open_facts),
        refused=tuple(dict.fromkeys((*refused, *more))),
        sources=(rule.source,),
    )


def _impl(rule: Row) -> Impl:
    return cast(Impl, rule.how)


def _asked(run: Run, impl: Impl, modules: tuple[str, ...], rule: Row) -> tuple[Asked, ...]:
    """What the rules about graphs ask of the run with these."""
    if impl == "none":
        return ()
    older = {switch: False for switch in SWITCHES if run.config.on(switch)}
    return asked_by(run, {**older, **rule.sets, **graph_settings(impl, modules, run.config.core_text)})


def _broken(run: Run, impl: Impl, modules: tuple[str, ...], rule: Row) -> tuple[Rule, ...]:
    """The rules that refuse these graphs for certain, but for what is set with them."""
    asked = _asked(run, impl, modules, rule)
    return tuple(
        one.rule for one in asked if one.holds is False and one.rule.level == "error" and not one.rule.along
    )


def _allowed(run: Run, rule: Row) -> tuple[Impl, tuple[str, ...], tuple[Refusal, ...]]:
    """The row's graphs with as many of its modules as the rules allow; no graphs where they allow none."""
    if not (broken := _broken(run, _impl(rule), rule.answer, rule)):
        return _impl(rule), rule.answer, ()
    for count in range(len(rule.answer) - 1, 0, -1):
        for kept in combinations(rule.answer, count):
            if not _broken(run, _impl(rule), kept, rule):
                return _impl(rule), kept, _left_out(run, kept, rule)
    return "none", (), tuple(_of_all(run, one, rule) for one in broken)


def _left_out(run: Run, kept: tuple[str, ...], rule: Row) -> tuple[Refusal, ...]:
    """Why each other module of the row is left out."""
    return tuple(
        Refusal(module, one.text, one.source)
        for module in rule.answer
        if module not in kept
        for one in _broken(run, _impl(rule), (*kept, module), rule)
    )


def _of_all(run: Run, broken: Rule, rule: Row) -> Refusal:
    """What a rule refuses where nothing is left: modules if it speaks of them, else the implementation."""
    speaks = any(_OF_MODULES & {*condition.names} for condition in broken.conditions)
    alone = [one for one in rule.answer if broken in _broken(run, _impl(rule), (one,), rule)]
    return Refusal(" ".join(alone) if speaks and alone else _impl(rule), broken.text, broken.source)


def _may_follow(
    run: Run, impl: Impl, modules: tuple[str, ...], rule: Row
) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """What of the row's `then` the rules allow, each added alone; all of it after no graphs."""
    if impl != _impl(rule) or impl == "none":
        return (rule.then if impl == _impl(rule) else ()), ()
    then: list[str] = []
    refused: list[Refusal] = []
    for step in rule.then:
        if step in GRAPH_MODULES:
            broken = _broken(run, impl, (*modules, step), rule)
        else:
            broken = _broken(run, "full_iteration", (), rule)
        refused.extend(Refusal(step, one.text, one.source) for one in broken)
        if not broken:
            then.append(step)
    return tuple(then), tuple(refused)


def _needs(run: Run, impl: Impl, modules: tuple[str, ...], rule: Row) -> Mapping[str, Value]:
    """What to set with the graphs, where it is not known to be set."""
    if impl == "none":
        return {}
    asked = _asked(run, impl, modules, rule)
    along = [one.rule.set for one in asked if one.rule.along and one.applies and not one.holds]
    return {knob: value for several in (rule.sets, *along) for knob, value in several.items()}


def _notes(run: Run, rule: Row, impl: Impl) -> tuple[str, ...]:
    notes = [rule.reason]
    if impl != "none":
        notes.append(_MEMORY[impl])
        notes.append(
            f"capture comes after {WARMUP_STEPS.value:.0f} steps of warm-up: compare only later steps"
        )
        if host_visible(run) is None:
            notes.append("host overhead is unknown, and graphs help only where it is large")
    return tuple(notes)
