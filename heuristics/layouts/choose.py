"""Layouts of a model on some GPUs in the order to try them: the entry to this folder."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Final

from msgspec.structs import replace as with_place

from heuristics.comparison.files.normal import normal_throughput
from heuristics.config.about import Given
from heuristics.fixes.dispatcher import set_to
from heuristics.guides.dispatcher import ALLTOALL, DispatcherChoice, choose_dispatcher
from heuristics.guides.memory_use import HEAD_ROOM
from heuristics.incidents.incident import known_issues
from heuristics.layouts.candidates import MICRO_BATCHES, LayoutRequest, candidates
from heuristics.layouts.fit import Fitted, Fitting, module_costs
from heuristics.layouts.own import own_layout
from heuristics.layouts.published import Machine, Published, model_of, published, weight_of
from heuristics.layouts.ranking import Ranking, ranking_of
from heuristics.layouts.shown import Typed, changes_of, shown
from heuristics.recipes import RECIPES
from heuristics.result.layouts import CountedLayouts, PlannedLayout
from heuristics.result.normal import NormalThroughput
from heuristics.rules.check import errors
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import Limit
from traces.missing import Missing, OrMissing
from traces.settings.knobs import GLOBAL_BATCH, MICRO_BATCH
from traces.settings.precision import configured_precision
from traces.settings.settings import KnobView, Settings, Values
from traces.sizes.model import ModelSize, model_size
from traces.texts import Texts

LISTED: Final = Limit(30, "layouts", "ours: more than anybody tries; the rest is counted")
ASSUMED_PRECISION: Final = "bf16"
_MEMORY: Final = {
    "ddp.use_distributed_optimizer": True,
    "moe_grouped_gemm": True,
    MICRO_BATCH: 1,
}


Key = tuple[int, ...]
_OF_SIZES: Final = attrgetter("tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch")
"""The first five make it another layout."""


@frozen
class Wanted:
    """What layouts are wanted for. `published`: what is known of published ones, all where None.

    `is_own`: the settings are a run's, whose own layout stands among the others.
    """

    settings: Settings
    given: Given
    gpu: str
    gpus: int
    capacity_bytes: int
    is_own: bool
    published: Sequence[Published] | None = None


@frozen
class Found:
    """What was found. `reason`: why no layout can be held against the model at all."""

    counted: CountedLayouts
    layouts: tuple[PlannedLayout, ...]
    least_bytes: int | None
    assumed: Texts
    unknown: Texts
    settings: Settings
    model: ModelSize
    precision: str
    nvlink_domain: int
    normal: OrMissing[NormalThroughput]
    warnings: Texts = ()


def find_layouts(wanted: Wanted) -> Found | Missing:
    """Every layout that divides, held against memory and ranked; Missing names the sizes that are
    unknown.
    """
    base, assumed, taken = _completed(wanted)
    model = model_size(base)
    if isinstance(model, Missing):
        return model
    known_model = model_of(model)
    precision = wanted.given.precision or configured_precision(KnobView(base)) or ASSUMED_PRECISION
    given = replace(wanted.given, gpu=wanted.gpu, precision=precision, world_size=wanted.gpus)
    run = Run(given=given, settings=base)
    domain = run.config.nvlink_domain or 8
    machine = Machine(
        known_model.id if known_model else "", weight_of(model), wanted.gpu, wanted.gpus
    )
    among = published() if wanted.published is None else wanted.published
    ranking = ranking_of(model, machine, precision, domain, among)
    costs, core = module_costs(model, run), run.config.core_text
    fitting = Fitting(base, model, wanted.capacity_bytes, costs, core, precision)
    batch = KnobView(base).positive(GLOBAL_BATCH) or 1
    best, divide = _fitted(LayoutRequest(model, wanted.gpus, batch), fitting, ranking)
    ordered = sorted(best.values(), key=ranking.cost)
    typed = Typed(replace(run, settings=wanted.settings), {} if wanted.is_own else taken)
    listed, refused = _legal(ordered, run, ranking, typed)
    fit = best.keys() - refused
    warnings: Texts = ()
    if wanted.is_own:
        own = own_layout(run, model, fitting, ranking)
        if isinstance(own, Missing):
            warnings = (say("layouts.own-not-listed", reason=own.reason),)
        else:
            key = _OF_SIZES(own)[:5]
            divide.add(key)
            if own.broken:
                refused[key] = own.broken
            if own.broken or own.filled_frac > 1 - HEAD_ROOM.value:
                listed.append(own)
            else:
                fit.add(key)
                listed = _with_own(listed, own)
    if refused:
        ids = ", ".join(dict.fromkeys(chain.from_iterable(refused.values())))
        warnings = (*warnings, say("layouts.refused", rules=ids))
    not_legal = len(refused.keys() - fit)
    return Found(
        counted=CountedLayouts(
            len(divide), len(divide) - len(fit) - not_legal, not_legal, len(fit)
        ),
        layouts=tuple(with_place(layout, place=place) for place, layout in enumerate(listed, 1)),
        least_bytes=fitting.least if not best else None,
        assumed=(
            *assumed,
            *_precision_words(wanted, base, precision),
            say("layouts.micro-free", sizes=", ".join(map(str, MICRO_BATCHES))),
            say("layouts.etp"),
        ),
        unknown=(
            say("layouts.not-run"),
            say("layouts.not-counted"),
            say("layouts.balance" if model.experts else "layouts.core-dense"),
            say("layouts.network", rate=RECIPES["network"].whole),
        ),
        settings=base,
        model=model,
        precision=precision,
        nvlink_domain=domain,
        normal=normal_throughput(_dispatched(run, ordered[0])[0]) if fit and ordered else None,
        warnings=warnings,
    )


def _completed(wanted: Wanted) -> tuple[Settings, list[str], Values]:
    """The settings with what a layout needs beside the model; what nobody gave, in words and as
    knobs.
    """
    base, assumed = wanted.settings.changed({"world_size": wanted.gpus}, "plan"), []
    view = KnobView(base)
    taken = {knob: value for knob, value in _MEMORY.items() if not view.known(knob)}
    if not view.positive("seq_length"):
        length = RECIPES["sequence_length"].whole
        taken["seq_length"] = length
        assumed.append(say("layouts.length-assumed", length=f"{length:,}"))
    if not view.positive(GLOBAL_BATCH):
        batch = RECIPES["batch_of_a_gpu"].whole
        taken[GLOBAL_BATCH] = batch * wanted.gpus
        assumed.append(say("layouts.batch-assumed", batch=f"{batch * wanted.gpus:,}", each=batch))
    if not view.known("ddp.grad_reduce_in_fp32") and not view.known(
        "mixed_precision.grad_reduce_in_fp32"
    ):
        taken["ddp.grad_reduce_in_fp32"] = True
        assumed.append(say("layouts.gradients"))
    base = base.changed(taken, "plan")
    taken.pop(MICRO_BATCH, None)
    return base, assumed, taken


def _precision_words(wanted: Wanted, base: Settings, precision: str) -> Iterator[str]:
    if not wanted.given.precision and configured_precision(KnobView(base)) is None:
        yield say("layouts.precision-assumed", precision=precision.upper())
    elif wanted.given.precision and precision != ASSUMED_PRECISION and not wanted.is_own:
        yield say("layouts.precision-lines", precision=precision.upper())


def _fitted(
    request: LayoutRequest, fitting: Fitting, ranking: Ranking
) -> tuple[dict[Key, Fitted], set[Key]]:
    """The best of each set of parallel sizes that fits, and the sets that divide."""
    best = dict[Key, tuple[float, Fitted]]()
    seen, done = set[Key](), set[Key]()
    for sizes in candidates(request):
        seen.add(sizes.key)
        if sizes.key in done:
            continue
        fitted = fitting.fit(sizes)
        if not fitted:  # a larger micro-batch needs more
            done.add(sizes.key)
            continue
        cost = ranking.cost(fitted)
        if sizes.key not in best or cost < best[sizes.key][0]:
            best[sizes.key] = cost, fitted
        if fitted.recompute.granularity == "full":
            done.add(sizes.key)
    return {key: best_fit for key, (_, best_fit) in best.items()}, seen


def _dispatched(run: Run, layout: Fitted) -> tuple[Run, str, str]:
    """The run in a layout with the dispatcher that goes with it, its name, and why that one."""
    changed, dispatcher, reason = run.changed(changes_of(layout)), "alltoall", ""
    if layout.sizes.ep > 1:
        dispatcher, reason = _unmet(changed, choose_dispatcher(changed))
    if run.config.positive("num_moe_experts"):
        changed = changed.changed(set_to(changed, dispatcher).in_run(changed))
    return changed, dispatcher, reason


def _unmet(run: Run, choice: DispatcherChoice) -> tuple[str, str]:
    """The guide's dispatcher, or the next that no published trouble on this GPU speaks against; and
    why that one.
    """
    reason = choice.row.reason
    for backend in (*choice.candidates, ALLTOALL):
        for issue in known_issues("COM-2", set_to(run, backend).in_run(run), run):
            # what may be is less than the word of a guide
            if issue.gpus and not (choice.first and issue.only_if):
                reason = say("layouts.instead", backend=backend, id=issue.id, what=issue.what)
                break
        else:
            return backend, reason
    return ALLTOALL, reason


def _legal(
    ordered: Sequence[Fitted], run: Run, ranking: Ranking, typed: Typed
) -> tuple[list[PlannedLayout], dict[Key, Texts]]:
    """The first that no rule of the releases refuses, and the rules that refuse each of the
    others.
    """
    listed, refused = list[PlannedLayout](), dict[Key, Texts]()
    for layout in ordered:
        changed, dispatcher, reason = _dispatched(run, layout)
        if broken := errors(changed):
            refused[layout.sizes.key] = tuple(rule.id for rule in broken)
        elif len(listed) < LISTED.value:
            listed.append(shown(layout, run, ranking, dispatcher, reason, typed=typed))
    return listed, refused


def _with_own(listed: Sequence[PlannedLayout], own: PlannedLayout) -> list[PlannedLayout]:
    """The run's own layout among the others: in the place of the same one, else where its cost puts
    it.
    """
    for place, layout in enumerate(listed):
        if _sizes(layout) == _sizes(own):
            return [*listed[:place], own, *listed[place + 1 :]]
    return sorted([*listed, own], key=attrgetter("cost_frac"))


def _sizes(layout: PlannedLayout) -> tuple[object, ...]:
    return *_OF_SIZES(layout), {*layout.recompute_modules}
