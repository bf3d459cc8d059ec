"""What differs in configuration, environment, versions, and in what the traces show of them, by name.

Unknown is no difference: but for knobs, which one side may set and the other leave alone, a thing is listed
only where both sides have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from msgspec import structs

from heuristics.config.about import OPTIONS
from heuristics.result.compared import ComparedChange, Source
from heuristics.result.configured import Configuration
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.trace import Trace

Value = bool | int | float | str | None | tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by knob. `sources`: where each is set; one whose value is withheld is in `withheld` only."""

    values: Mapping[str, Value]
    sources: Mapping[str, str]
    withheld: frozenset[str]


NONE: Final = Settings({}, {}, frozenset())


def settings_of(result: Result) -> Settings:
    """The settings of its configuration; none without one."""
    configuration = known(result.configuration)
    if configuration is None:
        return NONE
    return Settings(
        values={one.knob: plain(one.value) for one in configuration.settings if not one.withheld},
        sources={one.knob: one.said for one in configuration.settings},
        withheld=frozenset(one.knob for one in configuration.settings if one.withheld),
    )


def given_of(result: Result) -> dict[str, Value]:
    """What was given of the run, by field of `Given`."""
    return {field: plain(value) for field, value in result.given.items()}


def versions_of(configuration: Configuration) -> dict[str, str]:
    """The versions that a configuration names, by package."""
    named = structs.asdict(configuration.versions)
    return {package: version for package, version in named.items() if isinstance(version, str)}


def trace_of(result: Result, rank: Rank) -> Trace | None:
    """The trace that a rank is of."""
    return next((one for one in result.traces if one.name == rank.trace), next(iter(result.traces), None))


def plain(value: Any) -> Value:
    """A value in which lists, as JSON has them, are tuples."""
    return tuple(plain(one) for one in value) if isinstance(value, list | tuple) else value


PACKAGES: Final = ("bridge", "container", "core", "cuda", "nccl", "python", "te", "torch")
"""What has a version: of the configuration first, then of the log, then as given."""

_VERSIONS: Final = frozenset(("container", *(f"{package}_version" for package in PACKAGES)))
_FROM_TRACE: Final = "trace"
_TRUST: Final[tuple[Source, ...]] = ("configuration", "log", "given")
MOVED: Final = Limit(
    0.01, "of kernel work", "ours: a share of work moves with its times; a graph more or less moves more"
)
CALLS: Final = Limit(1, "a step", "ours: less than one a step is by chance")
_EXCHANGE: Final = ("comm.ep_dispatch", "comm.ep_combine", "comm.ep_a2a", "comm.ep_control")
_FAMILY: Final = re.compile(r"^(?:void )?([^<(#]+)")
"""A kernel's name without its template arguments and parameters."""


def difference(
    what: str,
    base: Value,
    new: Value,
    source: Source,
    said_base: bool = True,
    said_new: bool = True,
    withheld: bool = False,
) -> ComparedChange:
    """One thing that differs; what it can explain is not looked at yet."""
    return ComparedChange(what, base, new, source, said_base, said_new, withheld, ())


def changed(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> tuple[ComparedChange, ...]:
    """Everything that differs, in the order configuration, versions, environment, trace; then by name."""
    settings = _sorted(_settings(base, new))
    listed = {one.what for one in settings}
    return (
        *settings,
        *_sorted(_versions(base, new)),
        *_sorted(_environment(base, new, base_rank, new_rank, listed)),
        *_sorted(_observed(base_rank, new_rank)),
    )


def _sorted(found: Iterator[ComparedChange]) -> tuple[ComparedChange, ...]:
    return tuple(sorted(found, key=lambda one: one.what))


def _settings(base: Result, new: Result) -> Iterator[ComparedChange]:
    """Knobs. What only the trace has is compared as it was observed."""
    files = known(base.configuration), known(new.configuration)
    if files[0] is None or files[1] is None:
        if files[0] is not files[1]:
            names = [known(one.framework) if one else None for one in files]
            there = files[0] is not None, files[1] is not None
            yield difference("configuration", names[0], names[1], "configuration", *there)
        return
    one_side, other = settings_of(base), settings_of(new)
    for knob in {*one_side.sources, *other.sources}:
        sources = [one.sources[knob] for one in (one_side, other) if knob in one.sources]
        hidden = knob in one_side.withheld, knob in other.withheld
        if all(one == _FROM_TRACE for one in sources) or all(hidden):
            continue
        values = one_side.values.get(knob), other.values.get(knob)
        if len(sources) == 1 or any(hidden) or values[0] != values[1]:
            set_by = knob in one_side.sources, knob in other.sources
            yield difference(knob, *values, "configuration", *set_by, any(hidden))


def _versions(base: Result, new: Result) -> Iterator[ComparedChange]:
    """Versions that both have; by the less trusted of the two sources."""
    for package in PACKAGES:
        one, other = _version(base, package), _version(new, package)
        if one and other and one[0] != other[0]:
            source = max(one[1], other[1], key=_TRUST.index)
            yield difference(f"version.{package}", one[0], other[0], source)


def _version(result: Result, package: str) -> tuple[str, Source] | None:
    """A version and its source."""
    given = result.given.get(package if package == "container" else f"{package}_version")
    configuration, log = known(result.configuration), known(result.log)
    found = (
        versions_of(configuration).get(package) if configuration else None,
        log.versions.get(package) if log else None,
        str(given) if given is not None else None,
    )
    pairs = zip(found, _TRUST, strict=True)
    return next(((version, source) for version, source in pairs if version is not None), None)


def _environment(
    base: Result, new: Result, base_rank: Rank, new_rank: Rank, listed: set[str]
) -> Iterator[ComparedChange]:
    """What was given beside knobs, the GPU, and what recorded it."""
    given = given_of(base), given_of(new)
    for field in given[0].keys() & given[1].keys() - _VERSIONS - {"gpu"}:
        values = given[0][field], given[1][field]
        if values[0] != values[1] and (field not in OPTIONS or listed.isdisjoint(OPTIONS[field].knobs)):
            yield difference(field, *values, "given")
    gpus: tuple[Value, Value] = known(base_rank.gpu), known(new_rank.gpu)
    source: Source = "trace"
    if None in gpus:
        gpus, source = (given[0].get("gpu"), given[1].get("gpu")), "given"
    if None not in gpus and gpus[0] != gpus[1]:
        yield difference("gpu", *gpus, source)
    traces = trace_of(base, base_rank), trace_of(new, new_rank)
    if traces[0] and traces[1]:
        yield from _recorders(traces[0], traces[1])


def _recorders(base: Trace, new: Trace) -> Iterator[ComparedChange]:
    """Versions and tables of another kind of recorder have nothing to be compared with."""
    if base.kind != new.kind:
        yield difference("recorder", base.kind, new.kind, "trace")
        return
    for what, one, other in (
        ("recorder.version", known(base.exporter_version), known(new.exporter_version)),
        ("recorder.schema", known(base.schema), known(new.schema)),
    ):
        if one is not None and other is not None and one != other:
            yield difference(what, one, other, "trace")
    missing = tuple(sorted(base.missing_tables)), tuple(sorted(new.missing_tables))
    if missing[0] != missing[1]:
        yield difference("recorder.missing_tables", *missing, "trace")


def _observed(base: Rank, new: Rank) -> Iterator[ComparedChange]:
    """What was observed in both traces."""
    one, other = trace_facts(base), trace_facts(new)
    for what in one.keys() & other.keys():
        if one[what].differs(other[what]):
            yield difference(what, one[what].value, other[what].value, "trace")


@dataclass(frozen=True, slots=True)
class Observed:
    """One thing a trace shows; numbers within `tolerance` of each other are the same."""

    value: Value
    tolerance: float = 0.0

    def differs(self, other: Observed) -> bool:
        """Whether the two are not the same; the same answer the other way round."""
        if isinstance(self.value, int | float) and isinstance(other.value, int | float):
            return abs(self.value - other.value) > self.tolerance
        return self.value != other.value


def trace_facts(rank: Rank) -> dict[str, Observed]:
    """By name (`detected.dispatcher`, `steps.source`): only what this trace has, never null."""
    return {what: one for what, one in _facts(rank) if one.value is not None}


def _facts(rank: Rank) -> Iterator[tuple[str, Observed]]:
    detected = rank.detected
    yield "detected.dispatcher", Observed(detected.dispatcher)
    yield "detected.ep_overlap", Observed(known(detected.ep_overlap))
    yield "detected.training_step", Observed(known(detected.training_step))
    yield "detected.precision", Observed(_precision(rank))
    yield "detected.graph_share_frac", Observed(known(detected.graph_share_frac), MOVED.value)
    yield "detected.recompute", Observed(_run_again(rank))
    yield "dispatcher.kernels", Observed(_exchange_kernels(rank))
    yield (
        "memory.allocator_calls_per_step",
        Observed(_per_step(rank, known(rank.memory.allocator_calls)), CALLS.value),
    )
    yield (
        "memory.offload_copies_per_step",
        Observed(_per_step(rank, known(rank.memory.offload_copies)), CALLS.value),
    )
    for kind, blocks in _comm_blocks(rank).items():
        yield f"comm_blocks.{kind}", Observed(blocks)
    yield "steps.source", Observed(rank.steps.source if rank.steps.found else "none")
    yield "steps.dropped", Observed(tuple(sorted(one.reason for one in rank.steps.dropped)))


def _precision(rank: Rank) -> str | None:
    """What matrix work is known to run in, `bf16+fp8` for two; the one of all where no shares are known."""
    shares = rank.detected.precision_shares_frac
    main = sorted(name for name, frac in shares.items() if frac > MOVED.value)
    return "+".join(main) or known(rank.detected.precision)


def _run_again(rank: Rank) -> tuple[str, ...] | None:
    """Modules that run again in the backward pass; None where that is unknown."""
    modules = known(rank.detected.recompute)
    if modules is None:
        return None
    counts = {name: known(one.recomputed_count) for name, one in modules.items()}
    if all(count is None for count in counts.values()):
        return None
    return tuple(sorted(name for name, count in counts.items() if count))


def _exchange_kernels(rank: Rank) -> tuple[str, ...] | None:
    """Kernels that exchange tokens between experts, by name without arguments; None where there are none."""
    names = {one.name for one in rank.kernel_table.rows if one.key in _EXCHANGE}
    found = {match[1].strip() for name in names if (match := _FAMILY.match(name))}
    return tuple(sorted(found)) or None


def _comm_blocks(rank: Rank) -> dict[str, int]:
    """Most blocks of one kernel of each kind of communication: the SMs that it may take."""
    blocks: dict[str, int] = {}
    for kernel in rank.kernel_table.rows:
        bucket, _, kind = kernel.key.partition(".")
        grid = known(kernel.grid)
        if bucket == "comm" and grid is not None:
            blocks[kind] = max(blocks.get(kind, 0), prod(grid))
    return blocks


def _per_step(rank: Rank, count: int | None) -> float | None:
    """A count over the used steps as one per step; None where there are no steps to count by."""
    return None if count is None or not rank.steps.found else count / len(rank.lengths_ns)
