"""A document of any kind as plain values, for writers that do not take the typed result yet."""

from __future__ import annotations

from heuristics.result.result import SCHEMA_VERSION
from reports.result.codec import Document

__all__ = ["SCHEMA_VERSION", "Document", "with_command"]


def with_command(document: Document, command: str) -> Document:
    """The document of any kind with the line that makes it again, as a key after `redacted`."""
    whole: Document = {}
    for key, value in document.items():
        whole[key] = value
        if key == "redacted":
            whole["command"] = command
    return whole
