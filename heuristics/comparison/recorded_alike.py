"""How both runs were recorded: what only one recording holds limits what can be concluded."""

from collections.abc import Iterator
from typing import Final

from heuristics.comparison.difference.changed import trace_of
from heuristics.result.compared import Difference
from heuristics.result.result import Result
from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank
from traces.sections.trace import Trace
from traces.spelling import percent

PERTURBED: Final = Limit(
    0.05, "of a step", "ours: a difference of 5 % is worth a post-mortem, and the profiler must not make it"
)
_RECORDERS: Final = {"nsys-sqlite": "nsys", "kineto": "PyTorch profiler"}
_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA calls",
    "NVTX_EVENTS": "NVTX ranges",
    "cuda_runtime": "CUDA calls",
    "user_annotation": "annotations",
    "cpu_op": "operators",
}
"""Tables that something is known by alone; the rest is absent where nothing happened to be recorded in it."""


def recorded_differences(base: Result, new: Result, base_rank: Rank, new_rank: Rank) -> Iterator[Difference]:
    """Recorder, its version, what was recorded, and how much it slowed the run."""
    one, other = trace_of(base, base_rank), trace_of(new, new_rank)
    if one and other:
        yield from _recorders(one, other)
        yield from _perturbed(one, other)
    yield from _of_one_side(base_rank, new_rank)
    if base.tool.version != new.tool.version:
        because = "What is measured may be defined otherwise. Make both results with one version."
        yield _limits("moe-diag version", base.tool.version, new.tool.version, because)


def _recorders(base: Trace, new: Trace) -> Iterator[Difference]:
    if base.kind != new.kind:
        pair = [_RECORDERS.get(one.kind, one.kind) for one in (base, new)]
        because = (
            "Recorders slow a run differently and spell kernels differently: the host's rows most of all."
        )
        yield _limits("recorder", pair[0], pair[1], because)
        return
    releases = [_release(known(one.exporter_version)) for one in (base, new)]
    if all(releases) and releases[0] != releases[1]:
        because = "Its overhead on the host may differ between releases."
        yield _limits("recorder version", releases[0], releases[1], because)
    elif (one := known(base.schema)) and (other := known(new.schema)) and one != other:
        yield _limits("schema", one, other, "One export may hold what the other has no column for.")
    tables = [{_TABLES[name] for name in one.missing_tables if name in _TABLES} for one in (base, new)]
    if tables[0] != tables[1]:
        pair = [", ".join(sorted(mine)) or "nothing" for mine in tables]
        yield _limits("not recorded", pair[0], pair[1], "Only one side has what rests on these.")


def _release(version: str | None) -> str:
    """Year and release of `2026.2.1.210`: builds of one release do not matter."""
    return ".".join((version or "").split(".")[:2])


def _perturbed(base: Trace, new: Trace) -> Iterator[Difference]:
    one, other = (known(each.capture.perturbation_frac) for each in (base, new))
    if one is not None and other is not None and abs(one - other) > PERTURBED.value:
        because = "The profiler slowed one run more. The size is to come from both logs."
        yield _limits("slowed by the profiler", percent(one), percent(other), because)


def _of_one_side(base: Rank, new: Rank) -> Iterator[Difference]:
    """What the document has on one side only."""
    ledgers = known(base.ledger), known(new.ledger)
    accounts = known(base.absent_ns), known(new.absent_ns)
    if (ledgers[0] is None) != (ledgers[1] is None):
        because = "Whole graph replays hide their kernels. Busy time can be compared, classes cannot."
        yield _limits("kernels", *_sides(*ledgers), because)
    elif whole_replays(base) != whole_replays(new):
        because = (
            "What runs inside whole graph replays has no class. Record both with --cuda-graph-trace=node."
        )
        pair = ["whole replays" if whole_replays(one) else "single kernels" for one in (base, new)]
        yield _limits("graph capture", pair[0], pair[1], because)
    if (accounts[0] is None) != (accounts[1] is None):
        because = (
            "One recording lacks what host rows rest on (CUDA calls, or one clock). Idle time is one row."
        )
        yield _limits("why no compute ran", *_sides(*accounts), because)


def whole_replays(rank: Rank) -> bool:
    """Whether CUDA graphs were recorded as whole replays, without their kernels."""
    ledger = known(rank.ledger)
    return ledger is None or any(row.row == "compute.graph_replay" for row in ledger)


def same_recording(base: Rank, new: Rank) -> bool:
    """Whether step lengths agree one by one and buckets in all, whatever the schema each was read from."""
    return _figures(base) == _figures(new)


def _figures(rank: Rank) -> tuple[object, ...]:
    budget = rank.budget_ns
    buckets = budget.compute, known(budget.exposed_comm), budget.exposed_copy, budget.idle
    return rank.steps.found, rank.lengths_ns, buckets


def _sides(base: object, new: object) -> tuple[str, str]:
    return "unknown" if base is None else "known", "unknown" if new is None else "known"


def _limits(what: str, base: str, new: str, because: str) -> Difference:
    return Difference(what, base, new, "with_differences", because)
