"""Another token dispatcher: chosen, silently skipped, or lost with a container."""

from typing import Final

from heuristics.comparison.suspects.direction import is_off
from heuristics.comparison.suspects.rule import Signs
from heuristics.comparison.suspects.view import View

FUSED: Final = ("deepep", "hybridep", "ncclep")
"""Dispatchers of `flex`, as the trace is read for them."""


def _pair(view: View) -> tuple[str, str] | None:
    before, after = (rank.detected.dispatcher for rank in (view.before, view.after))
    return None if before == after or "unknown" in (before, after) else (before, after)


def asked_for(view: View) -> str | None:
    """The fused dispatcher that the side after is configured for; None where none, or unknown."""
    _, kind = view.known("moe_token_dispatcher_type")
    _, deepep = view.known("moe_enable_deepep")
    _, backend = view.known("moe_flex_dispatcher_backend")
    if kind != "flex":
        return None
    if not is_off(backend):
        return str(backend)
    return "deepep" if deepep else None


def dispatcher_skipped(view: View) -> Signs:
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


def dispatcher_exchanged(view: View) -> Signs:
    """Another dispatcher runs, and not because one was skipped."""
    if dispatcher_skipped(view) is not None or dispatcher_skipped(view.other()) is not None:
        return None
    pair = _pair(view)
    if pair is not None:
        return (view.arrow("dispatcher in the trace", *pair),)
    names = [rank.detected.dispatcher for rank in (view.before, view.after)]
    return () if "unknown" in names else None


def deepep_before(view: View) -> Signs:
    """DeepEP ran before and does not after."""
    pair = _pair(view)
    return (view.arrow("dispatcher in the trace", *pair),) if pair and pair[0] == "deepep" else None
