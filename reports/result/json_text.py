"""The document as JSON: the contract other programs rely on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from reports.result.codec import Document

_INDENT: Final = "  "
_ESCAPED: Final = re.compile(
    r"[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
"""What turns reading or commands a terminal, of names alone; JSON has another spelling for it."""


def render_json(document: Document) -> str:
    """JSON with two-space indents and lists of plain values on one line, ending in a line break.

    Keys stand in the order of the contract. Raises ValueError for NaN and infinities, which JSON has not.
    """
    text = "".join(_pieces(document, "\n")) + "\n"
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _pieces(value: Any, line: str) -> Iterator[str]:
    """The text of a value; `line`: a line break and the indent it stands at."""
    inner = line + _INDENT
    if isinstance(value, dict) and value:
        for place, (key, one) in enumerate(value.items()):
            yield ("{" if place == 0 else ",") + inner + _plain(key) + ": "
            yield from _pieces(one, inner)
        yield line + "}"
    elif isinstance(value, list) and {dict, list} & {*map(type, value)}:
        for place, one in enumerate(value):
            yield ("[" if place == 0 else ",") + inner
            yield from _pieces(one, inner)
        yield line + "]"
    else:
        yield _plain(value)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
