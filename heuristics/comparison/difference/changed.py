"""What differs in configuration, environment, versions, and in what the traces show of them.

Unknown is no difference: but for knobs, which one side may set and the other leave alone, a thing is listed
only where both sides tell it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from heuristics.comparison.difference.shown import trace_facts
from traces.results.result import Configuration, Rank, Result, Trace, Value

PACKAGES: Final = ("bridge", "container", "core", "cuda", "nccl", "python", "te", "torch")
"""What has a version: of the configuration first, then of the log, then as given."""

FIELD_KNOBS: Final[Mapping[str, tuple[str, ...]]] = {
    "ep": ("expert_model_parallel_size",),
    "etp": ("expert_tensor_parallel_size",),
    "tp": ("tensor_model_parallel_size",),
    "cp": ("context_parallel_size",),
    "pp": ("pipeline_model_parallel_size",),
    "vpp": (
        "virtual_pipeline_model_parallel_size",
        "pipeline_model_parallel_layout",
        "pipeline_model_parallel_size",
    ),
    "pp_layout": ("pipeline_model_parallel_layout",),
    "precision": (
        *("bf16", "fp16", "fp8", "fp4", "fp8_recipe", "fp4_recipe", "mixed_precision"),
        *("mixed_precision.fp8", "mixed_precision.fp8_recipe", "mixed_precision.fp4"),
    ),
    "routing": (
        "moe_expert_capacity_factor",
        "moe_pad_expert_input_to_capacity",
        "moe_router_force_load_balancing",
    ),
    "graph_impl": ("cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"),
    "graph_modules": ("cuda_graph_modules",),
    "packed_sequences": ("sft", "dataset.enable_offline_packing", "dataset.enable_in_batch_packing"),
    "router_padding": ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8"),
    "te_op_fuser": ("use_transformer_engine_op_fuser",),
    "cpu_bound_to_numa": ("launcher.numa_binding",),
    "family": ("num_layers", "hidden_size", "num_moe_experts", "moe_router_topk"),
}
"""A field of `given` and the knobs that tell it: where one of them is listed, the field would come twice."""

_VERSIONS: Final = frozenset(("container", *(f"{package}_version" for package in PACKAGES)))
_FROM_TRACE: Final = "trace"
_TRUST: Final = ("configuration", "log", "given")


@dataclass(frozen=True, slots=True)
class Changed:
    """One thing that differs. `what` is a knob, `version.nccl`, `gpu`, or `detected.dispatcher` and the like.

    `base`, `new`: None where that side says nothing of it (`said_base`, `said_new` are then False) or says
    null. `source`: `configuration`, `log`, `given`, `trace`. A withheld text differs without being shown.
    """

    what: str
    base: Value
    new: Value
    source: str
    said_base: bool = True
    said_new: bool = True
    withheld: bool = False


def changed(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> tuple[Changed, ...]:
    """Everything that differs, in the order configuration, versions, environment, trace; then by name."""
    settings = _sorted(_settings(base.configuration, new.configuration))
    listed = {one.what for one in settings}
    return (
        *settings,
        *_sorted(_versions(base, new)),
        *_sorted(_environment(base, new, base_rank, new_rank, listed)),
        *_sorted(_shown(base_rank, new_rank)),
    )


def _sorted(found: Iterator[Changed]) -> tuple[Changed, ...]:
    return tuple(sorted(found, key=lambda one: one.what))


def _settings(base: Configuration | None, new: Configuration | None) -> Iterator[Changed]:
    """Knobs. What only the trace says is compared as the trace shows it."""
    if base is None or new is None:
        if base is not new:
            told = base.framework if base else None, new.framework if new else None
            yield Changed("configuration", *told, "configuration", base is not None, new is not None)
        return
    for knob in {*base.said, *new.said}:
        said = [one.said[knob] for one in (base, new) if knob in one.said]
        hidden = knob in base.withheld, knob in new.withheld
        if all(one == _FROM_TRACE for one in said) or all(hidden):
            continue
        values = base.settings.get(knob), new.settings.get(knob)
        if len(said) == 1 or any(hidden) or values[0] != values[1]:
            yield Changed(knob, *values, "configuration", knob in base.said, knob in new.said, any(hidden))


def _versions(base: Result, new: Result) -> Iterator[Changed]:
    """Versions that both tell; by the less trusted of the two sources."""
    for package in PACKAGES:
        one, other = _version(base, package), _version(new, package)
        if one and other and one[0] != other[0]:
            source = max(one[1], other[1], key=_TRUST.index)
            yield Changed(f"version.{package}", one[0], other[0], source)


def _version(result: Result, package: str) -> tuple[str, str] | None:
    """A version and its source."""
    given = result.given.get(package if package == "container" else f"{package}_version")
    told = (
        result.configuration.versions.get(package) if result.configuration else None,
        result.log.versions.get(package) if result.log else None,
        str(given) if given is not None else None,
    )
    found = zip(told, _TRUST, strict=True)
    return next(((version, source) for version, source in found if version is not None), None)


def _environment(
    base: Result, new: Result, base_rank: Rank, new_rank: Rank, listed: set[str]
) -> Iterator[Changed]:
    """What was given beside knobs, the GPU, and what recorded it."""
    for field in base.given.keys() & new.given.keys() - _VERSIONS - {"gpu"}:
        values = base.given[field], new.given[field]
        if values[0] != values[1] and listed.isdisjoint(FIELD_KNOBS.get(field, ())):
            yield Changed(field, *values, "given")
    gpus: tuple[Value, Value] = base_rank.gpu, new_rank.gpu
    source = "trace"
    if None in gpus:
        gpus, source = (base.given.get("gpu"), new.given.get("gpu")), "given"
    if None not in gpus and gpus[0] != gpus[1]:
        yield Changed("gpu", *gpus, source)
    traces = _trace(base, base_rank), _trace(new, new_rank)
    if traces[0] and traces[1]:
        yield from _recorders(traces[0], traces[1])


def _trace(result: Result, rank: Rank) -> Trace | None:
    return next((one for one in result.traces if one.name == rank.trace), next(iter(result.traces), None))


def _recorders(base: Trace, new: Trace) -> Iterator[Changed]:
    """Versions and tables of another kind of recorder have nothing to be compared with."""
    if base.kind != new.kind:
        yield Changed("recorder", base.kind, new.kind, "trace")
        return
    for what, one, other in (
        ("recorder.version", base.exporter_version, new.exporter_version),
        ("recorder.schema", base.schema, new.schema),
    ):
        if one is not None and other is not None and one != other:
            yield Changed(what, one, other, "trace")
    missing = tuple(sorted(base.missing_tables)), tuple(sorted(new.missing_tables))
    if missing[0] != missing[1]:
        yield Changed("recorder.missing_tables", *missing, "trace")


def _shown(base: Rank, new: Rank) -> Iterator[Changed]:
    """What both traces show."""
    one, other = trace_facts(base), trace_facts(new)
    for what in one.keys() & other.keys():
        if one[what].differs(other[what]):
            yield Changed(what, one[what].value, other[what].value, "trace")
