"""What opinions read of each rank, the same whether a trace was measured or a user gives the
figures.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import starmap
from operator import attrgetter
from typing import Final

from msgspec import UNSET

from heuristics.config.hardware import gpu_named
from heuristics.config.observed import Observed
from heuristics.figures.startup import CAUSES as STARTUP_CAUSES
from heuristics.figures.startup import start_of
from traces.account.account import Account
from traces.frozen import frozen
from traces.limits import HALF_A_WALL, MOST, Limit
from traces.measurements import RankMeasurements
from traces.missing import known, of_known
from traces.names.kernels import COMM_KINDS, compute_classes
from traces.patterns import whole_number
from traces.sections.rank import Memory, Span, TensorCores
from traces.sections.tables import UnknownKernel
from traces.sections.work import DataLoading

FEWEST: Final = Limit(
    4,
    "exchanges of tokens a step",
    "one layer of experts: out and back, in forward and in backward",
)
EXPERT_CLASSES: Final = frozenset(("router", "permute", "grouped_gemm"))
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


@frozen
class Figures:
    """One rank, in ns of its windows. None is unknown, never zero.

    `place`: of the rank in the document, `rank`: its number in the run. `judged_ns`: the windows
    less start-up. `comm_known`: communication can be told from compute. `comm_kinds`: all
    communication that runs. `starved_ns` by cause and `blocking_ns` by producer are time without
    compute, as `arrival_ns`, `opaque_ns` (inside graphs recorded whole) and `stalled_ns` (nothing
    explains it) are. `split`: the causes of late launches are known. `recomputed_ns`: compute that
    is done again, `recompute_at_most_ns`: the most it can be where that is unknown. `work_ns`:
    compute work, of which `under_filled_ns` lies in kernels with fewer blocks than SMs.
    `unnamed_ns`: time in which only compute of unknown class runs, where it is enough to matter.
    `observed`: what the rank shows by itself.
    """

    window_ns: int
    judged_ns: int
    memory: Memory
    recompute_at_most_ns: int | None = None
    place: int | None = None
    rank: int | None = None
    comm_known: bool = True
    budget_ns: Parts = field(default_factory=dict)
    comm_kinds: frozenset[str] = frozenset()
    exposed_by_kind_ns: Parts | None = None
    hidden_comm_ns: int | None = None
    hidden_by_kind_ns: Parts | None = None
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
    a2a_spans: Sequence[Span] = ()
    work_ns: int | None = None
    under_filled_ns: int | None = None
    persistent_ns: int | None = None
    fill_frac: float | None = None
    tensor_cores: TensorCores | None = None
    unnamed_ns: int = 0
    observed: Observed = field(default_factory=Observed)

    @property
    def exposed_comm_ns(self) -> int | None:
        if self.comm_known:
            return self.budget_ns.get("exposed_comm", sum_ns(self.exposed_by_kind_ns))
        return None

    @property
    def blocked_ns(self) -> int | None:
        """Communication that compute waits for."""
        if self.blocking_ns is None:
            return None
        return sum(self.blocking_ns.get(kind, 0) for kind in COMM_KINDS)

    @property
    def host_by_cause_ns(self) -> dict[str, int] | None:
        """Time without compute that is the host's; allocator calls are memory's, start-up is
        nobody's.
        """
        if self.starved_ns is None:
            return None
        left_out = {
            "allocator",
            "profiler",
            *(STARTUP_CAUSES if self.judged_ns < self.window_ns else ()),
        }
        kinds = {cause: ns for cause, ns in self.starved_ns.items() if cause not in left_out}
        if self.arrival_ns:
            kinds["arrival"] = self.arrival_ns
        return kinds

    @property
    def idle_ns(self) -> int | None:
        return self.budget_ns.get("idle")

    @property
    def neither_ns(self) -> int | None:
        """Time that is neither compute nor idle, where nothing splits it."""
        compute_ns = self.budget_ns.get("compute")
        if compute_ns is None or self.idle_ns is None:
            return None
        return self.window_ns - compute_ns - self.idle_ns

    @property
    def unfilled_ns(self) -> int:
        """Time that is neither compute, nor exposed communication, nor the host's."""
        filled_ns = self.budget_ns.get("compute", 0) + self.budget_ns.get("exposed_comm", 0)
        return max(0, self.window_ns - filled_ns - sum((self.host_by_cause_ns or {}).values()))

    @property
    def a2a_ns(self) -> int | None:
        if self.a2a_exposed_ns is None:
            return None
        return self.a2a_exposed_ns + (self.a2a_hidden_ns or 0)

    @property
    def wide_ns(self) -> int | None:
        """Matrix work that 16 bits may do faster; None where no matrix work is known."""
        cores = self.tensor_cores
        if cores is None or not cores.matrix_ns:
            return None
        if cores.half is False:
            return 0
        return cores.lengths_ns[1]

    @property
    def fp32_ns(self) -> int | None:
        """What a switch to TF32 acts on: GEMMs without tensor cores; attention is its own."""
        return None if self.tensor_cores is None else self.tensor_cores.simt_ns

    @property
    def layout_ns(self) -> int:
        return (self.by_class_ns or {}).get("layout", 0)

    @property
    def late_ns(self) -> int | None:
        return sum_ns(self.starved_ns)


Ranks = Sequence[Figures]
"""All ranks of a run."""


def sum_ns(parts: Parts | None) -> int | None:
    """All of them; None where nothing tells any."""
    if parts is None:
        return None
    return sum(parts.values())


def added(parts: Iterable[Parts | None]) -> Counter[str]:
    """Lengths by kind, over all that tell them."""
    total = Counter[str]()
    for counts in parts:
        total.update(counts or {})
    return total


def frac_of(ranks: Iterable[Figures], name: str, whole: str = "window_ns") -> float | None:
    """One length as part of another, by their names, over ranks that tell both; None: none does."""
    part_ns, whole_ns = 0, 0
    for rank in ranks:
        ns, of_ns = map(known, attrgetter(name, whole)(rank))
        if ns is not None and of_ns:
            part_ns, whole_ns = part_ns + ns, whole_ns + of_ns
    if whole_ns:
        return float(part_ns / whole_ns)
    return None


def figures_of(measurements: Sequence[RankMeasurements]) -> tuple[Figures, ...]:
    return tuple(starmap(_measured, enumerate(measurements)))


def _measured(place: int, rank: RankMeasurements) -> Figures:
    budget, a2a, sm, is_told = rank.budget, known(rank.a2a), rank.sm, rank.unseen is None
    figures = Figures(
        window_ns=budget.window_ns,
        judged_ns=start_of(rank).judged_ns,
        memory=rank.memory,
        recompute_at_most_ns=rank.recompute.at_most_ns,
        place=place,
        comm_known=is_told,
        budget_ns={
            "compute": budget.compute_ns,
            "exposed_comm": budget.exposed_comm_ns,
            "exposed_copy": budget.exposed_copy_ns,
            "idle": budget.idle_ns,
        },
        comm_kinds=frozenset(budget.exposed_comm_by_kind_ns),
        exposed_by_kind_ns=budget.exposed_comm_by_kind_ns,
        hidden_comm_ns=budget.hidden_comm_ns if is_told else None,
        hidden_by_kind_ns=budget.hidden_comm_by_kind_ns if is_told else None,
        by_class_ns=budget.compute_by_class_ns,
        recomputed_ns=compute_again_ns(rank.memory) or 0,
        work_ns=rank.compute_work_ns,
        under_filled_ns=known(sm.under_filled_ns),
        persistent_ns=known(sm.persistent_ns),
        fill_frac=known(sm.fill_frac),
        tensor_cores=rank.tensor_cores,
        unnamed_ns=unnamed_ns(rank),
        observed=_observed(rank),
    )
    if isinstance(account := rank.account, Account):
        figures = replace(
            figures,
            starved_ns=account.launch_starved_ns,
            blocking_ns=account.blocking_ns if is_told else None,
            arrival_ns=account.arrival_ns,
            masked_ns=account.masked_ns,
        )
    if a2a:
        figures = replace(
            figures,
            a2a_exposed_ns=a2a.exposed_ns,
            a2a_hidden_ns=a2a.hidden_ns,
            a2a_payload_ns=a2a.payload_ns,
            a2a_waiting_ns=known(a2a.waiting_like_ns),
            a2a_spans=a2a.spans,
        )
    return figures


def unnamed_ns(rank: RankMeasurements) -> int:
    """How long compute of unknown class runs without other; 0 where that is too little to
    matter.
    """
    alone_ns = rank.unnamed.alone_ns
    if alone_ns > HALF_A_WALL.value * start_of(rank).judged_ns:
        return alone_ns
    return 0


def is_finding(kernel: UnknownKernel) -> bool:
    """Whether it is large enough to be asked for by name."""
    return kernel.frac > HALF_A_WALL.value


def compute_again_ns(memory: Memory) -> int | None:
    """Compute that is done a second time; all that is, where nothing splits it."""
    again = known(memory.recompute_modules)
    if again is None:
        return known(memory.recompute_ns)
    return sum(ns for key, ns in again.items() if key in compute_classes())


def _observed(rank: RankMeasurements) -> Observed:
    gpu, steps, detected = rank.gpu, len(rank.steps.used), rank.detected
    again = {RECOMPUTE_LABELS[module] for module in rank.recompute.again}
    calls, foreign = known(rank.memory.allocator_calls), rank.memory.foreign_frees_frac
    return Observed(
        framework=detected.framework,
        training=known(detected.training_step),
        gpu=of_known(gpu_named, gpu and gpu.name),
        capability=_capability(gpu.capability if gpu else None),
        dispatcher=detected.dispatcher,
        gathers_unresolved=any(group.kind == "other_comm" for group in rank.unresolved),
        graph_frac=known(detected.graph_share_frac),
        recompute_modules=None if rank.recompute.missing is not None else tuple(sorted(again)),
        allocator_calls_per_step=None if calls is None or steps < 2 else calls / (steps - 1),
        precision=known(detected.precision),
        short_kernel_frac=known(detected.short_kernel_frac),
        recorder=rank.kind,
        tensor_cores=rank.tensor_cores.has_half,
        pageable_input=_pageable(rank.data_loading),
        exposed_input_frac=rank.data_loading.input_copies_exposed_ns / rank.budget.window_ns,
        loader_workers=known(rank.data_loading.workers),
        in_use=detected.in_use or (),
        sendrecv_of_experts=_may_be_of_experts(rank),
        allocator_retries=None if foreign is UNSET else foreign < MOST.value,
        moe_passes=(rank.moe_passes,) if rank.moe_passes else (),
    )


def _may_be_of_experts(rank: RankMeasurements) -> bool | None:
    """False where unresolved sends and receives are not of experts: told apart, too few, or without
    any.
    """
    count = 0
    for group in rank.unresolved:
        if group.kind == "sendrecv_unresolved":
            count += group.kernel_count
    kinds = {*rank.budget.exposed_comm_by_kind_ns, *rank.budget.hidden_comm_by_kind_ns}
    has_experts = any(kind.startswith("ep_") for kind in kinds)
    runs = bool(EXPERT_CLASSES & {*rank.budget.compute_by_class_ns})
    few = rank.steps.used and count < FEWEST.value * len(rank.steps.used)
    if count and (has_experts or not runs or few):
        return False
    return None


def _capability(text: str | None) -> tuple[int, int] | None:
    major, minor = map(whole_number, (text or "").partition(".")[::2])
    if major is None or minor is None:
        return None
    return major, minor


def _pageable(loading: DataLoading) -> bool | None:
    """Whether input copies read pageable memory; None where there are none, or the trace does not
    say.
    """
    count = known(loading.input_copies_pageable)
    if count is None or not loading.input_copies:
        return None
    return count > 0
