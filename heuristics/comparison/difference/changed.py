"""What differs in configuration, environment, versions, and in what the traces show of them.

Unknown is no difference: but for knobs, which one side may set and the other leave alone, a thing is listed
only where both sides have it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from heuristics.comparison.configured import Value, given_of, settings_of, trace_of, versions_of
from heuristics.comparison.difference.observed import trace_facts
from heuristics.config.options import OPTIONS
from heuristics.result.compared import Source
from heuristics.result.result import Result
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.trace import Trace

PACKAGES: Final = ("bridge", "container", "core", "cuda", "nccl", "python", "te", "torch")
"""What has a version: of the configuration first, then of the log, then as given."""

_VERSIONS: Final = frozenset(("container", *(f"{package}_version" for package in PACKAGES)))
_FROM_TRACE: Final = "trace"
_TRUST: Final[tuple[Source, ...]] = ("configuration", "log", "given")


@dataclass(frozen=True, slots=True)
class Changed:
    """One thing that differs. `what` is a knob, `version.nccl`, `gpu`, or `detected.dispatcher` and the like.

    `base`, `new`: None where that side does not set it (`said_base`, `said_new` are then False) or sets
    null. `source`: `configuration`, `log`, `given`, `trace`. A withheld text differs without being shown.
    """

    what: str
    base: Value
    new: Value
    source: Source
    said_base: bool = True
    said_new: bool = True
    withheld: bool = False


def changed(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> tuple[Changed, ...]:
    """Everything that differs, in the order configuration, versions, environment, trace; then by name."""
    settings = _sorted(_settings(base, new))
    listed = {one.what for one in settings}
    return (
        *settings,
        *_sorted(_versions(base, new)),
        *_sorted(_environment(base, new, base_rank, new_rank, listed)),
        *_sorted(_observed(base_rank, new_rank)),
    )


def _sorted(found: Iterator[Changed]) -> tuple[Changed, ...]:
    return tuple(sorted(found, key=lambda one: one.what))


def _settings(base: Result, new: Result) -> Iterator[Changed]:
    """Knobs. What only the trace has is compared as it was observed."""
    files = known(base.configuration), known(new.configuration)
    if files[0] is None or files[1] is None:
        if files[0] is not files[1]:
            names = [known(one.framework) if one else None for one in files]
            there = files[0] is not None, files[1] is not None
            yield Changed("configuration", names[0], names[1], "configuration", *there)
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
            yield Changed(knob, *values, "configuration", *set_by, any(hidden))


def _versions(base: Result, new: Result) -> Iterator[Changed]:
    """Versions that both have; by the less trusted of the two sources."""
    for package in PACKAGES:
        one, other = _version(base, package), _version(new, package)
        if one and other and one[0] != other[0]:
            source = max(one[1], other[1], key=_TRUST.index)
            yield Changed(f"version.{package}", one[0], other[0], source)


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
) -> Iterator[Changed]:
    """What was given beside knobs, the GPU, and what recorded it."""
    given = given_of(base), given_of(new)
    for field in given[0].keys() & given[1].keys() - _VERSIONS - {"gpu"}:
        values = given[0][field], given[1][field]
        if values[0] != values[1] and (field not in OPTIONS or listed.isdisjoint(OPTIONS[field].knobs)):
            yield Changed(field, *values, "given")
    gpus: tuple[Value, Value] = known(base_rank.gpu), known(new_rank.gpu)
    source: Source = "trace"
    if None in gpus:
        gpus, source = (given[0].get("gpu"), given[1].get("gpu")), "given"
    if None not in gpus and gpus[0] != gpus[1]:
        yield Changed("gpu", *gpus, source)
    traces = trace_of(base, base_rank), trace_of(new, new_rank)
    if traces[0] and traces[1]:
        yield from _recorders(traces[0], traces[1])


def _recorders(base: Trace, new: Trace) -> Iterator[Changed]:
    """Versions and tables of another kind of recorder have nothing to be compared with."""
    if base.kind != new.kind:
        yield Changed("recorder", base.kind, new.kind, "trace")
        return
    for what, one, other in (
        ("recorder.version", known(base.exporter_version), known(new.exporter_version)),
        ("recorder.schema", known(base.schema), known(new.schema)),
    ):
        if one is not None and other is not None and one != other:
            yield Changed(what, one, other, "trace")
    missing = tuple(sorted(base.missing_tables)), tuple(sorted(new.missing_tables))
    if missing[0] != missing[1]:
        yield Changed("recorder.missing_tables", *missing, "trace")


def _observed(base: Rank, new: Rank) -> Iterator[Changed]:
    """What was observed in both traces."""
    one, other = trace_facts(base), trace_facts(new)
    for what in one.keys() & other.keys():
        if one[what].differs(other[what]):
            yield Changed(what, one[what].value, other[what].value, "trace")
