"""Which CUDA graphs: NVIDIA's guides as a table, less what a run or version refuses, and their
settings.
"""

from functools import partial
from itertools import combinations
from typing import Final, Literal, NamedTuple, cast

from heuristics.config.about import Guidance
from heuristics.config.features import GRAPH_MODULES
from heuristics.config.logic import each_once
from heuristics.config.versions import numbers
from heuristics.guides.table import Chosen, GuideRow, Refusal, fire
from heuristics.recipes import RECIPES
from heuristics.rules.check import RuleAfterChange, asked_by
from heuristics.rules.rules import Rule
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.settings.settings import Values
from traces.texts import Texts

RNG_TRACKER: Final = {"use_te_rng_tracker": True, "rng.te_rng_tracker": True}
"""What every CUDA graph needs of the random numbers."""

Impl = Literal["none", "local", "transformer_engine", "full_iteration"]

_NEWEST: Final = (1, 0, 0)
SWITCHES: Final = {"enable_cuda_graph": "local", "external_cuda_graph": "transformer_engine"}
"""Switch before Megatron-Core 0.15 -> its implementation."""


class Graphs(NamedTuple):
    """`modules` by `impl`."""

    impl: Impl
    modules: Texts


@frozen
class GraphChoice(Chosen):
    """What to capture first; `needs`: knobs to set with it."""

    graphs: Graphs
    needs: Values

    @property
    def impl(self) -> Impl:
        return self.graphs.impl

    @property
    def modules(self) -> Texts:
        return self.graphs.modules


def choose_graphs(run: Run, edition: Guidance | None = None) -> GraphChoice:
    """Choose for a run by an edition of the guide, its own where none is named."""
    fired = fire("cuda_graphs", run, edition, lambda row: (row.how, row.answer, row.then))
    guide = _GraphRules(run, fired.row)
    graphs, refused = guide.allowed()
    then, more = guide.may_follow(graphs)
    return GraphChoice(
        row=fired.row,
        graphs=graphs,
        needs=guide.needs(graphs),
        then=then,
        notes=_notes(run, fired.row, graphs.impl),
        asks=fired.asks,
        refused=each_once((*refused, *more)),
    )


@frozen
class _GraphRules:
    """A row of the guide, and the run of which the rules about graphs are asked."""

    run: Run
    row: GuideRow

    def rules(self, graphs: Graphs) -> tuple[RuleAfterChange, ...]:
        """What the rules ask of the run with these."""
        if graphs.impl == "none":
            return ()
        older = dict.fromkeys(filter(self.run.config.on, SWITCHES), False)
        return asked_by(
            self.run,
            {**older, **self.row.sets, **graph_settings(graphs, self.run.config.core_text)},
        )

    def broken(self, graphs: Graphs) -> list[Rule]:
        """The rules that refuse these graphs for certain, but for what is set with them."""
        return [
            ruled.rule
            for ruled in self.rules(graphs)
            if ruled.holds is False and ruled.rule.level == "error" and not ruled.rule.along
        ]

    def _refusals(self, what: str, graphs: Graphs) -> list[Refusal]:
        return [Refusal(what, rule.text, rule.source) for rule in self.broken(graphs)]

    def allowed(self) -> tuple[Graphs, list[Refusal]]:
        """The row's graphs with as many modules as the rules allow; no graphs where they allow
        none.
        """
        whole = Graphs(cast(Impl, self.row.how), self.row.answer)
        broken = self.broken(whole)
        if not broken:
            return whole, []
        # as many modules as possible
        for count in range(len(whole.modules) - 1, 0, -1):
            for modules in combinations(whole.modules, count):
                kept = whole._replace(modules=modules)
                if not self.broken(kept):
                    return kept, self._left_out(kept)
        return Graphs("none", ()), [*map(partial(self._of_all, whole), broken)]

    def _left_out(self, kept: Graphs) -> list[Refusal]:
        refusals = []
        for module in self.row.answer:
            if module not in kept.modules:
                refusals += self._refusals(module, kept._replace(modules=(*kept.modules, module)))
        return refusals

    def _of_all(self, whole: Graphs, broken: Rule) -> Refusal:
        """What a rule refuses where nothing is left: modules it speaks of, else the
        implementation.
        """
        names, alone = set[str](), []
        for condition in broken.conditions:
            names.update(condition.names)
        if names & {"graph_modules", "graph_parts", "captured", "graphed_wgrad"}:
            for module in whole.modules:
                if broken in self.broken(whole._replace(modules=(module,))):
                    alone.append(module)
        return Refusal(" ".join(alone) or whole.impl, broken.text, broken.source)

    def may_follow(self, graphs: Graphs) -> tuple[Texts, list[Refusal]]:
        """What of the row's `then` the rules allow, each added alone; all of it after no graphs."""
        if graphs.impl != self.row.how:
            return (), []
        if graphs.impl == "none":
            return self.row.then, []
        allowed, refused = [], []
        for step in self.row.then:
            larger = Graphs("full_iteration", ())
            if step in GRAPH_MODULES:
                larger = graphs._replace(modules=(*graphs.modules, step))
            against = self._refusals(step, larger)
            if not against:
                allowed.append(step)
            refused += against
        return tuple(allowed), refused

    def needs(self, graphs: Graphs) -> Values:
        """What to set with the graphs, where it is not known to be set."""
        if graphs.impl == "none":
            return {}
        sets = dict(self.row.sets)
        for ruled in self.rules(graphs):
            if ruled.applies and not ruled.holds and ruled.rule.along:
                sets |= ruled.rule.set
        return sets


def _notes(run: Run, row: GuideRow, impl: Impl) -> Texts:
    if impl == "none":
        return (row.reason,)
    notes = [
        row.reason,
        say("guides.memory-of-iteration" if impl == "full_iteration" else "guides.memory-of-parts"),
        say("guides.capture-after", steps=RECIPES["warmup_of_graphs"].whole),
    ]
    if run.tells("host_visible") is None:
        notes.append(say("guides.host-unknown"))
    return tuple(notes)


def graph_settings(graphs: Graphs, core_version: str | None) -> Values:
    """Graphs as settings of a release; of the newest where it is unknown.

    Read at the tags core_v0.12.0 to core_v0.19.0: a switch for each implementation up to 0.14,
    `cuda_graph_impl` since 0.15; `full_iteration` a module of local up to 0.17, an implementation
    since 0.18; whole layers are `full` up to 0.15, no module since.
    """
    impl, modules = graphs
    version = numbers(core_version) if core_version else _NEWEST
    if impl == "full_iteration" and version < (0, 18, 0):
        impl, modules = "local", ("full_iteration",)
    held = modules or (("full",) if version < (0, 16, 0) and impl != "none" else ())
    if version >= (0, 15, 0):
        return {"cuda_graph_impl": impl, "cuda_graph_modules": held}
    return {**{switch: impl == way for switch, way in SWITCHES.items()}, "cuda_graph_modules": held}


def graph_change(graphs: Graphs, core_version: str | None) -> Values:
    """What graphs switch on; empty where the release cannot say it."""
    version = numbers(core_version) if core_version else _NEWEST
    unnamed = version < (0, 16, 0) and not {*graphs.modules} <= {"attn"}
    if unnamed or (version < (0, 14, 0) and graphs.impl == "full_iteration"):
        return {}
    settings = graph_settings(graphs, core_version)
    return {knob: value for knob, value in settings.items() if value not in (False, ())}
