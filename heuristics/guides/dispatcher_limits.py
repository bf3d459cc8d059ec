"""What a dispatcher must not be recommended for, whatever the guide names."""

from collections.abc import Sequence

from heuristics.guides.table import Refusal
from heuristics.rules.check import limits, past_limit
from heuristics.run.run import Run


def refusals(run: Run, backends: Sequence[str]) -> tuple[Refusal, ...]:
    """The backends of these that must not be chosen, each with every reason."""
    return tuple(
        Refusal(backend, rule.text, rule.source)
        for backend in backends
        for rule in limits(backend)
        if past_limit(rule, run.config)
    )
