"""Values and paths of a Megatron-Bridge configuration, taken into a draft or named as a problem."""

from dataclasses import replace
from functools import partial
from typing import Final

from traces.nearest import nearest_names
from traces.patterns import LETTERS, compiled
from traces.settings.corrections import (
    AS_WRITTEN,
    Correction,
    alias,
    corrected_path,
    is_alias,
    spellings,
)
from traces.settings.draft import Draft
from traces.settings.knobs import Knob, by_path, knobs
from traces.settings.names import bridge_groups, bridge_paths, known_names, say_unknown, shown
from traces.settings.releases import say_if_absent, say_later_words, stay_of_path
from traces.settings.settings import ProblemEffect, Value
from traces.settings.values import GIVEN, NotAValue, Raw, layout_of, stage_count, value_of

LOOKED_UP: Final = ("mixed_precision",)
"""Knobs of which Megatron-Bridge raises for a word that it has not registered, whatever program
reads them (training/mixed_precision.py, get_mixed_precision_config, v0.2.0 to v0.6.0)."""
NEAREST: Final = 2
"""Choices that are named for a word that is none of them."""


def take(
    draft: Draft,
    knob: Knob,
    name: str,
    raw: Raw,
    line: int | None,
    effect: ProblemEffect = "unread",
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
        near = nearest_names(str(raw).replace("-", "_"), knob.choices, NEAREST)
        instead = (" or ".join(near) or "one of these") if effect == "stops" else ""
        draft.problem(line, f"{name} {error}", instead, effect, always=always)


def take_variable(draft: Draft, name: str, raw: Raw, line: int | None) -> None:
    """Set a variable of the environment, of those that matter to a run."""
    if knob := knobs().get(f"env.{name}"):
        take(draft, knob, name, raw, line)


def _value(knob: Knob, raw: Raw) -> Value:
    """A knob's value; layouts have two spellings, and recipes are registered with dashes too."""
    if knob.id == "mixed_precision" and isinstance(raw, str):
        raw = raw.replace("-", "_")
    if knob.id == "pipeline_model_parallel_layout":
        return _layout(knob, raw)
    return value_of(knob, raw)


def _layout(knob: Knob, raw: Raw) -> str | None:
    layout: Value
    if isinstance(raw, list):
        stages = [[str(layer) for layer in stage] for stage in raw if isinstance(stage, list)]
        layout = layout_of(stages) if len(stages) == len(raw) else ""
    elif (layout := value_of(knob, raw)) is None:
        return None
    if not isinstance(layout, str) or stage_count(layout) is None:
        raise NotAValue("takes a text such as Et*3|(tt|)*29m|L, or a list of stages")
    return layout.strip("'\"")


def take_correction(draft: Draft, name: str, meant: Correction, raw: Raw, line: int | None) -> None:
    """Set what a spelling means, and say what is wrong with it."""
    if meant.text:
        draft.problem(line, f"{name}: {meant.text}", meant.instead, meant.effect)
    for knob_id, value in meant.sets:
        take(draft, knobs()[knob_id], name, raw if value == AS_WRITTEN else value, line)


def wrong_in(draft: Draft, name: str) -> Correction | None:
    """What a spelling means that is wrong in the release; where none is known, one that only became
    wrong is not.
    """
    meant = spellings().get(name)
    if meant and meant.since and (draft.core is None or draft.core < meant.since):
        return None
    return meant


def unclear(
    draft: Draft,
    knob: Knob,
    name: str,
    line: int | None,
    why: str = "its value comes from outside the file",
) -> None:
    """Note that a knob was said and what is not known; of some it is enough that they have a
    value.
    """
    if knob.kind == "given":
        draft.put(knob.id, GIVEN, line)
        return
    draft.leave(knob.id)
    draft.problem(line, f"{name}: {why}, so that it stays unknown")


_KEY: Final = rf"[A-Za-z_][{LETTERS}_-]*"
OVERRIDE: Final = compiled(rf"(?s)(\+{{0,2}}|~)((?:cfg\.)?{_KEY}(?:\.{_KEY})*)(?:=(.*))?")
"""Hydra's `key=value`, `+key=value`, `++key=value` and `~key`."""

MAKERS: Final = frozenset(
    {"_target_", "_call_", "_partial_", "_args_", "_name_", "_kwargs_", "_recursive_"}
)
"""Keys of a dump that say what builds an entry again (megatron/training/config/yaml_utils.py)."""

ENVIRONMENTS: Final = ("env_vars.", "env.")
"""The environment: of a performance recipe, or of whatever launches the run."""


def is_override(word: str) -> bool:
    """Whether a word is an override of a group of Bridge's configuration."""
    match = OVERRIDE.fullmatch(word)
    if not match or (match[3] is None and match[1] != "~"):
        return False
    path = match[2].removeprefix("cfg.")
    return path.partition(".")[0] in bridge_groups() and (path in by_path() or "." in path)


def take_override(draft: Draft, word: str, line: int | None) -> None:
    """Take one override of Hydra."""
    if match := OVERRIDE.fullmatch(word):
        value = None if match[1] == "~" else hydra_value(match[3] or "")
        take_path(draft, match[2], value, line)


def hydra_value(text: str) -> Raw:
    """A value of Hydra's grammar: quotes, lists and null; the rest as its text."""
    text = text.strip()
    if compiled(r"(?s)'.*'|\".*\"").fullmatch(text):
        return text[1:-1]
    if text in ("null", "None"):
        return None
    if text.startswith("[") and text.endswith("]"):
        return [part.strip().strip("'\"") for part in text[1:-1].split(",") if part.strip()]
    return text


def take_path(draft: Draft, path: str, raw: Raw, line: int | None, dumped: bool = False) -> None:
    """Take the value at a path such as `model.moe_grouped_gemm`.

    `dumped`: the framework wrote the file, so that a name we do not know is most likely the class's
    own.
    """
    if path.startswith("cfg."):
        path = path.removeprefix("cfg.")
        draft.problem(line, "overrides do not begin with cfg.", shown(path))
    path = plain_path(path)
    wrong = wrong_in(draft, path)
    if dumped and is_older(path) and (raw is None or raw is False):
        return  # the field of an older name, as its class leaves it
    if wrong and (wrong.sets or not dumped):
        take_correction(draft, path, wrong, raw, line)
        if wrong.sets:
            return
    if not dumped:
        say_if_absent(draft, path, stay_of_path(path), line)
    if knob := by_path().get(path):
        take(draft, knob, path, raw, line)
        draft.note_name(knob.id, path, line)
        if knob.is_core and not dumped:
            say_later_words(draft, path, knob, _words(raw), line)
    elif is_alias(path):
        _take_alias(draft, path, raw, line)
    elif path.startswith(ENVIRONMENTS):
        take_variable(draft, path.partition(".")[2], raw, line)
    elif path not in bridge_paths():
        _unknown(draft, path, raw, line, dumped)


def _words(raw: Raw) -> list[str]:
    if isinstance(raw, list):
        return list(map(str, raw))
    return [str(raw)]


def plain_path(path: str) -> str:
    """A path without the level that a model's builder puts its transformer on."""
    return compiled(r"^model\.(transformer|config)\.").sub("model.", path)


def is_older(path: str) -> bool:
    """Whether a path is the older name of a knob, which the frameworks still take beside the new
    one.
    """
    knob = by_path().get(path)
    return knob is not None and knob.bridge != path


def _take_alias(draft: Draft, path: str, raw: Raw, line: int | None) -> None:
    meant = alias(path, str(raw))
    if not meant:
        return
    group = path.partition(".")[0]  # a knob of another group may have been set by its own path
    sets = [
        row for row in meant.sets if row[0] not in draft.by_knob or row[0].startswith(f"{group}.")
    ]
    take_correction(draft, path, replace(meant, sets=tuple(sets)), raw, line)


def _unknown(draft: Draft, path: str, raw: Raw, line: int | None, dumped: bool) -> None:
    group, _, name = path.partition(".")
    if group in known_names().open_groups or group in MAKERS or name.startswith("_"):
        return
    if group not in bridge_groups():
        say_unknown(draft, line, group, bridge_groups(), "no group of Megatron-Bridge")
        return
    if not name or name.count("."):
        return
    meant = corrected_path(path)
    if meant and not dumped:
        take_correction(draft, path, meant, raw, line)
        return
    what = "no field of Megatron-Bridge that we know"
    say_unknown(
        draft, line, path, bridge_paths(), what, only_slips=dumped, fits=partial(_takes, raw)
    )


def _takes(raw: Raw, path: str) -> bool:
    """Whether the knob of a path may have such a value; of a path that is no knob nobody knows."""
    knob = by_path().get(path)
    try:
        return knob is None or isinstance(raw, list | dict) or value_of(knob, raw) is not None
    except NotAValue:
        return False
