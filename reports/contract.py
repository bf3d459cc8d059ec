"""Does a document keep the contract that we ship: `schema.json`, `comparison_schema.json`.

Read are the words of JSON Schema that those two files use; a test checks the answers against a whole
implementation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def broken(document: object, schema: str) -> str | None:
    """The first thing in which a document breaks a schema of ours, by its path; None where it keeps it.

    `schema`: the name of the file.
    """
    whole = _read(schema)
    return next(_breaks(document, whole, whole, ""), None)


@cache
def _read(schema: str) -> Schema:
    read: Schema = json.loads(files("reports").joinpath(schema).read_text(encoding="utf-8"))
    return read


def _breaks(value: Any, schema: Schema, whole: Schema, path: str) -> Iterator[str]:
    here = path or "the document"
    if "$ref" in schema:
        yield from _breaks(value, whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, path)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[one](value) for one in types):
        yield f"{here} is to be {' or '.join(types)}"
        return
    if "anyOf" in schema:
        tried = [next(_breaks(value, one, whole, path), None) for one in schema["anyOf"]]
        if all(tried):
            yield next(one for one in tried if one)
    if "const" in schema and value != schema["const"]:
        yield f"{here} is to be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here} is none of the words there are for it"
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _beyond(value, schema, here)
    elif isinstance(value, list):
        yield from _in_list(value, schema, whole, path)
    elif isinstance(value, dict):
        yield from _in_object(value, schema, whole, path)


def _beyond(value: float, schema: Schema, here: str) -> Iterator[str]:
    above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
    if value < schema.get("minimum", value) or value <= above:
        yield f"{here} is too small"
    if value > schema.get("maximum", value) or value >= below:
        yield f"{here} is too large"


def _in_list(values: list[Any], schema: Schema, whole: Schema, path: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(values) <= schema.get("maxItems", len(values)):
        yield f"{path or 'the document'} has a wrong number of entries"
    first = schema.get("prefixItems", [])
    for place, value in enumerate(values):
        each = first[place] if place < len(first) else schema.get("items")
        if isinstance(each, dict) and each:
            yield from _breaks(value, each, whole, f"{path}[{place}]")


def _in_object(values: dict[str, Any], schema: Schema, whole: Schema, path: str) -> Iterator[str]:
    start = f"{path}." if path else ""
    for key in schema.get("required", []):
        if key not in values:
            yield f"{start}{key} is missing"
    known, other = schema.get("properties", {}), schema.get("additionalProperties")
    names = schema.get("propertyNames")
    for key, value in values.items():
        if names and next(_breaks(key, names, whole, path), None):
            yield f"{path or 'the document'} has a key that is none of ours"
        each = known.get(key, other)
        if isinstance(each, dict):
            yield from _breaks(value, each, whole, f"{start}{key}" if key in known else f"{path}.*")
