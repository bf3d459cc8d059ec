"""What the name of a preset of Megatron-Bridge's performance scripts stands for: a model, and how it runs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple

from msgspec import Struct

from traces.patterns import whole_number
from traces.settings.knobs import MAIN, VIRTUAL_STAGES, Release, knobs
from traces.settings.settings import Draft, Setting, Value
from traces.settings.values import Raw, value_of
from traces.toml_tables import read_table

RECIPE: Final = "launcher.recipe"
PRECISIONS: Final = "launcher.precisions"
"""Knob: the precisions (-c) that have a preset of the model, GPU and release of the command."""

_CUTS: Final = ("tp", "pp", "cp")
_CODES: Final = ("bf16", "fp8_cs", "fp8_mx", "fp8_sc", "nvfp4")
_VALUES_KNOWN: Final = "launcher.recipe_values_known"
_CORE_BEFORE_BRIDGE: Final = 13
"""Bridge 0.3 has Megatron-Core 0.16, and so on: its submodule 3rdparty/Megatron-LM at each release."""
_FIRST: Final = 2
"""Minor number of the first Bridge with presets; it has variant v1 alone."""
_ONE_FOR_BOTH: Final = 6
"""The first with one preset for variants v1 and v2, and the last that the table knows."""


class _Preset(NamedTuple):
    """A row of the table, as one variant of one release has it: `batch` is of one GPU."""

    ranks: tuple[int, ...]
    batch: float
    words: Mapping[str, str]


def take_recipe(draft: Draft, flags: Mapping[str, str], core: Release | None) -> None:
    """Take what a preset sets, where neither a flag nor an override says it.

    `flags`: those of Bridge's performance scripts, by their long names. Up to v0.2 they name family and size,
    and no recipe. Without a precision they take BF16. `core`: the Megatron-Core of the run; None: the newest.
    """
    family = flags.get("--model_family_name") or flags.get("--model_name", "")
    name = (flags.get("--model_recipe_name") or f"{family}_{flags.get('--model_size', '')}").lower()
    if family or "--model_recipe_name" in flags:
        draft.by_knob[RECIPE] = Setting(name, draft.name)
        draft.by_knob[_VALUES_KNOWN] = Setting(False, draft.name)
    if not is_known_recipe(name):
        return
    _take(draft, name, models().get(name, {}))
    if "--compute_dtype" not in flags:
        _take(draft, name, {"mixed_precision": "bf16_mixed"})
    newer = max(_FIRST + 1, min((core or MAIN)[1] - _CORE_BEFORE_BRIDGE, _ONE_FOR_BOTH))
    release = newer if "--model_recipe_name" in flags else _FIRST
    found = _found(draft, name, flags, release)
    if found is not None:
        _take(draft, name, {PRECISIONS: tuple(found)})
    preset = _chosen(draft, name, (found or {}).get(_precision(flags), []))
    draft.by_knob[_VALUES_KNOWN] = Setting(preset is not None, draft.name)
    if preset is not None:
        for choice in _choices(preset.words):
            if not any(draft.has(knob) for knob in choice):
                _take(draft, name, choice)
        _take(draft, name, _sizes(draft, preset, release))
        _take(draft, name, _also(name, str(draft.by_knob["launcher.gpu"].value), release))
    _take(draft, name, _stages(draft, name))


def _take(draft: Draft, name: str, settings: Mapping[str, Value]) -> None:
    for knob, value in settings.items():
        if not draft.has(knob):
            draft.by_knob[knob] = Setting(value, f"the recipe {name}")


def is_known_recipe(name: str) -> bool:
    """Whether it is one of Bridge's names: its model, or its presets, are in our tables."""
    return name in models() or name in _table().presets


def precisions_ever(name: str, gpu: str) -> frozenset[str]:
    """Precisions that have a preset of a recipe and a GPU in any release."""
    rows = _table().presets.get(name, ())
    return frozenset(code for of, codes, *_ in rows if gpu in of.split() for code in codes.split())


def _precision(flags: Mapping[str, str]) -> str:
    return flags.get("--compute_dtype", "bf16").lower()


def _found(
    draft: Draft, name: str, flags: Mapping[str, str], release: int
) -> Mapping[str, list[_Preset]] | None:
    """Presets by precision, of the GPU, release and variant; None where the table may lack some."""
    variant = flags.get("--config_variant", "v2").lower()
    gpu = draft.by_knob.get("launcher.gpu")
    rows = _table().presets.get(name)
    if variant not in ("v1", "v2") or "--use_recipes" in flags or gpu is None or rows is None:
        return None
    if flags.get("--task", "pretrain") != "pretrain" or release < _table().read_since.get(str(gpu.value), 0):
        return None
    found: dict[str, dict[str, list[_Preset]]] = {}
    for of, precisions, *batches, ranks, text in rows:
        words = {word: rest for word, _, rest in (one.partition("=") for one in text.split())}
        for one, (releases, _, batch) in zip(
            ("v1", "v2"), (cell.partition(" x ") for cell in batches), strict=True
        ):
            if gpu.value in of.split() and holds(release, releases):
                preset = _Preset(tuple(map(int, ranks.split())), float(batch), words)
                for precision in precisions.split():
                    found.setdefault(precision, {}).setdefault(one, []).append(preset)
    first = "v2" if release >= _ONE_FOR_BOTH else "v1" if release == _FIRST else variant
    by_precision = {code: one.get(first) or one.get("v1", []) for code, one in found.items()}
    return {code: by_precision[code] for code in _CODES if by_precision.get(code)}


def _chosen(draft: Draft, name: str, presets: Sequence[_Preset]) -> _Preset | None:
    """The preset of these ranks; else the one that the scripts scale: the largest, of Qwen3 30B the smallest.

    Source: scripts/performance/utils/utils.py, get_workload_base_config; since 0.6
    _select_default_recipe_name and _DEFAULT_GPU_COUNT_OVERRIDES.
    """
    world = _count(draft, "world_size")
    usual = min if name == "qwen3_30b_a3b" else max
    scaled = usual(presets, key=lambda row: row.ranks, default=None)
    return next((row for row in presets if world in row.ranks), scaled)


def holds(release: int, spans: str) -> bool:
    """Whether a release of Bridge, by its minor number, is in spans such as `0.2-0.4 0.6`."""
    ends = [[int(end.removeprefix("0.")) for end in span.split("-")] for span in spans.split()]
    return any(end[0] <= release <= end[-1] for end in ends)


class ScriptPreset(NamedTuple):
    """A preset of the scripts: a model on a GPU. `gpus`: how many, None where it scales with them."""

    model: str
    gpu: str
    gpus: int | None
    precision: str
    sizes: Mapping[str, int]


def presets_of_scripts() -> Iterator[ScriptPreset]:
    """Every preset of a known model, by the words of `sizes` in the table."""
    for model, rows in _table().presets.items():
        for of, precisions, _, _, ranks, text in rows:
            words = {word: rest for word, _, rest in (one.partition("=") for one in text.split())}
            sizes = {word: int(words.get(word, 1)) for word in _table().sizes}
            for gpu in of.split():
                yield ScriptPreset(model, gpu, int(ranks.split()[0]) if ranks else None, precisions, sizes)


def _choices(words: Mapping[str, str]) -> Iterator[Mapping[str, Value]]:
    for choice in _table().choices.values():
        word = next((word for word in words if word in choice), "")
        own = words.get(word) or None
        yield _values({knob: own if raw == "*" else raw for knob, raw in choice.get(word, {}).items()})


def _sizes(draft: Draft, preset: _Preset, release: int) -> Mapping[str, Value]:
    """Its layout and batch. The batch grows with the GPUs; since 0.6 with the data-parallel ranks."""
    sizes: dict[str, Value] = {knob: int(preset.words.get(word, 1)) for word, knob in _table().sizes.items()}
    own = [int(preset.words.get(word, 1)) for word in _CUTS]
    run = [_count(draft, _table().sizes[word]) or size for word, size in zip(_CUTS, own, strict=True)]
    grown = preset.batch * (_count(draft, "world_size") or 0)
    if release >= _ONE_FOR_BOTH:
        grown *= prod(own) / prod(run)
    if grown and grown == int(grown):
        sizes["train.global_batch_size"] = int(grown)
    sizes["sequence_parallel"] = run[0] != 1
    return sizes | {VIRTUAL_STAGES: None if sizes[VIRTUAL_STAGES] == 1 else sizes[VIRTUAL_STAGES]}


def _also(name: str, gpu: str, release: int) -> Mapping[str, Value]:
    given: dict[str, Raw] = {}
    for recipes, gpus, releases, settings in _table().also:
        if name in (recipes or name).split() and gpu in (gpus or gpu).split():
            given |= settings if not releases or holds(release, releases) else {}
    return _values(given)


def _stages(draft: Draft, name: str) -> Mapping[str, Value]:
    table = _table().stages.get(name, {})
    stages = _count(draft, "pipeline_model_parallel_size")
    if stages is None or VIRTUAL_STAGES not in draft.by_knob:
        return {}
    layout = table.get(str(stages * (_count(draft, VIRTUAL_STAGES) or 1)))
    return {} if layout is None else {"pipeline_model_parallel_layout": layout}


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it stands."""

    presets: dict[str, tuple[tuple[str, str, str, str, str, str], ...]]
    sizes: dict[str, str]
    choices: dict[str, dict[str, dict[str, Any]]]
    also: tuple[tuple[str, str, str, dict[str, Any]], ...]
    read_since: dict[str, int]
    stages: dict[str, dict[str, str]]


@cache
def _table() -> _Table:
    return read_table("traces.settings", "harness_recipes.toml", _Table)


def _values(raw: Mapping[str, Raw]) -> dict[str, Value]:
    return {knob: value_of(knobs()[knob], one) for knob, one in raw.items()}


def _count(draft: Draft, knob: str) -> int | None:
    found = draft.by_knob.get(knob)
    return None if found is None else whole_number(str(found.value))


@cache
def models() -> Mapping[str, Mapping[str, Value]]:
    """Knobs of each model by the name of its recipe."""
    table = read_table("traces.settings", "models.toml", dict[str, dict[str, dict[str, Any]]])
    families = {"": dict[str, Any](), **table["families"]}
    return {name: _values(families[row.pop("family")] | row) for name, row in table["models"].items()}
