"""The JSON Schema of a document, made of its types; what a key means is said in `measures.toml`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from reports.measures import elsewhere, measures


def schema(kind: type[Struct]) -> dict[str, Any]:
    made = msgspec.json.schema(kind)
    for name, section in made["$defs"].items():
        if "description" in section:
            section["description"] = _flowing(section["description"])
        for key, one in section.get("properties", {}).items():
            known = measures().get(key)
            if what := elsewhere().get(f"{name}.{key}") or (known.what if known else None):
                one["description"] = what
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks that a docstring has."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def schema_text(kind: type[Struct]) -> str:
    made = schema(kind)
    sections = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(made.pop("$defs").items()))
    head = json.dumps(made, indent=1).removesuffix("\n}")
    return head + ',\n "$defs": {\n  ' + ",\n  ".join(sections) + "\n }\n}\n"


def places(kind: type[Any], path: str = "") -> Iterator[str]:
    """Every key of a document with what it lies in: `ranks[].steps.used[].start_ns`; `*` is any
    key.
    """
    own = (
        {one.name: one.encode_name for one in msgspec.structs.fields(kind)}
        if issubclass(kind, Struct)
        else {}
    )
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is ClassVar:
            continue
        place = f"{path}.{own.get(name, name)}" if path else own.get(name, name)
        yield place
        yield from _inside(hint, place)


def _inside(hint: Any, place: str) -> Iterator[str]:
    if isinstance(hint, type) and (issubclass(hint, Struct) or is_dataclass(hint)):
        yield from places(hint, place)
        return
    origin = get_origin(hint)
    if origin is tuple:
        place += "[]"
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        place += ".*"
    for inner in get_args(hint):
        yield from _inside(inner, place)
