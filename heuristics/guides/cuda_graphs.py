"""Which CUDA graphs: NVIDIA's guides as a table, less what a run or version refuses, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final, Literal, cast

from heuristics.config.about import Guidance
from heuristics.config.features import GRAPH_MODULES
from heuristics.config.versions import numbers
from heuristics.guides.facts import host_visible
from heuristics.guides.table import OTHER, Refusal, Row, fire, table
from heuristics.rules.check import Asked, asked_by
from heuristics.rules.rules import Rule
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Framework, Value
from traces.settings.spelling import can_spell, spell

WARMUP_STEPS: Final = Limit(
    3, "steps", "default of Megatron-Core's cuda_graph_warmup_steps: capture comes after them"
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


def graph_count(layers: int, microbatches: int, pipeline: bool) -> int:
    """Graphs of one rank: forward and backward of each layer, for each microbatch under pipeline parallelism.

    `layers`: layers of the rank. Source: arXiv 2603.07685, figure 26.
    """
    return layers * 2 * (microbatches if pipeline else 1)


def _choose(run: Run, guidance: Guidance) -> GraphChoice:
    fired = fire(table(TABLE)[guidance], run, lambda rule: (rule.how, rule.answer, rule.then))
    rule = fired.row
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
        asks=fired.asks,
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


RNG_TRACKER: Final[Mapping[str, Value]] = {"use_te_rng_tracker": True, "rng.te_rng_tracker": True}
"""What every CUDA graph needs of the random numbers."""

Impl = Literal["none", "local", "transformer_engine", "full_iteration"]

_NEWEST: Final = (1, 0, 0)
SWITCHES: Final = {"enable_cuda_graph": "local", "external_cuda_graph": "transformer_engine"}
"""Switch before Megatron-Core 0.15 -> its implementation."""


@dataclass(frozen=True, slots=True)
class GraphChoice:
    """What the guide says of a run.

    `impl` and `modules`: what to capture first (`none`: no graphs). `then`: what may follow, one at a time
    after an A/B; `never`: what must not. `rule` names the row that fired, `guidance` its edition. `needs`:
    knobs to set with it. `asks`: options that would settle what is unknown and matters. `refused`: modules or
    implementations ruled out on this run, why, and by whom. `other`: what the other edition says, where it
    says another thing.
    """

    impl: Impl
    modules: tuple[str, ...]
    then: tuple[str, ...]
    never: tuple[str, ...]
    rule: str
    guidance: Guidance
    needs: Mapping[str, Value] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    sources: tuple[str, ...] = ()
    other: GraphChoice | None = None


def graph_settings(impl: Impl, modules: tuple[str, ...], core_version: str | None) -> dict[str, Value]:
    """Graphs as settings of a release; of the newest where it is unknown.

    Read at the tags core_v0.12.0 to core_v0.19.0: a switch for each implementation up to 0.14,
    `cuda_graph_impl` since 0.15; `full_iteration` a module of local up to 0.17, an implementation since 0.18;
    whole layers are `full` up to 0.15, no module since.
    """
    version = numbers(core_version) if core_version else _NEWEST
    if impl == "full_iteration" and version < (0, 18, 0):
        impl, modules = "local", ("full_iteration",)
    held = modules or (("full",) if version < (0, 16, 0) and impl != "none" else ())
    if version >= (0, 15, 0):
        return {"cuda_graph_impl": impl, "cuda_graph_modules": held}
    return {**{switch: impl == one for switch, one in SWITCHES.items()}, "cuda_graph_modules": held}


def graph_knobs(choice: GraphChoice, core_version: str | None, bridge: bool) -> tuple[str, ...]:
    """Flags of Megatron-LM, or overrides of Megatron-Bridge; empty where the release cannot say it."""
    framework: Framework = "megatron_bridge" if bridge else "megatron_lm"
    made = graph_change(choice, core_version)
    return spell(
        {k: v for k, v in made.items() if can_spell(k, framework, core_version)}, framework, core_version
    )


def graph_change(choice: GraphChoice, core_version: str | None) -> dict[str, Value]:
    """What a choice switches on; empty where the release cannot say it."""
    version = numbers(core_version) if core_version else _NEWEST
    unnamed = version < (0, 16, 0) and not {*choice.modules} <= {"attn"}
    if unnamed or (version < (0, 14, 0) and choice.impl == "full_iteration"):
        return {}
    settings = graph_settings(choice.impl, choice.modules, core_version)
    return {knob: value for knob, value in settings.items() if value not in (False, ())}
