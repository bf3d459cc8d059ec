"""What opinions read of each rank, the same whether a trace was measured or a user gives the figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from heuristics.config.hardware import gpu_family
from heuristics.figures.startup import CAUSES as STARTUP_CAUSES
from heuristics.figures.startup import judged_ns
from heuristics.run.observed import Observed
from traces.account.account import Account
from traces.measure.a2a import A2aSpan
from traces.measure.data_loading import DataLoading
from traces.measure.measurements import RankMeasurements
from traces.measure.memory import Memory
from traces.measure.moe_ledger import MoeLedger
from traces.measure.tensor_cores import TensorCores
from traces.missing import Missing
from traces.names.kernels import COMM_KINDS, compute_classes

RECOMPUTE_LABELS: Final = {
    "attention": "core_attn",
    "norm": "layernorm",
    "activation": "moe_act",
    "router": "moe",
    "dispatch": "moe",
}
"""What runs again -> the label in Megatron-Core's recompute_modules that makes it so."""

Parts = Mapping[str, int]
"""Lengths in ns by kind, class or cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One rank, in ns of its windows. None is unknown, never zero.

    `place`: of the rank in the document, `rank`: its number in the run. `judged_ns`: the windows less
    start-up. `comm_known`: communication can be told from compute. `comm_kinds`: all communication that runs.
    `starved_ns` by cause and `blocking_ns` by producer are time without compute, as `arrival_ns`, `opaque_ns`
    (inside graphs recorded whole) and `stalled_ns` (nothing explains it) are. `split`: the causes of late
    launches are known. `recomputed_ns`: compute that is done again. `work_ns`: compute work, of which
    `under_filled_ns` lies in kernels with fewer blocks than SMs. `observed`: what the rank shows by itself.
    """

    window_ns: int
    judged_ns: int
    memory: Memory
    place: int | None = None
    rank: int | None = None
    comm_known: bool = True
    budget_ns: Parts = field(default_factory=dict)
    comm_kinds: frozenset[str] = frozenset()
    exposed_by_kind_ns: Parts | None = None
    hidden_comm_ns: int | None = None
    by_class_ns: Parts | None = None
    starved_ns: Parts | None = None
    split: bool = True
    blocking_ns: Parts | None = None
    arrival_ns: int | None = None
    opaque_ns: int | None = None
    stalled_ns: int | None = None
    masked_ns: int | None = None
    recomputed_ns: int | None = None
    a2a_exposed_ns: int | None = None
    a2a_hidden_ns: int | None = None
    a2a_payload_ns: int | None = None
    a2a_waiting_ns: int | None = None
    a2a_spans: Sequence[A2aSpan] = ()
    work_ns: int | None = None
    under_filled_ns: int | None = None
    persistent_ns: int | None = None
    fill_frac: float | None = None
    tensor_cores: TensorCores | None = None
    observed: Observed = field(default_factory=Observed)

    @property
    def exposed_comm_ns(self) -> int | None:
        """Exposed communication, where it can be told from compute."""
        kinds = None if self.exposed_by_kind_ns is None else sum(self.exposed_by_kind_ns.values())
        return self.budget_ns.get("exposed_comm", kinds) if self.comm_known else None

    @property
    def blocked_ns(self) -> int | None:
        """Communication that compute waits for."""
        waits = self.blocking_ns
        return None if waits is None else sum(ns for kind, ns in waits.items() if kind in COMM_KINDS)

    @property
    def host_by_cause_ns(self) -> dict[str, int] | None:
        """Time without compute that is the host's; allocator calls are memory's, start-up is nobody's."""
        if self.starved_ns is None:
            return None
        left_out = {"allocator", "profiler", *(STARTUP_CAUSES if self.judged_ns < self.window_ns else ())}
        kinds = {cause: ns for cause, ns in self.starved_ns.items() if cause not in left_out}
        return kinds | ({"arrival": self.arrival_ns} if self.arrival_ns else {})

    @property
    def late_ns(self) -> int | None:
        """Time without compute for want of a launch."""
        return None if self.starved_ns is None else sum(self.starved_ns.values())


def frac_of(ranks: Iterable[Figures], read: Callable[[Figures], int | None]) -> float | None:
    """One length as part of the windows, over the ranks that tell it; None where none does."""
    found = [(ns, rank.window_ns) for rank in ranks if (ns := read(rank)) is not None]
    return sum(ns for ns, _ in found) / sum(window_ns for _, window_ns in found) if found else None


def figures_of(measurements: Sequence[RankMeasurements]) -> tuple[Figures, ...]:
    """What a trace tells of its ranks."""
    return tuple(_measured(place, rank) for place, rank in enumerate(measurements))


def _measured(place: int, rank: RankMeasurements) -> Figures:
    budget, known, a2a, launches = rank.budget, rank.communication_told, rank.a2a, rank.sm.launches
    account = rank.account if isinstance(rank.account, Account) else None
    return Figures(
        window_ns=budget.window_ns,
        judged_ns=judged_ns(rank),
        memory=rank.memory,
        place=place,
        comm_known=known,
        budget_ns={
            "compute": budget.compute_ns,
            "exposed_comm": budget.exposed_comm_ns,
            "exposed_copy": budget.exposed_copy_ns,
            "idle": budget.idle_ns,
        },
        comm_kinds=frozenset(budget.exposed_comm_by_kind_ns),
        exposed_by_kind_ns=budget.exposed_comm_by_kind_ns,
        hidden_comm_ns=budget.hidden_comm_ns if known else None,
        by_class_ns=budget.compute_by_class_ns,
        starved_ns=account.launch_starved_ns if account else None,
        blocking_ns=account.blocking_ns if account and known else None,
        arrival_ns=account.arrival_ns if account else None,
        masked_ns=account.masked_ns if account else None,
        recomputed_ns=compute_again_ns(rank.memory) or 0,
        a2a_exposed_ns=a2a.exposed_ns if a2a else None,
        a2a_hidden_ns=a2a.hidden_ns if a2a else None,
        a2a_payload_ns=a2a.payload_ns if a2a else None,
        a2a_waiting_ns=a2a.waiting_like_ns if a2a else None,
        a2a_spans=a2a.spans if a2a else (),
        work_ns=launches.work_ns if launches else None,
        under_filled_ns=launches.under_filled_ns if launches else None,
        persistent_ns=launches.persistent_ns if launches else None,
        fill_frac=launches.fill_frac if launches else None,
        tensor_cores=rank.tensor_cores,
        observed=_observed(rank),
    )


def compute_again_ns(memory: Memory) -> int | None:
    """Compute that is done a second time; all that is, where nothing splits it."""
    again = memory.recompute_modules
    if again is None:
        return memory.recompute_ns
    return sum(ns for key, ns in again.items() if key in compute_classes())


def _observed(rank: RankMeasurements) -> Observed:
    gpu, memory, steps = rank.gpu, rank.memory, len(rank.steps.used)
    again = {
        RECOMPUTE_LABELS[module]
        for module, passes in rank.recompute.modules.items()
        if passes.recomputed_count
    }
    calls = memory.allocator_calls
    return Observed(
        framework=rank.detected.framework,
        training=rank.steps.training,
        gpu=None if gpu is None or gpu.name is None else gpu_family(gpu.name),
        capability=_capability(gpu.capability if gpu else None),
        dispatcher=rank.a2a.dispatcher if rank.a2a else "unknown",
        gathers_unresolved=any(one.kind == "other_comm" for one in rank.unresolved),
        graph_frac=rank.detected.graph_share_frac,
        recompute_modules=None if memory.recompute_ns is None else tuple(sorted(again)),
        allocator_calls_per_step=None if calls is None or steps < 2 else calls / (steps - 1),
        precision=rank.precision.precision,
        short_kernel_frac=rank.detected.short_kernel_frac,
        recorder=rank.kind,
        tensor_cores=rank.tensor_cores.half,
        pageable_input=_pageable(rank.data_loading),
        exposed_input_frac=rank.data_loading.input_copies_exposed_ns / rank.budget.window_ns,
        moe_passes=(rank.moe.passes,) if isinstance(rank.moe, MoeLedger) and rank.moe.passes else (),
    )


def _capability(text: str | None) -> tuple[int, int] | None:
    major, _, minor = (text or "").partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _pageable(loading: DataLoading) -> bool | None:
    """Whether input copies read pageable memory; None where there are none, or the trace does not say."""
    count = loading.input_copies_pageable
    return None if isinstance(count, Missing) or not loading.input_copies else count > 0
