"""Which CUDA graphs: NVIDIA's guides as a table, less what a run or version refuses, and their settings."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, cast

from heuristics.config.about import Guidance
from heuristics.config.features import GRAPH_MODULES
from heuristics.config.versions import numbers
from heuristics.guides.table import Chosen, Refusal, Row, fire
from heuristics.recipes import RECIPES
from heuristics.rules.check import Asked, asked_by
from heuristics.rules.rules import Rule
from heuristics.run.run import Run
from heuristics.words import say
from traces.settings.settings import Value, Values

RNG_TRACKER: Final[Values] = {"use_te_rng_tracker": True, "rng.te_rng_tracker": True}
"""What every CUDA graph needs of the random numbers."""

Impl = Literal["none", "local", "transformer_engine", "full_iteration"]

_NEWEST: Final = (1, 0, 0)
SWITCHES: Final = {"enable_cuda_graph": "local", "external_cuda_graph": "transformer_engine"}
"""Switch before Megatron-Core 0.15 -> its implementation."""


_OF_MODULES: Final = frozenset(("graph_modules", "graph_parts", "captured", "graphed_wgrad"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChoice(Chosen):
    """What to capture first: `modules` by `impl` (`none`: no graphs); `needs`: knobs to set with it."""

    impl: Impl
    modules: tuple[str, ...]
    needs: Values


def choose_graphs(run: Run, edition: Guidance | None = None) -> GraphChoice:
    """Choose for a run by an edition of the guide, its own where none is named."""
    fired = fire("cuda_graphs", run, edition, lambda row: (row.how, row.answer, row.then))
    row = fired.row
    impl, modules, refused = _allowed(run, row)
    then, more = _may_follow(run, impl, modules, row)
    return GraphChoice(
        row=row,
        impl=impl,
        modules=modules,
        needs=_needs(run, impl, modules, row),
        then=then,
        notes=_notes(run, row, impl),
        asks=fired.asks,
        refused=tuple(dict.fromkeys((*refused, *more))),
    )


def _asked(run: Run, impl: Impl, modules: tuple[str, ...], row: Row) -> tuple[Asked, ...]:
    """What the rules about graphs ask of the run with these."""
    if impl == "none":
        return ()
    older = {switch: False for switch in SWITCHES if run.config.on(switch)}
    return asked_by(run, {**older, **row.sets, **graph_settings(impl, modules, run.config.core_text)})


def _broken(run: Run, impl: Impl, modules: tuple[str, ...], row: Row) -> tuple[Rule, ...]:
    """The rules that refuse these graphs for certain, but for what is set with them."""
    asked = _asked(run, impl, modules, row)
    return tuple(
        one.rule for one in asked if one.holds is False and one.rule.level == "error" and not one.rule.along
    )


def _allowed(run: Run, row: Row) -> tuple[Impl, tuple[str, ...], tuple[Refusal, ...]]:
    """The row's graphs with as many of its modules as the rules allow; no graphs where they allow none."""
    impl = cast(Impl, row.how)
    if not (broken := _broken(run, impl, row.answer, row)):
        return impl, row.answer, ()
    for count in range(len(row.answer) - 1, 0, -1):
        for kept in combinations(row.answer, count):
            if not _broken(run, impl, kept, row):
                return impl, kept, _left_out(run, impl, kept, row)
    return "none", (), tuple(_of_all(run, impl, one, row) for one in broken)


def _left_out(run: Run, impl: Impl, kept: tuple[str, ...], row: Row) -> tuple[Refusal, ...]:
    """Why each other module of the row is left out."""
    return tuple(
        Refusal(module, one.text, one.source)
        for module in row.answer
        if module not in kept
        for one in _broken(run, impl, (*kept, module), row)
    )


def _of_all(run: Run, impl: Impl, broken: Rule, row: Row) -> Refusal:
    """What a rule refuses where nothing is left: modules if it speaks of them, else the implementation."""
    speaks = any(_OF_MODULES & {*condition.names} for condition in broken.conditions)
    alone = [one for one in row.answer if broken in _broken(run, impl, (one,), row)]
    return Refusal(" ".join(alone) if speaks and alone else impl, broken.text, broken.source)


def _may_follow(
    run: Run, impl: Impl, modules: tuple[str, ...], row: Row
) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """What of the row's `then` the rules allow, each added alone; all of it after no graphs."""
    if impl != row.how:
        return (), ()
    if impl == "none":
        return row.then, ()
    with_step: dict[str, tuple[Impl, tuple[str, ...]]] = {
        step: (impl, (*modules, step)) if step in GRAPH_MODULES else ("full_iteration", ())
        for step in row.then
    }
    broken = {step: _broken(run, *graphs, row) for step, graphs in with_step.items()}
    refused = (Refusal(step, one.text, one.source) for step, several in broken.items() for one in several)
    return tuple(step for step in row.then if not broken[step]), tuple(refused)


def _needs(run: Run, impl: Impl, modules: tuple[str, ...], row: Row) -> Values:
    """What to set with the graphs, where it is not known to be set."""
    if impl == "none":
        return {}
    asked = _asked(run, impl, modules, row)
    along = [one.rule.set for one in asked if one.rule.along and one.applies and not one.holds]
    return {knob: value for several in (row.sets, *along) for knob, value in several.items()}


def _notes(run: Run, row: Row, impl: Impl) -> tuple[str, ...]:
    if impl == "none":
        return (row.reason,)
    return (
        row.reason,
        say("guides.memory-of-iteration" if impl == "full_iteration" else "guides.memory-of-parts"),
        say("guides.capture-after", steps=RECIPES["warmup_of_graphs"].whole),
        *((say("guides.host-unknown"),) if run.tells("host_visible") is None else ()),
    )


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


def graph_change(impl: Impl, modules: tuple[str, ...], core_version: str | None) -> dict[str, Value]:
    """What graphs switch on; empty where the release cannot say it."""
    version = numbers(core_version) if core_version else _NEWEST
    unnamed = version < (0, 16, 0) and not {*modules} <= {"attn"}
    if unnamed or (version < (0, 14, 0) and impl == "full_iteration"):
        return {}
    settings = graph_settings(impl, modules, core_version)
    return {knob: value for knob, value in settings.items() if value not in (False, ())}
