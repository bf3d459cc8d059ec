"""What the name of a preset of Megatron-Bridge's performance scripts stands for: a model, and how
it runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple

from msgspec import Struct

from traces.settings.draft import Draft
from traces.settings.knobs import (
    CP,
    GLOBAL_BATCH,
    MAIN,
    PP,
    STAGE_LAYOUT,
    TP,
    VIRTUAL_STAGES,
    knobs,
)
from traces.settings.settings import Setting, Value, Values, settings
from traces.settings.shell import UNKNOWN
from traces.settings.values import Raw, value_of
from traces.toml_tables import TableRow, read_table

PRECISION: Final = "--compute_dtype"
"""The flag (-c) for the precision of a preset."""
RECIPE: Final = "launcher.recipe"
PRECISIONS: Final = "launcher.precisions"
"""Knob: the precisions (-c) that have a preset of the model, GPU and release of the command."""

_CODES: Final = ("bf16", "fp8_cs", "fp8_mx", "fp8_sc", "nvfp4")
_VALUES_KNOWN: Final = "launcher.recipe_values_known"
_CORE_BEFORE_BRIDGE: Final = 13
"""Bridge 0.3 has Megatron-Core 0.16, and so on: its submodule 3rdparty/Megatron-LM at each
release."""
_FIRST: Final = 2
"""Minor number of the first Bridge with presets; it has variant v1 alone."""
_ONE_FOR_BOTH: Final = 6
"""The first with one preset for variants v1 and v2, and the last that the table knows."""


Flags = Mapping[str, str]
"""Flags of the scripts with their words."""


class _Words(tuple[str, ...]):
    """In the table one text, with blanks between them."""


class _Pairs(dict[str, str]):
    """`tp=4 fsdp`: words, some with a text."""


class _Releases(frozenset[int]):
    """Minor numbers of Bridge, as `0.2-0.4 0.6`."""


class _Batches(dict[int, float]):
    """`0.2-0.4 x 8`: by release the batch of one GPU."""


class _PresetRow(Struct, frozen=True, array_like=True):
    """Presets of the table."""

    gpus: _Words
    precisions: _Words
    v1: _Batches
    v2: _Batches
    ranks: tuple[int, ...]
    words: _Pairs


class _Preset(NamedTuple):
    """A row as one variant of one release has it: `batch` is of one GPU."""

    row: _PresetRow
    batch: float


def take_recipe(draft: Draft, flags: Flags) -> None:
    """Take what a preset sets, where neither a flag nor an override says it.

    `flags`: those of Bridge's performance scripts, by their long names. Up to v0.2 they name family
    and size, and no recipe. Without a precision they take BF16. Where no release is known it is the
    newest.
    """
    family = flags.get("--model_family_name") or flags.get("--model_name", "")
    name = (flags.get("--model_recipe_name") or f"{family}_{flags.get('--model_size', '')}").lower()
    if family or "--model_recipe_name" in flags:
        draft.by_knob[RECIPE] = Setting(name, draft.name)
        draft.by_knob[_VALUES_KNOWN] = Setting(False, draft.name)
    if not is_known_recipe(name):
        return

    def take(values: Values) -> None:
        draft.fill(settings(values, f"the recipe {name}"))

    take(models().get(name, {}))
    if PRECISION not in flags:
        take({"mixed_precision": "bf16_mixed"})
    newer = max(_FIRST + 1, min((draft.core or MAIN)[1] - _CORE_BEFORE_BRIDGE, _ONE_FOR_BOTH))
    release = newer if "--model_recipe_name" in flags else _FIRST
    by_precision = _presets_of(draft, name, flags, release)
    if by_precision is not None:
        take({PRECISIONS: tuple(by_precision)})
    preset = _chosen(draft, (by_precision or {}).get(precision_asked(flags), []))
    draft.by_knob[_VALUES_KNOWN] = Setting(preset is not None, draft.name)
    if preset is not None:
        for choice in _choices(preset.row.words):
            if not any(map(draft.has, choice)):
                take(choice)
        take(_sizes(draft, preset, release))
        take(_also(name, str(draft.by_knob["launcher.gpu"].value), release))
    take(_stages(draft, name))


def is_known_recipe(name: str) -> bool:
    """Whether it is one of Bridge's names: its model, or its presets, are in our tables."""
    return name in models() or name in _table().presets


def precisions_ever(name: str, gpu: str) -> frozenset[str]:
    """Precisions that have a preset of a recipe and a GPU in any release."""
    rows = [row for row in _table().presets.get(name, ()) if gpu in row.gpus]
    return frozenset(precision for row in rows for precision in row.precisions)


def precision_asked(flags: Flags) -> str:
    """The precision of a command by the scripts' own names."""
    return flags.get(PRECISION, "bf16").lower()


def _presets_of(
    draft: Draft, name: str, flags: Flags, release: int
) -> Mapping[str, list[_Preset]] | None:
    """Presets by precision, of the GPU, release and variant; None where the table may lack some."""
    variant = flags.get("--config_variant", "v2").lower()
    gpu, rows = draft.view.value("launcher.gpu"), _table().presets.get(name)
    is_other = (
        variant not in ("v1", "v2")
        or UNKNOWN in precision_asked(flags)
        or "--use_recipes" in flags
        or flags.get("--task", "pretrain") != "pretrain"
    )
    if (
        is_other
        or not isinstance(gpu, str)
        or rows is None
        or release < _table().read_since.get(gpu, 0)
    ):
        return None
    if release == _ONE_FOR_BOTH:
        variant = "v2"
    by_precision = dict[str, list[_Preset]]()
    for variant_of in ("v1", variant):  # which stands in where the variant has none
        presets = defaultdict[str, list[_Preset]](list)
        for row in rows:
            batch = getattr(row, variant_of).get(release)
            for precision in row.precisions if gpu in row.gpus and batch is not None else ():
                presets[precision].append(_Preset(row, batch))
        by_precision |= presets
    return {code: by_precision[code] for code in _CODES if code in by_precision}


def _chosen(draft: Draft, presets: Sequence[_Preset]) -> _Preset | None:
    """The preset of these ranks; else the one that the scripts scale: the largest.

    Source: scripts/performance/utils/utils.py, get_workload_base_config; since 0.6
    _select_default_recipe_name and _DEFAULT_GPU_COUNT_OVERRIDES.
    """
    world = draft.view.count("world_size")
    for preset in presets:
        if world in preset.row.ranks:
            return preset
    return max(presets, key=lambda preset: preset.row.ranks, default=None)


class ScriptPreset(NamedTuple):
    """A preset of the scripts: a model on a GPU. `gpus`: how many, None where it scales with
    them.
    """

    model: str
    gpu: str
    gpus: int | None
    precision: str
    sizes: Mapping[str, int]


def presets_of_scripts() -> Iterator[ScriptPreset]:
    """Every preset of a known model, by the words of `sizes` in the table."""
    for model, rows in _table().presets.items():
        for row in rows:
            sizes = {word: int(row.words.get(word, 1)) for word in _table().sizes}
            gpus = next(iter(row.ranks), None)
            for gpu in row.gpus:
                yield ScriptPreset(model, gpu, gpus, " ".join(row.precisions), sizes)


def _choices(words: Mapping[str, str]) -> Iterator[Values]:
    for choice in _table().choices.values():
        sets, own = choice.get("", {}), None
        for word, text in words.items():
            if word in choice:
                sets, own = choice[word], text or None
                break
        yield _values({knob: own if raw == "*" else raw for knob, raw in sets.items()})


def _sizes(draft: Draft, preset: _Preset, release: int) -> Values:
    """Its layout and batch. The batch grows with the GPUs; since 0.6 with the data-parallel
    ranks.
    """
    words, view = preset.row.words, draft.view
    own = {knob: int(words.get(word, 1)) for word, knob in _table().sizes.items()}
    run = {knob: view.count(knob) or own[knob] for knob in (TP, PP, CP)}
    grown = preset.batch * (view.count("world_size") or 0)
    if release >= _ONE_FOR_BOTH:
        grown *= prod(own[knob] for knob in run) / prod(run.values())
    sizes: dict[str, Value] = {**own}
    if own[VIRTUAL_STAGES] == 1:
        sizes[VIRTUAL_STAGES] = None
    if grown and grown == int(grown):
        sizes[GLOBAL_BATCH] = int(grown)
    return {**sizes, "sequence_parallel": run[TP] != 1}


def _also(name: str, gpu: str, release: int) -> Values:
    raws = dict[str, Raw]()
    for recipes, gpus, releases, values in _table().also:
        if (
            name in (recipes or (name,))
            and gpu in (gpus or (gpu,))
            and release in (releases or (release,))
        ):
            raws |= values
    return _values(raws)


def _stages(draft: Draft, name: str) -> Values:
    stages = (draft.view.count(PP) or 0) * (draft.view.count(VIRTUAL_STAGES) or 1)
    layout = _table().stages.get(name, {}).get(str(stages))
    if layout is None or VIRTUAL_STAGES not in draft.by_knob:
        return {}
    return {STAGE_LAYOUT: layout}


class _Table(TableRow):
    """The table as it stands."""

    presets: dict[str, tuple[_PresetRow, ...]]
    sizes: dict[str, str]
    choices: dict[str, dict[str, dict[str, Any]]]
    also: tuple[tuple[_Words, _Words, _Releases, dict[str, Any]], ...]
    read_since: dict[str, int]
    stages: dict[str, dict[str, str]]


def _releases(text: str) -> _Releases:
    releases = set[int]()
    for span in text.replace("0.", "").split():
        first, _, last = span.partition("-")
        releases.update(range(int(first), int(last or first) + 1))
    return _Releases(releases)


def _batches(text: str) -> _Batches:
    releases, _, batch = text.partition(" x ")
    return _Batches((release, float(batch)) for release in _releases(releases))


@cache
def _table() -> _Table:
    readers = {
        _Words: lambda text: _Words(text.split()),
        _Pairs: lambda text: _Pairs(word.partition("=")[::2] for word in text.split()),
        _Releases: _releases,
        _Batches: _batches,
    }
    return read_table("traces.settings", "harness_recipes.toml", _Table, readers)


def _values(raw: Mapping[str, Raw]) -> Values:
    return {knob: value_of(knobs()[knob], raw_value) for knob, raw_value in raw.items()}


@cache
def models() -> Mapping[str, Values]:
    """Knobs of each model by the name of its recipe."""
    table = read_table("traces.settings", "models.toml", dict[str, dict[str, dict[str, Any]]])
    families = {"": dict[str, Any](), **table["families"]}
    return {
        name: _values(families[row.pop("family")] | row) for name, row in table["models"].items()
    }
