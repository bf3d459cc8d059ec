"""A knob's value taken into a draft, with a problem where it cannot be."""

from difflib import get_close_matches
from typing import Final

from traces.settings.configuration import Draft, ProblemEffect
from traces.settings.corrections import AS_WRITTEN, Correction
from traces.settings.knobs import Knob, Release, knobs
from traces.settings.settings import Value
from traces.settings.stages import layout_of, stage_count
from traces.settings.values import GIVEN, NotAValue, Raw, value_of

LOOKED_UP: Final = ("mixed_precision",)
"""Knobs of which Megatron-Bridge raises for a word that it has not registered, whatever program reads them
(training/mixed_precision.py, get_mixed_precision_config, v0.2.0 to v0.6.0)."""
NEAREST: Final = 2
"""Choices that are named for a word that is none of them."""


def take(
    draft: Draft, knob: Knob, name: str, raw: Raw, line: int | None, effect: ProblemEffect = "unread"
) -> None:
    """Set a knob as said. `name`: as the file has it, one that may be shown.

    `effect`: of a word that is none of the knob's choices.
    """
    try:
        draft.put(knob.id, _value(knob, raw), line)
    except NotAValue as error:
        draft.leave(knob.id)
        always = knob.id in LOOKED_UP
        effect = "stops" if always else effect
        instead = _meant(knob, raw) if effect == "stops" else ""
        draft.problem(line, f"{name} {error}", instead, effect, always=always)


def _meant(knob: Knob, raw: Raw) -> str:
    """The choices nearest to a word, or that it has to be one of those listed."""
    near = get_close_matches(str(raw).replace("-", "_"), knob.choices, NEAREST)
    return " or ".join(near) or "one of these"


def _value(knob: Knob, raw: Raw) -> Value:
    """A knob's value; layouts have two spellings, and recipes are registered with dashes too."""
    if knob.id == "mixed_precision" and isinstance(raw, str):
        raw = raw.replace("-", "_")
    return _layout(knob, raw) if knob.id == "pipeline_model_parallel_layout" else value_of(knob, raw)


def _layout(knob: Knob, raw: Raw) -> str | None:
    """A text, or Megatron-Bridge's list of stages."""
    layout: Value
    if isinstance(raw, list):
        stages = [[str(layer) for layer in stage] for stage in raw if isinstance(stage, list)]
        layout = layout_of(stages) if len(stages) == len(raw) else ""
    else:
        layout = value_of(knob, raw)
    if layout is None and not isinstance(raw, list):
        return None
    if not isinstance(layout, str) or stage_count(layout) is None:
        raise NotAValue("takes a text such as Et*3|(tt|)*29m|L, or a list of stages")
    return layout.strip("'\"")


def set_false(draft: Draft, knob: Knob, line: int | None) -> None:
    """Set a knob by the flag that switches it off."""
    draft.put(knob.id, False, line)


def take_correction(draft: Draft, name: str, meant: Correction, raw: Raw, line: int | None) -> None:
    """Set what a spelling means, and say what is wrong with it."""
    if meant.text:
        draft.problem(line, f"{name}: {meant.text}", meant.instead, meant.effect)
    for knob_id, value in meant.sets:
        take(draft, knobs()[knob_id], name, raw if value == AS_WRITTEN else value, line)


def is_wrong_in(meant: Correction, core: Release | None) -> bool:
    """Whether a spelling is wrong in a release; one that became wrong is not where none is known."""
    return meant.since is None or (core is not None and core >= meant.since)


def unclear(draft: Draft, knob: Knob, name: str, line: int | None, why: str) -> None:
    """Note that a knob was said and what is not known; of some it is enough that they have a value."""
    if knob.kind == "given":
        draft.put(knob.id, GIVEN, line)
        return
    draft.leave(knob.id)
    draft.problem(line, f"{name}: {why}, so that it stays unknown")
