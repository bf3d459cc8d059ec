"""Foreign text in every place of a document where text can stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

KEPT = frozenset(
    {"row", "key", "keys", "id", "kind", "measure", "module", "rule", "wall", "source", "tied_with"}
)
"""Fields of a typed result whose texts are our own keys, though no type says so."""
R = TypeVar("R", bound=Struct)


def planted(result: R, text: str) -> R:
    """A typed result with that text for every one that a recording or a configuration can bring."""
    kinds = get_type_hints(type(result))
    parts = {
        name: getattr(result, name) if name in KEPT else _planted(getattr(result, name), kinds[name], text)
        for name in result.__struct_fields__
    }
    return type(result)(**parts)


def _planted(value: Any, kind: Any, text: str) -> Any:
    if isinstance(value, Struct):
        return planted(value, text)
    if isinstance(value, str):
        return text if _is_free(kind, text) else value
    if isinstance(value, tuple):
        inner = _of(kind, tuple)
        kinds = inner[:1] * len(value) if len(inner) == 2 and inner[1] is Ellipsis else inner
        return tuple(_planted(part, of, text) for part, of in zip(value, kinds, strict=True))
    if isinstance(value, Mapping):
        return {key: _planted(part, _of(kind, Mapping)[1], text) for key, part in value.items()}
    return value


def _of(kind: Any, container: type) -> tuple[Any, ...]:
    """What the container holds, within unions and annotations."""
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, container):
        return get_args(kind)
    found = (_of(one, container) for one in get_args(kind) if get_origin(one) is not None)
    return next(filter(None, found), ())


def _is_free(kind: Any, text: str) -> bool:
    try:
        msgspec.convert(text, kind)
    except msgspec.ValidationError:
        return False
    return True
