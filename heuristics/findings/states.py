"""Three states of every feature: asked for by the configuration, accepted by the log, active in the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from heuristics.config.features import GRAPH_MODULES
from heuristics.findings.finding import Case, Recognised, case_of
from heuristics.findings.graphs import CAPTURES
from heuristics.findings.memory import expandable_segments
from heuristics.guides.recompute_modules import MODULES as LABELS
from heuristics.guides.recompute_modules import label_of
from heuristics.rules.failures.explain import lines_about
from heuristics.run.run import Run

State = bool | str | None


@dataclass(frozen=True, slots=True)
class FeatureStates:
    """One feature. A word names which kind of it; None is unknown, never no.

    `accepted`: False where the log refuses, skips or drops it; True where steps were logged with nothing
    against it.
    """

    feature: str
    requested: State
    accepted: State
    active: State


@dataclass(frozen=True, slots=True)
class Feature:
    """How to tell a feature's states. `about`: names for it in the tables of rules and failures."""

    name: str
    requested: Callable[[Run], State]
    active: Callable[[Run], State]
    about: tuple[str, ...] = ()


def feature_states(run: Run, failures: Iterable[Recognised] = ()) -> tuple[FeatureStates, ...]:
    """All features of a run."""
    case = case_of(run, failures)
    return tuple(
        FeatureStates(one.name, one.requested(case.run), _accepted(case, one), one.active(run))
        for one in FEATURES
    )


def _accepted(case: Case, feature: Feature) -> State:
    if lines_about(feature.about) & case.lines:
        return False
    wanted = feature.requested(case.run)
    if wanted in (None, False, "none"):
        return None
    if feature.name.startswith("CUDA graphs") and {*CAPTURES} & case.lines:
        return True
    return True if case.run.log is not None and case.run.log.iterations else None


def _granularity(run: Run) -> State:
    if not run.asked.known("recompute_granularity"):
        return None
    found = run.asked.word("recompute_granularity")
    return found if found in ("full", "selective") else "none"


def _granularity_observed(run: Run) -> State:
    shown = run.observed
    if shown.recompute_modules is None:
        return None
    return "full" if shown.recompute_full else "selective" if shown.recompute_modules else "none"


def _listed(found: Iterable[str] | None, known: Iterable[str]) -> State:
    """Known names of a list; an unknown one stays unsaid."""
    if found is None:
        return None
    return " ".join(sorted({*found} & {*known})) or "none"


def _recompute_modules(run: Run) -> State:
    asked = run.asked.names("recompute_modules")
    return _listed(None if asked is None else map(label_of, asked), LABELS)


def _impl(run: Run) -> State:
    impl = run.asked.graph_impl
    return impl if impl in ("none", "local", "transformer_engine", "full_iteration") else None


def _any_flag(*knobs: str) -> Callable[[Run], State]:
    def requested(run: Run) -> State:
        found = [run.asked.on(knob) for knob in knobs]
        return True if True in found else False if None not in found else None

    return requested


def _tensor_overlap(run: Run) -> State:
    """As asked of CommOverlapConfig, which drops it silently, where there is one."""
    asked = run.asked.value("comm_overlap.tp_comm_overlap")
    return asked if isinstance(asked, bool) else run.asked.on("tp_comm_overlap")


def _nothing(run: Run) -> State:
    return None


def _dispatcher_observed(run: Run) -> State:
    return None if run.observed.dispatcher == "unknown" else run.observed.dispatcher


def _graphs_observed(run: Run) -> State:
    return None if run.observed.graph_frac is None else run.observed.graph_frac > 0


def _collects_observed(run: Run) -> State:
    """Collection that never makes a launch late looks manual; that it does, does not."""
    absent = run.observed.absent_frac
    return False if absent is not None and absent.get("gc", 0.0) > 0 else None


_FLEX: Final = ("flex", "moe_enable_deepep", "moe_flex_dispatcher_backend")
_GRAPHS: Final = ("graphs", "graph_impl", "captured", "graph_parts", "full_iteration", "cuda_graph_impl")
FEATURES: Final = (
    Feature("dispatcher", lambda run: run.asked.dispatcher, _dispatcher_observed, _FLEX),
    Feature(
        "EP overlap", lambda run: run.asked.ep_overlap, lambda run: run.observed.ep_overlap, ("ep_overlap",)
    ),
    Feature("delayed weight gradients", lambda run: run.asked.delayed_wgrad, _nothing, ("delayed_wgrad",)),
    Feature("CUDA graphs", _impl, _graphs_observed, _GRAPHS),
    Feature(
        "CUDA graphs: modules",
        lambda run: _listed(run.asked.graph_modules, GRAPH_MODULES),
        _nothing,
        _GRAPHS,
    ),
    Feature("recompute", _granularity, _granularity_observed, ("recompute_granularity",)),
    Feature(
        "recompute: modules",
        _recompute_modules,
        lambda run: _listed(run.observed.recompute_modules, LABELS),
        ("recompute_granularity",),
    ),
    Feature(
        "precision",
        lambda run: run.asked.precision,
        lambda run: run.observed.precision,
        ("fp8_matrices", "fp4", "low_precision"),
    ),
    Feature(
        "grouped GEMM", lambda run: run.asked.on("moe_grouped_gemm"), lambda run: run.observed.grouped_gemm
    ),
    Feature(
        "permute fusion",
        lambda run: run.asked.on("moe_permute_fusion"),
        lambda run: run.observed.permute_fused,
    ),
    Feature(
        "shared-expert overlap",
        lambda run: run.asked.shared_overlap,
        _nothing,
        ("moe_shared_expert_overlap",),
    ),
    Feature("gradient-reduce overlap", lambda run: run.asked.on("ddp.overlap_grad_reduce"), _nothing),
    Feature("parameter-gather overlap", lambda run: run.asked.on("ddp.overlap_param_gather"), _nothing),
    Feature(
        "TP overlap",
        _tensor_overlap,
        lambda run: run.observed.tp_overlap,
        ("tp_comm_overlap", "comm_overlap.tp_comm_overlap"),
    ),
    Feature(
        "activation offload",
        _any_flag("cpu_offloading", "fine_grained_activation_offloading"),
        lambda run: run.observed.offload,
        ("cpu_offloading", "fine_grained_activation_offloading"),
    ),
    Feature(
        "optimizer offload",
        _any_flag("optimizer.optimizer_cpu_offload"),
        _nothing,
        ("optimizer.optimizer_cpu_offload",),
    ),
    Feature("manual garbage collection", lambda run: run.asked.on("train.manual_gc"), _collects_observed),
    Feature("expandable segments", expandable_segments, _nothing, ("expandable_segments",)),
)
