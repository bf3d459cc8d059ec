"""Which modules to recompute: labels, what makes each legal, and the order by memory pressure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from heuristics.guides.memory_use import segments_suffice
from heuristics.guides.recompute_modules import INSIDE_MOE, MODULES, Module, label_of
from heuristics.guides.table import Refusal
from heuristics.run.run import Run

Granularity = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True)
class PressureRule:
    """A row: how tight memory is, what to recompute then, what to add, one at a time, until it fits."""

    name: str
    when: Callable[[Run, frozenset[str]], bool]
    granularity: Granularity
    start: tuple[str, ...] = ()
    then: tuple[str, ...] = ()


_NARROW: Final = ("moe_act", "layernorm")
_HIGH: Final = ("moe_act", "layernorm", "mla_up_proj")
_WIDE: Final = ("mlp", "shared_experts", "gdn_norm_out", "moe")

RULES: Final = (
    PressureRule(
        "low: memory has room",
        lambda run, now: run.config.memory_tight is False and not run.does_not_fit,
        "none",
    ),
    PressureRule(
        "high: instead of full recompute",
        lambda run, now: run.active.recompute_full is True,
        "selective",
        _HIGH,
        _WIDE,
    ),
    PressureRule(
        "extreme: the selective modules do not make it fit",
        lambda run, now: _is_short(run) and _exhausted(run, now),
        "full",
    ),
    PressureRule(
        "moderate: instead of the whole MoE layer",
        lambda run, now: "moe" in now and not _is_short(run),
        "selective",
        _NARROW,
        ("mla_up_proj", "mlp", "shared_experts", "gdn_norm_out"),
    ),
    PressureRule(
        "high: more than the modules recomputed now",
        lambda run, now: _is_short(run) and bool(now),
        "selective",
        _HIGH,
        _WIDE,
    ),
    PressureRule(
        "high: more was asked for than there is",
        lambda run, now: run.does_not_fit and segments_suffice(run) is False,
        "selective",
        _HIGH,
        _WIDE,
    ),
    PressureRule(
        "moderate",
        lambda run, now: True,
        "selective",
        ("moe_act",),
        ("layernorm", "mla_up_proj", "mlp", "shared_experts", "gdn_norm_out"),
    ),
)
"""Rows by memory pressure: Megatron-Bridge, skill perf-moe-hardware-configs (low none, moderate activations
and norms, high up-projection too, extreme full). That moe_act goes first among grouped experts, whole moe
last, and that one label is added at a time: skill perf-activation-recompute. What says that pressure is so
high is ours: what was given, and what is recomputed already."""


@dataclass(frozen=True, slots=True)
class RecomputeChoice:
    """What the table says of a run.

    `modules`: Megatron-Core's labels to recompute, empty without selective recompute; `rule`: the row that
    fired. `then`: labels to add one at a time while the run does not fit. `refused`: labels that are not to
    be used, with the reason. `asks`: options that would tell more.
    """

    granularity: Granularity
    modules: tuple[str, ...]
    rule: str
    then: tuple[str, ...]
    refused: tuple[Refusal, ...]
    asks: tuple[str, ...]


def choose_recompute(run: Run) -> RecomputeChoice:
    """Look the run up. Labels whose need is unknown are taken only where nearly every MoE run meets it."""
    now = recomputed_now(run)
    rule = next(rule for rule in RULES if rule.when(run, now))
    modules, then = _next(run, rule, now)
    asks = ["--memory-tight"] if run.config.memory_tight is None else []
    asks += [module.option for module in MODULES.values() if module.option and module.legal(run) is None]
    return RecomputeChoice(
        granularity=rule.granularity,
        modules=modules,
        rule=rule.name,
        then=then,
        refused=tuple(_refusals(run)),
        asks=tuple(dict.fromkeys(asks)),
    )


def recomputed_now(run: Run) -> frozenset[str]:
    """Labels that the trace shows recomputed; none where that is unknown or whole layers are."""
    if run.active.recompute_full:
        return frozenset()
    return frozenset(label_of(name) for name in run.active.recompute_modules or ())


def _next(run: Run, rule: PressureRule, now: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels to recompute and labels to add after; under pressure, one more than are recomputed now."""
    start = [label for label in rule.start if _takes(run, MODULES[label])]
    then = [label for label in rule.then if _takes(run, MODULES[label])]
    if _is_short(run):
        start += [label for label in then if label in now and label != "moe"]
    then = [label for label in then if label not in start]
    if then and (not start or (_is_short(run) and set(start) <= now)):
        start.append(then.pop(0))
    if "moe" in start:
        start = [label for label in start if label not in INSIDE_MOE]
    return tuple(start), tuple(then)


def _is_short(run: Run) -> bool:
    """Whether what is recomputed now does not do: given so, or memory ran out."""
    return bool(run.config.memory_tight) or run.does_not_fit


def _takes(run: Run, module: Module) -> bool:
    legal = module.legal(run)
    return not module.avoid and (module.usual if legal is None else legal)


def _exhausted(run: Run, now: frozenset[str]) -> bool:
    """Whether every selective module is recomputed already or known to be impossible."""
    covered = now | INSIDE_MOE if "moe" in now else now
    return all(label in covered or MODULES[label].legal(run) is False for label in (*_HIGH, *_WIDE))


def _refusals(run: Run) -> Iterator[Refusal]:
    for module in MODULES.values():
        legal = module.legal(run)
        if module.avoid and legal is not False:
            yield Refusal(module.label, module.avoid, module.source)
        elif legal is False:
            yield Refusal(module.label, f"needs {module.needs}", module.source)
        elif legal is None and not module.usual:
            yield Refusal(module.label, f"needs {module.needs}, which is unknown here", module.source)
