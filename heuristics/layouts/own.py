"""The layout that a configuration has itself, among those that could be."""

from itertools import chain
from typing import Final

from heuristics.layouts.candidates import Sizes
from heuristics.layouts.fit import EVERYTHING, NOTHING, Fitted, Fitting, Recompute, fullest
from heuristics.layouts.ranking import Ranking
from heuristics.layouts.shown import shown
from heuristics.layouts.stages import uneven_of, work_of
from heuristics.result.layouts import PlannedLayout
from heuristics.rules.check import errors
from heuristics.run.run import Run
from traces.missing import Missing
from traces.patterns import compiled
from traces.sections.section import copied
from traces.settings.knobs import GLOBAL_BATCH
from traces.sizes.layout import Layout, layout_of
from traces.sizes.memory import by_stage
from traces.sizes.model import ModelSize

_LETTERS: Final = compiled(r"[EtmL|*()\d, ]+")


def own_layout(
    run: Run, model: ModelSize, fitting: Fitting, ranking: Ranking
) -> PlannedLayout | Missing:
    """The run's own layout as it stands; Missing names what of it is unknown, or why it does not
    divide.
    """
    layout = layout_of(run.settings, model)
    if isinstance(layout, Missing):
        return layout
    held = by_stage(run.settings, run.config.core_text, run.config.precision)
    if isinstance(held, Missing):
        return held
    sizes, recompute = _sizes(run, model, layout), _recompute(run, fitting)
    kept = fullest(fitting.stages(sizes, NOTHING) or held).total_bytes
    own = Fitted(sizes, recompute, fullest(held), fitting.capacity, kept)
    broken = tuple(rule.id for rule in errors(run))
    return shown(own, run, ranking, run.active.dispatcher, "", broken, own=True)


def _sizes(run: Run, model: ModelSize, layout: Layout) -> Sizes:
    chunks = chain.from_iterable(zip(*layout.stages, strict=True))
    counts = [chunk.dense + chunk.moe for chunk in chunks]
    letters = str(run.config.first("pipeline_model_parallel_layout") or "")
    return copied(
        Sizes,
        layout,
        gpus=layout.world,
        vpp=layout.vpp or 1,
        batch=run.config.positive(GLOBAL_BATCH) or 1,
        letters=letters if _LETTERS.fullmatch(letters) else None,
        uneven_frac=max(0.0, uneven_of(work_of(model), counts, layout.pp)),
    )


def _recompute(run: Run, fitting: Fitting) -> Recompute:
    granularity = run.config.first("recompute_granularity")
    if granularity == "full":
        return EVERYTHING
    modules = run.config.names("recompute_modules") or ()
    if granularity != "selective" or not modules:
        return NOTHING
    return Recompute(
        "selective", tuple(modules), sum(fitting.costs.get(module, 0.0) for module in modules)
    )
