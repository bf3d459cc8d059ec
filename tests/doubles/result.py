"""Parts of a typed result said in a few words: what is not said is empty, 0 or does not apply."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from msgspec import Struct, inspect, structs

S = TypeVar("S", bound=Struct)


def double(kind: type[S], /, **fields: Any) -> S:
    """A section with these fields; a dict stands for the section that a field holds."""
    known, required = _fields(kind)
    assert fields.keys() <= known.keys(), fields.keys() - known.keys()
    told = {name: _section(known[name], value) for name, value in fields.items()}
    return kind(**{name: _least(known[name]) for name in required - fields.keys()}, **told)


@cache
def _fields(kind: type[Struct]) -> tuple[dict[str, inspect.Type], frozenset[str]]:
    """What each field of a section is, and the names of those it must have."""
    known = structs.fields(kind)
    types = {one.name: inspect.type_info(one.type) for one in known}
    return types, frozenset(one.name for one in known if one.required)


def _section(kind: inspect.Type, value: Any) -> Any:
    """The value; where it is a dict and the field a section, that section."""
    if not isinstance(value, dict):
        return value
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    section = next((one for one in kinds if isinstance(one, inspect.StructType)), None)
    if section is not None:
        return double(section.cls, **value)
    inner = next((one.value_type for one in kinds if isinstance(one, inspect.DictType)), inspect.AnyType())
    return {key: _section(inner, one) for key, one in value.items()}


def _least(kind: inspect.Type) -> Any:
    match kind:
        case inspect.Metadata():
            return _least(kind.type)
        case inspect.UnionType() if any(isinstance(one, inspect.NoneType) for one in kind.types):
            return None
        case inspect.StructType():
            return double(kind.cls)
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.IntType() | inspect.FloatType():
            return 0
        case inspect.BoolType():
            return False
        case inspect.StrType():
            return ""
        case inspect.VarTupleType():
            return ()
        case inspect.TupleType():
            return tuple(_least(one) for one in kind.item_types)
        case inspect.DictType():
            return {}
    return None
