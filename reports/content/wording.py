"""How words are put together, alike on every page."""

from __future__ import annotations

from collections.abc import Sequence

from reports.content.blocks import Words, words


def joined(several: Sequence[Words], between: str = ", ") -> Words:
    """Words with something between them."""
    return words(*(span for place, one in enumerate(several) for span in ((between,) if place else ()) + one))


def ended(text: str) -> str:
    """A text with one full stop."""
    return f"{text.rstrip('.')}."
