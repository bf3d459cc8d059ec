"""The document as JSON: the contract other programs rely on."""

from __future__ import annotations

import json

from reports.document import Document


def render_json(document: Document) -> str:
    """JSON with two-space indents, keys in the order of the contract, ending in a line break."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
