"""What a dispatcher must not be recommended for, whatever the guide names; and one that does not run."""

from __future__ import annotations

from collections.abc import Sequence

from heuristics.guides.table import Refusal
from heuristics.rules.backends import limits, past_limit
from heuristics.run.run import Run


def refusals(run: Run, backends: Sequence[str]) -> tuple[Refusal, ...]:
    """The backends of these that must not be chosen, each with every reason."""
    return tuple(
        Refusal(backend, rule.text, rule.source)
        for backend in backends
        for rule in limits(backend)
        if past_limit(rule, run.config)
    )


def backend_not_active(run: Run, configured: str) -> str | None:
    """What to check where a configured flex backend does not run; no verdict on its speed.

    None where it runs, or where the trace does not tell which dispatcher does.
    """
    shown = run.active.dispatcher
    if configured not in ("deepep", "hybridep", "ncclep") or shown in (configured, "unknown"):
        return None
    seen = "no expert all-to-all" if shown == "none" else f"the kernels of {shown}"
    return (
        f"{configured} is configured but not active: the trace shows {seen}. Check that "
        "moe_token_dispatcher_type is flex (the backend alone does nothing), and the log for a warning"
    )
