"""One layout as a result has it: its costs and why, the nearest published ones, the lines to
type.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from msgspec.structs import replace

from heuristics.fixes.change import Change, lines
from heuristics.fixes.dispatcher import set_to
from heuristics.guides.memory_use import HEAD_ROOM
from heuristics.guides.parallel import connections
from heuristics.layouts.fit import Fitted
from heuristics.layouts.published import Near
from heuristics.layouts.ranking import Ranking, domains
from heuristics.layouts.rules import rules
from heuristics.result.judged import Knobs
from heuristics.result.layouts import LayoutCost, NearRun, PlannedLayout, Room
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.limits import NEARLY_ALL
from traces.sections.section import copied
from traces.settings.knobs import VIRTUAL_STAGES
from traces.settings.model_names import name_of
from traces.settings.settings import Values
from traces.settings.trainers import overrides_of
from traces.sizes.memory import ERROR
from traces.spelling import gigabytes, percent
from traces.texts import Texts

_SHOWN: Final = 0.001
"""Costs below it are left out: a tenth of a per cent."""


@frozen
class Typed:
    """A run as its files have it, and what the lines set beside a layout: what was assumed of
    it.
    """

    run: Run
    more: Values = field(default_factory=dict)


def changes_of(layout: Fitted) -> Values:
    """Knobs that set a layout and its recompute."""
    return {**layout.sizes.changes(), **layout.recompute.changes()}


def shown(
    layout: Fitted,
    run: Run,
    ranking: Ranking,
    dispatcher: str,
    reason: str,
    broken: Texts = (),
    own: bool = False,
    typed: Typed | None = None,
) -> PlannedLayout:
    """`run`: with all that was assumed; `typed`: what the lines have to say, and beside what."""
    sizes, costs = layout.sizes, ranking.costs(layout)
    unknown: Texts = ()
    if layout.filled_frac * (1 + ERROR.value) > 1:
        unknown = (
            say("layouts.tight-unknown", error_frac=ERROR.value, filled_frac=layout.filled_frac),
        )
    return copied(
        PlannedLayout,
        sizes,
        layout,
        place=0,
        own=own,
        vpp=sizes.vpp if sizes.vpp > 1 else None,
        stages=sizes.letters,
        recompute=layout.recompute.granularity,
        recompute_modules=layout.recompute.modules,
        dispatcher=dispatcher,
        room=_room(layout.filled_frac),
        without_recompute_bytes=layout.kept,
        cost_frac=sum(costs.values()),
        costs=tuple(
            LayoutCost(id, cost, _text(id, layout, ranking))
            for id, cost in costs.items()
            if cost >= _SHOWN
        ),
        because=tuple(_because(layout, ranking, dispatcher, reason)),
        nearest=tuple(_near(near, value) for near, value in ranking.closest(layout)),
        unknown=unknown,
        broken=broken,
        knobs=_knobs(layout, typed or Typed(run), dispatcher),
    )


def _room(filled_frac: float) -> Room:
    if filled_frac > 1:
        return "none"
    if filled_frac > min(1 - HEAD_ROOM.value, NEARLY_ALL.value):
        return "tight"
    return "room"


def _text(id: str, layout: Fitted, ranking: Ranking) -> str:
    sizes = layout.sizes
    experts = ranking.model.expert_count or 1
    return rules()[id].text.format(
        bubble=percent(sizes.bubble_frac),
        microbatches=sizes.microbatches,
        modules=_modules(layout),
        tp=sizes.tp,
        pp=sizes.pp,
        vpp=sizes.vpp,
        ep=sizes.ep,
        domains=domains(ranking, layout),
        domain=ranking.domain,
        experts=experts // sizes.ep,
        uneven=percent(sizes.uneven_frac),
        parameters=f"{(layout.memory.parameters_bytes / 2e9):.1f} billion",
        filled=percent(layout.filled_frac),
        micro_batch=sizes.micro_batch,
    )


def _modules(layout: Fitted) -> str:
    return ", ".join(layout.recompute.modules) or "whole layers"


def _because(layout: Fitted, ranking: Ranking, dispatcher: str, reason: str) -> Iterator[str]:
    sizes, count = layout.sizes, domains(ranking, layout)
    if ranking.model.experts:
        if sizes.ep == 1:
            yield say("layouts.no-experts-split")
        elif count == 1:
            yield say("layouts.nvlink-inside", ep=sizes.ep, domain=ranking.domain)
        else:
            yield say("layouts.nvlink-across", ep=sizes.ep, domains=count, domain=ranking.domain)
    if sizes.pp > 1:
        virtual = f" with VPP {sizes.vpp}" if sizes.vpp > 1 else ""
        yield say(
            "layouts.pipeline",
            pp=f"{sizes.pp}{virtual}",
            bubble_frac=sizes.bubble_frac,
            microbatches=f"{sizes.microbatches:,}",
        )
    else:
        yield say("layouts.data-parallel", dp=sizes.dp, microbatches=f"{sizes.microbatches:,}")
    kept, there = gigabytes(layout.kept), gigabytes(layout.capacity_bytes)
    if layout.recompute.granularity == "full":
        yield say("layouts.recompute-full", kept=kept, capacity=there)
    elif layout.recompute.modules:
        yield say("layouts.recompute", modules=_modules(layout), kept=kept, capacity=there)
    else:
        yield say("layouts.fits", filled_frac=layout.filled_frac, capacity=there)
    if reason:
        yield say("layouts.dispatcher", dispatcher=dispatcher, reason=reason)
    for near, value in ranking.closest(layout, 1):
        yield say("layouts.near", what=f"{_run_of(near)}, {_near(near, value).layout}")


def _run_of(near: Near) -> str:
    layout = near.of
    return f"{name_of(layout.model)} on {f'{layout.gpus} ' if layout.gpus else ''}{layout.gpu}"


def _near(near: Near, value: float) -> NearRun:
    return NearRun(_run_of(near), near.of.layout, value, near.of.source)


def _knobs(layout: Fitted, typed: Typed, dispatcher: str) -> Knobs:
    """In the spelling of the run's file, where it has one.

    Beside stages by letters Megatron-LM takes no number of virtual ones, and Bridge wants it.
    """
    run = typed.run
    wanted = {**_lines(layout, run, dispatcher), **typed.more}
    virtual = (
        {VIRTUAL_STAGES: wanted.pop(VIRTUAL_STAGES)}
        if layout.sizes.letters and layout.sizes.vpp > 1
        else {}
    )
    knobs = lines(Change(wanted, megatron_bridge=virtual), run)
    if run.settings.framework == "megatron_bridge":
        program = run.settings.value("launcher.program")
        overrides = tuple(overrides_of(program, knobs.megatron_bridge))
        return replace(knobs, megatron_lm=(), megatron_bridge=overrides)
    return replace(knobs, megatron_bridge=()) if run.settings.framework else knobs


def _lines(layout: Fitted, run: Run, dispatcher: str) -> Values:
    """What has to be typed: what is null is left out where nothing has it."""
    changed = run.changed(changes_of(layout))
    wanted = {**changes_of(layout)}
    if run.config.positive("num_moe_experts"):
        wanted |= set_to(changed, dispatcher).of(run.settings.framework, run.settings)
    if run.tells("before_blackwell") and (layout.sizes.tp > 1 or layout.sizes.cp > 1):
        wanted["env.CUDA_DEVICE_MAX_CONNECTIONS"] = str(connections(changed))
    return {
        knob: value
        for knob, value in wanted.items()
        if value not in (None, False) or run.config.first(knob) not in (None, False)
    }
