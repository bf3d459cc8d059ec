"""Another token dispatcher: chosen, silently skipped, or lost with a container."""

from __future__ import annotations

from typing import Final

from heuristics.comparison.suspects.direction import is_off
from heuristics.comparison.suspects.rules.rule import Rule, Signs
from heuristics.comparison.suspects.rules.versions import crossed
from heuristics.comparison.suspects.view import View

FUSED: Final = ("deepep", "hybridep", "ncclep")
"""Dispatchers of `flex`, as the trace is read for them."""
KNOBS: Final = ("moe_token_dispatcher_type", "moe_flex_dispatcher_backend", "moe_enable_deepep")
_ROWS: Final = (
    "exposed_comm.ep_*",
    "exposed_comm.sendrecv_unresolved",
    "exposed_copy.*",
    "compute.permute",
    "compute.router",
    "compute.memory",
    "compute.elementwise",
    "launch_starved.*",
    "launch_latency.*",
)
_NEXT: Final = "read the log for the dispatcher that was chosen, then run the new side with the base's one"


def _pair(view: View) -> tuple[str, str] | None:
    before, after = (rank.detected.dispatcher for rank in (view.before, view.after))
    return None if before == after or "unknown" in (before, after) else (before, after)


def asked_for(view: View) -> str | None:
    """The fused dispatcher that the side after is configured for; None where none, or not said."""
    _, kind = view.known("moe_token_dispatcher_type")
    _, deepep = view.known("moe_enable_deepep")
    _, backend = view.known("moe_flex_dispatcher_backend")
    if kind != "flex":
        return None
    if not is_off(backend):
        return str(backend)
    return "deepep" if deepep else None


def _skipped(view: View) -> Signs:
    """The fused dispatcher that is asked for ran before; another one runs after."""
    pair, wanted = _pair(view), asked_for(view)
    if pair is None or wanted not in FUSED or pair[0] != wanted:
        return None
    return (
        view.arrow("dispatcher in the trace", *pair),
        f"the configuration asks for {wanted} where the trace shows {pair[1]}",
        *_findings(view),
    )


def _findings(view: View) -> tuple[str, ...]:
    ids = [one.id for one in view.facts.new.config_findings]
    return tuple(f"finding of that side's configuration: {one}" for one in ids if "dispatcher" in one)


def _exchanged(view: View) -> Signs:
    if _skipped(view) is not None or _skipped(view.other()) is not None:
        return None
    pair = _pair(view)
    if pair is not None:
        return (view.arrow("dispatcher in the trace", *pair),)
    told = [rank.detected.dispatcher for rank in (view.before, view.after)]
    return () if "unknown" in told else None


def _container_without(view: View) -> Signs:
    pair = _pair(view)
    return (view.arrow("dispatcher in the trace", *pair),) if pair and pair[0] == "deepep" else None


SKIPPED: Final = Rule(
    id="dispatcher_skipped",
    title="The token dispatcher that is configured was skipped",
    mirrored="The token dispatcher that is configured runs again",
    either=_ROWS,
    seen=_skipped,
    said=(*KNOBS, "version.*", "gpu"),
    needs="seen",
    at_least="high",
    next="look for a warning about the flex dispatcher in the new side's log, and for its package in there",
    source=(
        "Megatron-Bridge, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md at 067f987d: DeepEP and "
        "HybridEP are skipped silently on a GPU that is not on their list"
    ),
)
EXCHANGED: Final = Rule(
    id="dispatcher_exchanged",
    title="Another token dispatcher runs",
    mirrored="Another token dispatcher runs",
    either=_ROWS,
    seen=_exchanged,
    said=KNOBS,
    next=_NEXT,
    source=(
        "Megatron-Bridge, skills/nemo-mbridge-perf-moe-dispatcher-selection at 067f987d; Megatron-LM, "
        "docs/discussions/deepseek-v3-gb200-optimization at 1d9edcf8: DeepEP to HybridEP"
    ),
)
CONTAINER: Final = Rule(
    id="container_without_deepep",
    title="The new container has no DeepEP",
    mirrored="The new container has DeepEP again",
    either=_ROWS,
    seen=_container_without,
    said=("version.container", "container"),
    says=crossed("26.02"),
    needs="said",
    next="import deep_ep in both containers; run the new side with the base's container",
    source="Megatron-Bridge, docs/releases/known-issues.md at 067f987d: 26.02 on H100, against 25.09",
)

RULES: Final = (SKIPPED, EXCHANGED, CONTAINER)
