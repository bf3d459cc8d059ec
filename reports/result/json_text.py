"""The document as JSON: the contract other programs rely on."""

import json
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any, Final

from reports.result.codec import Document

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_NESTED: Final = frozenset({dict, list})
_WHOLE: Final = frozenset({int})
_SPECIAL: Final = chain(
    range(0x7F, 0xA0),
    (0xAD, 0x61C, 0xFEFF),
    range(0x200B, 0x2010),
    range(0x2028, 0x202F),
    range(0x2060, 0x2070),
    range(0xD800, 0xE000),
    range(0xFFF9, 0xFFFC),
)
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _SPECIAL}
"""What turns reading or commands a terminal, of names alone; JSON has another spelling for it."""


def render_json(document: Document) -> str:
    """JSON with two-space indents and lists of plain values on one line, ending in a line break.

    Keys stand in the order of the contract. Raises ValueError for NaN and infinities, which JSON
    has not.
    """
    text = _text(document, "\n") + "\n"
    if text.isascii() and "\x7f" not in text:
        return text
    return text.translate(_ESCAPED)


def _text(value: Any, line: str) -> str:
    """The text of a value; `line`: a line break and the indent it stands at."""
    kind = type(value)
    inner = line + "  "
    if kind is dict and value:
        rows = [
            _key(inner, key) + (repr(entry) if type(entry) is int else _text(entry, inner))
            for key, entry in value.items()
        ]
        return f"{{{','.join(rows)}{line}}}"
    if kind is list:
        kinds = {*map(type, value)}
        if kinds & _NESTED:
            return f"[{','.join([inner + _text(entry, inner) for entry in value])}{line}]"
        if kinds == _WHOLE:
            return repr(value)
    if kind is float and isfinite(value):
        return repr(value)
    if kind is str:
        return _word(value)
    if value is None:
        return "null"
    return _ENCODE(value)


@lru_cache(maxsize=4096)
def _word(text: str) -> str:
    return _ENCODE(text)


@lru_cache(maxsize=4096)
def _key(line: str, key: str) -> str:
    return f"{line}{_ENCODE(key)}: "
