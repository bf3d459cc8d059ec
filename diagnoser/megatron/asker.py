"""Whether megatron-core is asked at all: it is loaded in no other case."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heuristics.plan.allowed import Ask


def asker(wanted: bool) -> Ask | None:
    """Asks megatron-core, where that is wanted."""
    if not wanted:
        return None
    from diagnoser.megatron.check import check_with_megatron

    return check_with_megatron
