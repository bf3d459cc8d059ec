"""What the name of a performance recipe of Megatron-Bridge stands for: a model, and the layout it runs in."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import prod
from typing import Final, cast

from traces.settings.configuration import Draft
from traces.settings.knobs import MAIN, Release, data, knobs
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
_CUTS: Final = _LAYOUT[:3]
_VIRTUAL: Final = "virtual_pipeline_model_parallel_size"
_BATCH: Final = "train.global_batch_size"
_SEQUENCE: Final = 4096
_VALUES_KNOWN: Final = "launcher.recipe_values_known"
_CANONICAL: Final = frozenset({"", "v1", "v2"})
"""Variants that are the recipe itself (scripts/performance/utils/utils.py, _recipe_variant_name)."""
_FIRST_KNOWN: Final[Release] = (0, 19, 0)
"""Megatron-Core of Megatron-Bridge 0.6, whose recipes are the first that `own` has."""


def take_recipe(draft: Draft, flags: Mapping[str, str], core: Release | None) -> None:
    """Take what a recipe sets, where neither a flag nor an override says it.

    `flags`: those of Bridge's performance scripts, by their long names. Up to v0.2 they name family and size,
    and no recipe. Without a precision they take BF16. `core`: the Megatron-Core of the run; None: the newest.
    """
    family = flags.get("--model_family_name") or flags.get("--model_name", "")
    name = (flags.get("--model_recipe_name") or f"{family}_{flags.get('--model_size', '')}").lower()
    if family or "--model_recipe_name" in flags:
        draft.by_knob["launcher.recipe"] = Setting(name, draft.name)
        draft.by_knob[_VALUES_KNOWN] = Setting(False, draft.name)
    model = _models().get(name)
    if model is None:
        return
    said = f"the recipe {name}"
    precision = {} if "--compute_dtype" in flags else {"mixed_precision": "bf16_mixed"}
    row = _row(draft, name, flags)
    layout = () if row is None else _layout(draft, row)
    own = () if row is None or (core or MAIN) < _FIRST_KNOWN else tuple(_own(draft, name, flags, row.ranks))
    draft.by_knob[_VALUES_KNOWN] = Setting(bool(own), draft.name)
    for told in (model.items(), precision.items(), layout, _stages(draft, name), own):
        for knob, value in told:
            if not draft.has(knob):
                draft.by_knob[knob] = Setting(value, said)


def _own(draft: Draft, name: str, flags: Mapping[str, str], ranks: int) -> Iterator[tuple[str, Value]]:
    """What else this recipe sets; of knobs that stand for one choice all or, where a flag chooses, none."""
    tables, gpu = data("harness_recipes.toml"), draft.by_knob["launcher.gpu"].value
    for row in cast("list[list[str]]", tables["own"]):
        recipe, of, counts, precisions, *choices = row
        if (recipe, of) != (name, gpu) or str(ranks) not in counts.split():
            continue
        if _precision(flags) not in precisions.split():
            continue
        for choice in _choices(*choices):
            if not any(draft.has(knob) for knob in choice):
                yield from choice.items()
        but = cast("dict[str, dict[str, Raw]]", tables["but"])
        always = cast("dict[str, Raw]", tables["always"])
        for knob, raw in {**always, **but.get(name, {}), **but.get(f"{name} {gpu}", {})}.items():
            yield knob, value_of(knobs()[knob], raw)


def _choices(dispatcher: str, overlap: str, graphs: str, recompute: str) -> tuple[dict[str, Value], ...]:
    """The knobs of each choice of a row."""
    is_flex, (way, *captured) = dispatcher != "alltoall", graphs.split() or ("none",)
    is_whole = way == "full_iteration"
    return (
        {
            "moe_token_dispatcher_type": "flex" if is_flex else dispatcher,
            "moe_flex_dispatcher_backend": dispatcher if is_flex else None,
        },
        {
            "comm_overlap.overlap_moe_expert_parallel_comm": "a2a" in overlap,
            "comm_overlap.delay_wgrad_compute": "wgrad" in overlap,
        },
        {
            "cuda_graph_impl": way,
            "cuda_graph_modules": tuple(captured),
            **({"use_te_rng_tracker": True} if graphs else {}),
            "moe_paged_stash": is_whole,
            "moe_expert_rank_capacity_factor": 1.5 if is_whole else None,
            "use_transformer_engine_op_fuser": is_whole,
        },
        {
            "recompute_granularity": "selective" if recompute else None,
            "recompute_modules": tuple(recompute.split()) or None,
        },
    )


def _precision(flags: Mapping[str, str]) -> str:
    return flags.get("--compute_dtype", "bf16").lower()


def _layout(draft: Draft, row: _Layout) -> Iterator[tuple[str, Value]]:
    """The layout of a recipe."""
    sizes = dict(zip(_LAYOUT, row.sizes, strict=True))
    for knob, size in sizes.items():
        if knob != _BATCH:
            yield knob, None if knob == _VIRTUAL and size == 1 else size
    yield "sequence_parallel", row.sizes[0] != 1
    yield "expert_tensor_parallel_size", 1
    yield "seq_length", _SEQUENCE
    ranks, cut = _count(draft, "world_size"), [_count(draft, knob) or sizes[knob] for knob in _CUTS]
    copies = row.ranks // prod(sizes[knob] for knob in _CUTS)
    if ranks and ranks % prod(cut) == 0 and sizes[_BATCH] * (ranks // prod(cut)) % copies == 0:
        yield _BATCH, sizes[_BATCH] * (ranks // prod(cut)) // copies


@dataclass(frozen=True, slots=True)
class _Layout:
    """One row: the ranks a recipe is written for, and its sizes in the order of `_LAYOUT`."""

    ranks: int
    sizes: tuple[int, ...]


def _row(draft: Draft, name: str, flags: Mapping[str, str]) -> _Layout | None:
    """The recipe of these ranks; else the one that the scripts scale: the largest, of Qwen3 30B the smallest.

    Source: scripts/performance/utils/utils.py, _select_default_recipe_name and _DEFAULT_GPU_COUNT_OVERRIDES.
    """
    if flags.get("--config_variant", "").lower() not in _CANONICAL or "--use_recipes" in flags:
        return None
    if flags.get("--task", "pretrain") != "pretrain":
        return None
    gpu, precision = draft.by_knob.get("launcher.gpu"), _precision(flags)
    found = {
        int(ranks): _Layout(int(ranks), tuple(map(int, sizes)))
        for recipe, of, ranks, precisions, *sizes in cast(
            "list[list[str | int]]", data("harness_recipes.toml")["layouts"]
        )
        if recipe == name and gpu and of == gpu.value and precision in str(precisions).split()
    }
    if not found:
        return None
    usual = min(found) if name == "qwen3_30b_a3b" else max(found)
    return found.get(_count(draft, "world_size") or usual, found[usual])


def _stages(draft: Draft, name: str) -> Iterator[tuple[str, Value]]:
    """How a recipe cuts its layers for the stages that the run has."""
    table = cast("dict[str, dict[str, str]]", data("harness_recipes.toml")["stages"]).get(name, {})
    stages = _count(draft, "pipeline_model_parallel_size")
    if stages is not None and _VIRTUAL in draft.by_knob:
        count = str(stages * (_count(draft, _VIRTUAL) or 1))
        if count in table:
            yield "pipeline_model_parallel_layout", table[count]


def _count(draft: Draft, knob: str) -> int | None:
    found = draft.by_knob.get(knob)
    return int(str(found.value)) if found is not None and str(found.value).isdecimal() else None


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
