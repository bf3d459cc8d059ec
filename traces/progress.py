"""How long work says how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float | None], None]
"""Called with what is being done and the fraction done (0 to 1, None where unknown)."""


def silent(doing: str, fraction: float | None) -> None:
    """Listen to nothing: the default for library use."""
