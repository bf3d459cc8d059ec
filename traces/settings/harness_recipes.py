"""What the name of a performance recipe of Megatron-Bridge stands for: a model, and the layout it runs in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, cast

from traces.settings.configuration import Draft
from traces.settings.knobs import data, knobs
from traces.settings.settings import Setting, Value
from traces.settings.values import Raw, value_of

_LAYOUT: Final = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "train.global_batch_size",
    "train.micro_batch_size",
)
_SEQUENCE: Final = 4096
_CANONICAL: Final = frozenset({"", "v1", "v2"})
"""Variants that are the recipe itself (scripts/performance/utils/utils.py, _recipe_variant_name)."""


def take_recipe(draft: Draft, flags: Mapping[str, str]) -> None:
    """Take what a recipe sets, where neither a flag nor an override says it.

    `flags`: those of Bridge's performance scripts, by their long names.
    """
    name = flags.get("--model_recipe_name", "").lower()
    model = dict(_models().get(name, {}))
    if not model:
        return
    said = f"the recipe {name}"
    for told in (model.items(), _layout(draft, name, flags), _stages(draft, name)):
        for knob, value in told:
            if knob not in draft.by_knob and knob not in draft.unclear:
                draft.by_knob[knob] = Setting(value, said)


def _layout(draft: Draft, name: str, flags: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """The layout of exactly this GPU, number of GPUs and precision; none where no recipe has it."""
    if flags.get("--config_variant", "").lower() not in _CANONICAL:
        return
    if flags.get("--task", "pretrain") != "pretrain":
        return
    asked = (name, _text(draft, "launcher.gpu"), _text(draft, "world_size"))
    precision = flags.get("--compute_dtype", "bf16").lower()
    for row in cast("list[list[str | int]]", data("harness_recipes.toml")["layouts"]):
        recipe, gpu, ranks, precisions, *sizes = row
        if (recipe, gpu, str(ranks)) != asked or precision not in str(precisions).split():
            continue
        for knob, size in zip(_LAYOUT, sizes, strict=True):
            is_null = knob == "virtual_pipeline_model_parallel_size" and size == 1
            yield knob, None if is_null else size
        yield "sequence_parallel", sizes[0] != 1
        yield "expert_tensor_parallel_size", 1
        yield "seq_length", _SEQUENCE


def _stages(draft: Draft, name: str) -> Iterator[tuple[str, Value]]:
    """How a recipe cuts its layers for the stages that the run has."""
    table = cast("dict[str, dict[str, str]]", data("harness_recipes.toml")["stages"]).get(name, {})
    virtual = "virtual_pipeline_model_parallel_size"
    ranks, each = _text(draft, "pipeline_model_parallel_size"), _text(draft, virtual)
    if ranks.isdecimal() and virtual in draft.by_knob:
        count = int(ranks) * (int(each) if each.isdecimal() else 1)
        if str(count) in table:
            yield "pipeline_model_parallel_layout", table[str(count)]


def _text(draft: Draft, knob: str) -> str:
    found = draft.by_knob.get(knob)
    return "" if found is None else str(found.value)


@cache
def _models() -> Mapping[str, Mapping[str, Value]]:
    """Knobs of each model by the name of its recipe."""
    folder = files("traces.settings").joinpath("models")
    found = {}
    for file in folder.iterdir():
        if file.name.endswith(".toml"):
            table = cast("dict[str, Raw]", tomllib.loads(file.read_text(encoding="utf-8")))
            found[file.name.removesuffix(".toml")] = {
                knob: value_of(knobs()[knob], raw) for knob, raw in table.items()
            }
    return found
