"""What one side of a difference shows, by the names that causes ask for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from heuristics.comparison.difference.changed import is_off
from heuristics.comparison.difference.subject import Subject
from heuristics.comparison.suspects.causes import named
from heuristics.result.result import rank_in_run
from traces.missing import known
from traces.patterns import Pattern, compiled
from traces.spelling import in_ms, percent

CLASSES: Final = named("@classes")
PRODUCTS: Final = ("compute.gemm", "compute.grouped_gemm", "compute.attention", "compute.convolution")
"""Classes of matrix products, which a fusion of small kernels leaves as they are."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a side shows, None where that is unknown; `spelled`: as sentences have it."""

    of: Callable[[Subject], Any]
    spelled: Callable[[Any], str] = str


def _counted(*rows: str) -> Figure:
    return Figure(lambda side: sum(side.counts.get(row, 0.0) for row in rows), whole)


def _of_memory(field: str, spelled: Callable[[float], str]) -> Figure:
    def per_step(side: Subject) -> float | None:
        value = known(getattr(side.rank.memory, field))
        return None if value is None else value / len(side.rank.lengths_ns)

    return Figure(per_step, spelled)


def whole(number: float) -> str:
    return f"{number:.0f}"


def _rounded_ms(time_ns: float) -> str:
    return in_ms(round(time_ns))


def dispatcher(side: Subject) -> str | None:
    name = side.rank.detected.dispatcher
    return None if name == "unknown" else name


def asked_for(side: Subject) -> str | None:
    """The fused dispatcher that a side is configured for; None where none, or unknown."""
    if side.value("moe_token_dispatcher_type") != "flex":
        return None
    backend = side.value("moe_flex_dispatcher_backend")
    if not is_off(backend):
        return str(backend)
    return "deepep" if side.value("moe_enable_deepep") else None


def _perturbed(side: Subject) -> float | None:
    parts = (known(trace.capture.perturbation_frac) for trace in side.result.traces)
    return max((frac for frac in parts if frac is not None), default=None)


def _waiting_ns(side: Subject) -> int | None:
    a2a = known(side.rank.a2a)
    waiting_ns = known(a2a.waiting_like_ns) if a2a else None
    return None if waiting_ns is None else waiting_ns // len(side.rank.lengths_ns)


def _waited_ns(side: Subject) -> int | None:
    own = rank_in_run(side.result, side.rank)
    return None if own is None else own.waited_ns


def _broadcasts(side: Subject) -> float:
    """NCCL's broadcasts a step."""
    rows = (one for one in side.rank.kernel_table.rows if one.key.startswith("comm."))
    return sum(one.count for one in rows if "Broadcast" in one.name) / len(side.rank.lengths_ns)


def _workers(side: Subject) -> int | None:
    """Workers that load, by the rhythm of waits; else by the configuration."""
    loading = side.rank.data_loading
    found = known(loading.workers) if loading else None
    said = side.value("num_workers", "dataset.num_workers")
    return found if found is not None else said if isinstance(said, int) else None


def _apart(side: Subject) -> bool | None:
    loading = side.rank.data_loading
    return loading.loads_apart if loading else None


def _data_waits(side: Subject) -> str | None:
    loading = side.rank.data_loading
    return f"{loading.waiting_steps} of {len(side.rank.lengths_ns)}" if loading else None


def _input_copies(side: Subject) -> int | None:
    loading = side.rank.data_loading
    return loading.input_copies if loading else None


def _pageable_frac(side: Subject) -> float | None:
    """The part of the input copies that reads pageable memory; None without copies, or where unknown."""
    loading = side.rank.data_loading
    count = known(loading.input_copies_pageable) if loading else None
    return count / loading.input_copies if loading and count is not None and loading.input_copies else None


def _wide_frac(side: Subject) -> float | None:
    whole_ns, wide_ns = side.rank.tensor_cores.lengths_ns
    return wide_ns / whole_ns if whole_ns else None


def _beside_ns(side: Subject) -> int | None:
    """Work of compute beside communication, a step."""
    stretch = known(side.rank.sm.stretch)
    return None if stretch is None else stretch.beside_ns // len(side.rank.lengths_ns)


BACKWARD: Final = compiled(r"(?i)bwd|backward|dgrad|wgrad")
FORWARD: Final = compiled(r"(?i)fwd|forward")


def named_like(side: Subject, name: Pattern) -> float:
    """Kernels a step with such a name."""
    rows = (one for one in side.rank.kernel_table.rows if name.search(one.name))
    return sum(one.count for one in rows) / len(side.rank.lengths_ns)


FIGURES: Final[Mapping[str, Figure]] = {
    "dispatcher": Figure(dispatcher),
    "asked": Figure(asked_for),
    "gpu": Figure(lambda side: known(side.rank.gpu)),
    "tp": Figure(lambda side: side.value("tensor_model_parallel_size", "tp")),
    "bound": Figure(lambda side: side.value("launcher.numa_binding", "cpu_bound_to_numa")),
    "graphs": Figure(lambda side: known(side.rank.detected.graph_share_frac), percent),
    "perturbed": Figure(_perturbed, percent),
    "waiting": Figure(_waiting_ns, in_ms),
    "waited": Figure(_waited_ns, in_ms),
    "kernels": _counted(*CLASSES),
    "small": _counted(*named("@small")),
    "others": _counted(*(name for name in CLASSES if name not in named("@small"))),
    "replays": _counted("compute.graph_replay"),
    "products": _counted(*PRODUCTS),
    "optimizer": _counted("compute.optimizer"),
    "elementwise": _counted("compute.elementwise"),
    "broadcasts": Figure(_broadcasts, whole),
    "workers": Figure(_workers),
    "apart": Figure(_apart, {True: "worker processes", False: "the step's own process"}.__getitem__),
    "data_waits": Figure(_data_waits),
    "input_copies": Figure(_input_copies, whole),
    "pageable": Figure(_pageable_frac, percent),
    "grouped": _counted("compute.grouped_gemm"),
    "gemms": _counted("compute.gemm"),
    "casts": _counted("compute.quantize"),
    "wide": Figure(_wide_frac, percent),
    "forward": Figure(lambda side: named_like(side, FORWARD), whole),
    "backward": Figure(lambda side: named_like(side, BACKWARD), whole),
    "recompute": _of_memory("recompute_ns", _rounded_ms),
    "recomputed": Figure(
        lambda side: sorted(known(side.rank.memory.recompute_modules) or ()),
        lambda modules: ", ".join(modules) or "none",
    ),
    "offload": _of_memory("offload_exposed_ns", _rounded_ms),
    "retries": Figure(lambda side: known(side.rank.memory.allocator_retry_frac), percent),
    "stretch": Figure(lambda side: known(side.rank.sm.stretch_frac), percent),
    "beside_ns": Figure(_beside_ns, in_ms),
    "comm_blocks": Figure(lambda side: known(side.rank.sm.comm_blocks), str),
    "allocations": _of_memory("allocator_calls", "{:.1f}".format),
}
