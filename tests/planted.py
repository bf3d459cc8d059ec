"""Foreign text in every place of a document where text can stand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def replaced(value: Any, text: str, kept: Collection[str]) -> Any:
    """The document with every string replaced but those under `kept`, keys of our own keywords."""
    if isinstance(value, dict):
        return {key: part if key in kept else replaced(part, text, kept) for key, part in value.items()}
    if isinstance(value, list):
        return [replaced(part, text, kept) for part in value]
    return text if isinstance(value, str) else value
