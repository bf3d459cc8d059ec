"""What differs in configuration, environment, versions, and in what the traces show of them, by
name, and which way it went: more of it, less of it, or unknown.

Unknown is no difference: but for knobs, which one side may set and the other leave alone, a thing
is listed only where both sides have it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from math import prod
from operator import attrgetter
from typing import Any, Final

from heuristics.comparison.difference.subject import Subject, Value, differing, known_at, known_of
from heuristics.config.about import OPTIONS
from heuristics.result.compared import ComparedChange, Source
from heuristics.result.result import Result
from traces.frozen import frozen
from traces.limits import LITTLE, Limit
from traces.missing import OrMissing, known, of_known
from traces.patterns import compiled
from traces.sections.rank import Rank
from traces.sections.trace import Trace
from traces.texts import Texts

PACKAGES: Final = ("bridge", "container", "core", "cuda", "nccl", "python", "te", "torch")
"""What has a version: of the configuration first, then of the log, then as given."""

_VERSIONS: Final = frozenset(("container", *(f"{package}_version" for package in PACKAGES)))
_TRUST: Final[tuple[Source, ...]] = ("configuration", "log", "given")
ONCE: Final = Limit(1, "a step", "ours: what comes less often is a library's own, now and then")
EXCHANGES: Final = ("comm.ep_dispatch", "comm.ep_combine", "comm.ep_a2a", "comm.ep_control")
_FAMILY: Final = compiled(r"^(?:void )?([^<(#]+)")
"""A kernel's name without its template arguments and parameters."""

_OFF: Final = (None, False, 0, 0.0, (), "", "none", "None", "null", "off", "false", "0")
_BITS: Final = {"fp4": 4, "fp8": 8, "16": 16, "tf32": 19, "32": 32}
"""Bits of a precision by what its name has in it; the narrower first, as in `bf16_with_mxfp8`.

TF32 multiplies 19 of the 32 bits that it is stored in.
"""
_FULLER: Final = {"selective": 1, "full": 2}
_FRAMEWORK: Final = known_at("result.configuration.framework")
_TOLERANCES: Final = {
    "detected.graph_share_frac": LITTLE.value,
    "work.pageable_frac": LITTLE.value,
    "memory.allocator_calls_per_step": ONCE.value,
    "memory.offload_copies_per_step": ONCE.value,
}
"""By how much two numbers that traces show may differ and be the same."""


Pair = tuple[Value, Value]


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
    return ComparedChange(what, base, new, source, withheld, said_base, said_new, ())


def changed(base: Subject, new: Subject) -> tuple[ComparedChange, ...]:
    """Everything that differs, in the order configuration, versions, environment, trace; then by
    name.
    """
    settings = _sorted(_settings(base, new))
    listed = {change.what for change in settings}
    rest = _versions(base, new), _environment(base, new, listed), _observed(base.rank, new.rank)
    return (*settings, *chain(*map(_sorted, rest)))


def _sorted(changes: Iterator[ComparedChange]) -> list[ComparedChange]:
    return sorted(changes, key=attrgetter("what"))


def _settings(base: Subject, new: Subject) -> Iterator[ComparedChange]:
    """Knobs. What only the trace has is compared as it was observed."""
    configured = base.is_configured, new.is_configured
    if not all(configured):
        if any(configured):
            before, after = map(_FRAMEWORK, (base, new))
            yield difference("configuration", before, after, "configuration", *configured)
        return
    for knob in {*base.settings, *new.settings}:
        hidden = base.withholds(knob), new.withholds(knob)
        if {base.said(knob), new.said(knob)} <= {"trace", None} or all(hidden):
            continue
        set_by = knob in base.settings, knob in new.settings
        values = base.values.get(knob), new.values.get(knob)
        if not all(set_by) or any(hidden) or values[0] != values[1]:
            yield difference(knob, *values, "configuration", *set_by, any(hidden))


def _versions(base: Subject, new: Subject) -> Iterator[ComparedChange]:
    for package in PACKAGES:
        (was, by), (now, now_by) = _version(base.result, package), _version(new.result, package)
        if pair := differing(was, now):
            yield difference(f"version.{package}", *pair, max(by, now_by, key=_TRUST.index))


def _version(result: Result, package: str) -> tuple[str | None, Source]:
    """A version, and what tells it, the most trusted first."""
    named = getattr(known_of(result, "configuration.versions"), package, None)
    if isinstance(named, str):
        return named, "configuration"
    logged = (known_of(result, "log.versions") or {}).get(package)
    if logged is not None:
        return logged, "log"
    given = result.given.get(package if package == "container" else f"{package}_version")
    return of_known(str, given), "given"


def _environment(base: Subject, new: Subject, listed: set[str]) -> Iterator[ComparedChange]:
    for field in base.given.keys() & new.given.keys() - _VERSIONS - {"gpu"}:
        values: Pair | None = differing(base.given[field], new.given[field])
        if values and (field not in OPTIONS or listed.isdisjoint(OPTIONS[field].knobs)):
            yield difference(field, *values, "given")
    if gpus_differ := gpus(base, new):
        yield difference("gpu", *gpus_differ[0], gpus_differ[1])
    if base.trace and new.trace:
        yield from _recorders(base.trace, new.trace)


def gpus(base: Subject, new: Subject) -> tuple[Pair, Source] | None:
    """Both GPUs where they differ: by the traces, or as given where one of those does not tell."""
    pair: Pair = known(base.rank.gpu), known(new.rank.gpu)
    source: Source = "trace"
    if None in pair:
        pair, source = (base.given.get("gpu"), new.given.get("gpu")), "given"
    if differing(*pair):
        return pair, source
    return None


def _recorders(base: Trace, new: Trace) -> Iterator[ComparedChange]:
    """Versions and tables of another kind of recorder have nothing to be compared with."""
    if base.kind != new.kind:
        yield difference("recorder", base.kind, new.kind, "trace")
        return
    after = _recorder(new)
    for what, was in _recorder(base).items():
        pair: Pair | None = differing(was, after[what])
        if pair:
            yield difference(f"recorder.{what}", *pair, "trace")


def _recorder(trace: Trace) -> dict[str, Value]:
    return {
        "version": known(trace.exporter_version),
        "schema": known(trace.schema),
        "missing_tables": tuple(sorted(trace.missing_tables)),
    }


def _observed(base: Rank, new: Rank) -> Iterator[ComparedChange]:
    base_facts, new_facts = trace_facts(base), trace_facts(new)
    for what in base_facts.keys() & new_facts.keys():
        if base_facts[what].differs(new_facts[what]):
            yield difference(what, base_facts[what].value, new_facts[what].value, "trace")


@frozen
class TraceFact:
    """One thing a trace shows; numbers within `tolerance` of each other are the same."""

    value: Value
    tolerance: float = 0.0

    def differs(self, other: TraceFact) -> bool:
        """Whether the two are not the same; the same answer the other way round."""
        if isinstance(self.value, int | float) and isinstance(other.value, int | float):
            return abs(self.value - other.value) > self.tolerance
        return self.value != other.value


def trace_facts(rank: Rank) -> dict[str, TraceFact]:
    """By name (`detected.dispatcher`, `steps.source`): only what this trace has, never null."""
    detected, memory = rank.detected, rank.memory
    values: dict[str, Value] = {
        "detected.dispatcher": None if detected.dispatcher == "unknown" else detected.dispatcher,
        "detected.ep_overlap": known(detected.ep_overlap),
        "detected.training_step": known(detected.training_step),
        "detected.precision": _precision(rank),
        "detected.graph_share_frac": known(detected.graph_share_frac),
        "detected.recompute": _run_again(rank),
        "dispatcher.kernels": _exchange_kernels(rank),
        "memory.allocator_calls_per_step": _per_step(rank, memory.allocator_calls),
        "memory.offload_copies_per_step": _per_step(rank, memory.offload_copies),
        "work.pageable_frac": known_of(rank, "work.pageable_frac"),
        **_comm_blocks(rank),
        "steps.source": rank.steps.source if rank.steps.found else "none",
        "steps.dropped": tuple(sorted(step.reason for step in rank.steps.dropped)),
    }
    return {
        what: TraceFact(value, _TOLERANCES.get(what, 0.0))
        for what, value in values.items()
        if value is not None
    }


def _precision(rank: Rank) -> str | None:
    """What matrix work is known to run in, `bf16+fp8` for two; the one of all where no shares are
    known.
    """
    shares = rank.detected.precision_shares_frac
    main = sorted(name for name, frac in shares.items() if frac > LITTLE.value)
    return "+".join(main) or known(rank.detected.precision)


def _run_again(rank: Rank) -> Texts | None:
    """Modules that run again in the backward pass; None where that is unknown."""
    modules = known(rank.detected.recompute) or {}
    counts = {name: known(module.recomputed_count) for name, module in modules.items()}
    if {*counts.values()} <= {None}:
        return None
    return tuple(sorted(filter(counts.get, counts)))


def _exchange_kernels(rank: Rank) -> Texts | None:
    """Kernels that exchange tokens between experts, by name without arguments; None where there are
    none.
    """
    families = set[str]()
    for kernel in rank.kernel_table.rows:
        family = _FAMILY.match(kernel.name) if kernel.key in EXCHANGES else None
        if family:
            families.add(family[1].strip())
    return tuple(sorted(families)) or None


def _comm_blocks(rank: Rank) -> dict[str, int]:
    """Most blocks of one kernel of each kind of communication: the SMs that it may take."""
    blocks = defaultdict[str, int](int)
    for kernel in rank.kernel_table.rows:
        bucket, _, kind = kernel.key.partition(".")
        grid = known(kernel.grid)
        if bucket == "comm" and grid is not None:
            what = f"comm_blocks.{kind}"
            blocks[what] = max(blocks[what], prod(grid))
    return blocks


def _per_step(rank: Rank, total: OrMissing[int]) -> float | None:
    """A count over the used steps as one per step; None where there are no steps to count by."""
    count = known(total)
    if count is None or not rank.steps.found:
        return None
    return count / len(rank.lengths_ns)


def way(change: ComparedChange) -> int:
    """1 where the new side has more of it, -1 where less, 0 where that is unknown.

    Off (None, False, 0, nothing in a list, `none`) is less than on; numbers and lists are compared;
    of two precisions the narrower is more; full recompute is more than selective.
    """
    if change.withheld:
        return 0
    return went(change.base, change.new)


def went(base: Value, new: Value) -> int:
    """The way from one value to another, as `way` says it."""
    bits, new_bits = _bits(base), _bits(new)
    if bits is not None and new_bits is not None:
        return _order(bits, new_bits)
    if is_off(base) or is_off(new):
        return _order(not is_off(new), not is_off(base))
    if isinstance(base, int | float) and isinstance(new, int | float):
        return _order(new, base)
    if isinstance(base, tuple) and isinstance(new, tuple):
        return _order(frozenset(new), frozenset(base))
    return _order(_FULLER.get(str(new), 0), _FULLER.get(str(base), 0))


def _order(more: Any, less: Any) -> int:
    """1 where the first is more, or holds all of the other and more; -1 the other way round."""
    return int(more > less) - int(less > more)


def is_off(value: Value) -> bool:
    return any(value == off and type(value) is type(off) for off in _OFF)


def _bits(value: Value) -> int | None:
    if not isinstance(value, str):
        return None
    return next((bits for part, bits in _BITS.items() if part in value.lower()), None)


def numbers(version: Value) -> tuple[int, ...]:
    return tuple(map(int, compiled(r"\d+").findall(str(version))))
