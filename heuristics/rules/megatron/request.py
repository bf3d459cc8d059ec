"""What megatron-core is asked of a run: its settings, sections of Megatron-Bridge over them, legal
stand-ins.

A knob nobody said is unknown. Core's default in its place could be refused although the run is
fine, so where the file is not a whole command line of Megatron-LM, options take what MoE recipes
have, each of them named.

Source of the sections that Bridge writes into the model's configuration before it is built: v0.6.0,
src/megatron/bridge/training/mixed_precision.py (the registered recipes and
update_config_with_precision_overrides) and comm_overlap.py (CommOverlapConfig.setup).
"""

from collections.abc import Mapping
from math import lcm
from typing import Any, Final

from heuristics.config.versions import numbers
from heuristics.recipes import RECIPES
from heuristics.run.run import Run
from heuristics.words import say
from traces.frozen import frozen
from traces.settings.core_fields import core_fields
from traces.settings.effective import OFF_UNLESS_SAID, of_precision
from traces.settings.knobs import CP, EP, ETP, PP, TP, VIRTUAL_STAGES, Release, knobs, release
from traces.settings.settings import KnobView, Settings, Value, Values
from traces.texts import Texts
from traces.toml_tables import written

_TABLE: Final[Mapping[str, Any]] = written("heuristics.rules.megatron", "request.toml")


def count(fields: Values, name: str, default: int = 1) -> int:
    """A size that is said, else `default`."""
    value = fields.get(name)
    if isinstance(value, int):
        return value
    return default


def assumed_options(fields: Values, run: Run) -> Values:
    """Options nobody said; none for a command line of Megatron-LM, whose defaults are core's."""
    if run.settings.framework == "megatron_lm":
        return {}
    is_known = {"bf16", "fp16"} & set(fields) or run.precision in ("fp32", "tf32")
    options = {
        **_TABLE["of_all_recipes"],
        **(_TABLE["of_moe_recipes"] if _is_moe(fields, run) else {}),
        **({} if is_known else {"bf16": True}),
    }
    return _unsaid(options, fields)


def _unsaid(values: Values, fields: Values) -> Values:
    return {name: value for name, value in values.items() if name not in fields}


def derived(fields: Values) -> Values:
    """What both frameworks work out themselves from other knobs before they build the
    configuration.
    """
    dtype = next((name for name in ("bf16", "fp16") if fields.get(name) is True), "fp32")
    return {
        "params_dtype": dtype,
        **({"pipeline_dtype": fields.get("params_dtype", dtype)} if count(fields, PP) > 1 else {}),
        **({"batch_p2p_comm": False} if fields.get("overlap_p2p_comm") is True else {}),
        **({"activation_func": "silu"} if fields.get("gated_linear_unit") is True else {}),
    }


def assumed_sizes(fields: Values, run: Run) -> Values:
    """Sizes nobody said, small and legal for the parallel layout that is."""
    heads = lcm(count(fields, TP), count(fields, "num_query_groups"))
    head_dim = count(fields, "kv_channels", RECIPES["head_size"].whole)
    stages = count(fields, PP) * count(fields, VIRTUAL_STAGES)
    multiple = lcm(count(fields, EP), count(fields, "moe_router_num_groups"))
    experts = multiple * -(-count(fields, "moe_router_topk", 2) // multiple)
    sizes = {
        "num_attention_heads": heads,
        "hidden_size": count(fields, "num_attention_heads", heads) * head_dim,
        "num_layers": stages * (1 + count(fields, "cpu_offloading_num_layers", 0)),
        **({"num_moe_experts": experts} if _is_moe(fields, run) else {}),
    }
    return _unsaid(sizes, fields)


def smallest_world(fields: Values) -> int:
    """The fewest ranks that hold both meshes: TP x CP x PP for attention, ETP x EP x PP for
    experts.
    """
    tensor = count(fields, TP)
    experts = count(fields, ETP, tensor) * count(fields, EP)
    return count(fields, PP) * lcm(tensor * count(fields, CP), experts)


def _is_moe(fields: Values, run: Run) -> bool:
    if "num_moe_experts" in fields:
        return fields["num_moe_experts"] is not None
    return run.observed.moe is True or count(fields, EP) > 1


def laid_over(values: Values, settings: Settings) -> dict[str, Value]:
    """The model's fields as Bridge leaves them: its precision and overlap sections win over the
    model's.

    All of a recipe: a format that it leaves off is off, whatever the model says.
    """
    recipe = of_precision(settings).items()
    core = {knob: value for knob, value in recipe if knob in core_fields()}
    return {**values, **core, **_of_overlap(settings)}


def _of_overlap(settings: Settings) -> Values:
    section = "comm_overlap."
    is_there = bool(KnobView(settings).group(section))
    fields: dict[str, Value] = dict.fromkeys(OFF_UNLESS_SAID, False) if is_there else {}
    for field in _TABLE["overlap"]:
        value = settings.value(f"{section}{field}")
        if value is not None:
            fields[field] = value
    return fields


@frozen
class Request:
    """One configuration to build.

    `fields`: of TransformerConfig (with `multi_latent_attention`: of MLATransformerConfig), by
    their newest names. `world_size`: ranks. `te_version`: Transformer Engine of the run, None where
    unknown; `core_version`: Megatron-Core of the run. `flex_package`: DeepEP or HybridEP can be
    imported there. `assumed_sizes`, `assumed_options`: what nobody said and was filled in, by name.
    """

    fields: Values
    world_size: int
    te_version: str | None = None
    core_version: str | None = None
    flex_package: bool = False
    assumed_sizes: Texts = ()
    assumed_options: Texts = ()


@frozen
class NotAsked:
    """Why megatron-core is not asked, and what to give so that it can be."""

    because: str
    cure: str


def request_of(run: Run) -> Request | NotAsked:
    """What to ask of a run's configuration; `NotAsked` where too little, or no size, is known."""
    values = _fields_said(run)
    if not values:
        return NotAsked(say("megatron.nothing-known"), "--config")
    if refused := _no_sizes(values, run):
        return refused
    values |= _virtual_stages(values, run)
    if "num_layers" not in values and any(map(values.get, _TABLE["cuts_layers"])):
        return NotAsked(say("megatron.layers-unknown"), "num_layers")
    options = assumed_options(values, run)
    fields = {**options, **values}
    fields = {**derived(fields), **fields}
    sizes = assumed_sizes(fields, run)
    world = run.config.value("world_size")
    return Request(
        fields={**fields, **sizes},
        world_size=world if isinstance(world, int) else smallest_world(fields),
        te_version=_version(run.config.version_text("te")),
        core_version=_version(run.config.core_text),
        flex_package=run.config.flex_package is True,
        assumed_sizes=(*sizes, *(() if isinstance(world, int) else ("world_size",))),
        assumed_options=tuple(options),
    )


def _fields_said(run: Run) -> dict[str, Value]:
    """Core's fields that somebody said, as they reach core."""
    settings = run.checked.settings
    core = release(run.config.core_text)
    own = {
        knob: setting.value
        for knob, setting in settings.by_knob.items()
        if knob in core_fields() and not _is_off_by_release(knob, setting.value, core)
    }
    fields = laid_over(own, settings)
    for name in _TABLE["lists"]:
        if isinstance(value := fields.get(name), str):
            fields[name] = tuple(value.replace(",", " ").split())
    if any(map(fields.get, _TABLE["tells_mla"])):
        fields.setdefault("multi_latent_attention", True)
    if fields.get("multi_latent_attention") is not True:
        fields = {name: value for name, value in fields.items() if name not in core_fields().of_mla}
    return fields


def _is_off_by_release(knob: str, value: Value, core: Release | None) -> bool:
    """Whether a setting is off because the run's release does not have it yet: to another release
    that says nothing.
    """
    row = knobs().get(knob)
    if not row or core is None or (value is not None and value is not False):
        return False
    return core < row.since


def _no_sizes(values: Values, run: Run) -> NotAsked | None:
    """A size that is none cannot be laid out, and what is to be built around it would be
    guessed.
    """
    for name in (*_TABLE["sizes"], *_TABLE["sizes_or_null"]):
        if name not in values and not run.config.known(name):
            continue
        value = values.get(name, run.config.value(name))
        least = 0 if name in _TABLE["zero_too"] else 1
        if value is None and name in _TABLE["sizes_or_null"]:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            return NotAsked(say("megatron.no-size", name=name, least=least), name)
    return None


def _virtual_stages(values: Values, run: Run) -> Values:
    """Megatron-LM counts virtual stages by the layers in each (arguments.py); one stage is none."""
    layers_of_stage = run.config.value("num_layers_per_virtual_pipeline_stage")
    layers = values.get("num_layers")
    if (
        values.get(VIRTUAL_STAGES) is not None
        or not isinstance(layers_of_stage, int)
        or not isinstance(layers, int)
    ):
        return {}
    stages = layers // count(values, PP) // layers_of_stage
    return {VIRTUAL_STAGES: stages if stages > 1 else None}


def _version(text: str | None) -> str | None:
    """Numbers alone, so that nothing else of what was typed or logged is passed on."""
    parts = numbers(text or "")
    if any(parts):
        return ".".join(map(str, parts))
    return None
