"""Every text of a typed result, by the kind that its type says, and the result with some of them
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as with_fields
from functools import cache
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct, inspect
from msgspec.structs import replace

from traces.errors import NotAResult
from traces.missing import Missing, of_known
from traces.texts import TextKind

AnyStruct = TypeVar("AnyStruct", bound=Struct)
Change = Callable[[TextKind, Any], Any]
"""What becomes of a text of a kind; None leaves it out of a list. `GIVEN` may be of any type."""
_Walk = Callable[[Any, Change], Any]
_BESIDE: Final = (inspect.NoneType, inspect.IntType, inspect.FloatType, inspect.BoolType)
"""What stands in a union beside what may hold a text."""


class Refused(NotAResult):
    """A text that no result of ours has; the message ends with its place."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{place.removeprefix('.')}: {what}" if place else what)
        self.what, self.place = what, place

    def within(self, step: str) -> Refused:
        """The same, with its place one step further out."""
        return Refused(self.what, step + self.place)


def changed(result: AnyStruct, change: Change) -> AnyStruct:
    """The result with every text as `change` makes it. What holds no text is not looked at."""
    return _in_struct(result, change)


def _in_struct(value: AnyStruct, change: Change) -> AnyStruct:
    new = {}
    for name, walk in _fields(type(value)):
        old = getattr(value, name)
        new_value = _at(f".{name}", walk, old, change)
        if new_value is not old:
            new[name] = new_value
    if new:
        return replace(value, **new)
    return value


def _at(step: str, walk: _Walk, value: Any, change: Change) -> Any:
    """A part changed; what is refused in it has its place one step further out."""
    try:
        return _gap(value, change) if isinstance(value, Missing) else walk(value, change)
    except Refused as error:
        raise error.within(step) from None


def _gap(value: Missing, change: Change) -> Missing:
    reason, cure = change(TextKind.SAID, value.reason), change(TextKind.SAID, value.cure)
    path = change(TextKind.PLACE, value.path)
    if (path, reason, cure) == (value.path, value.reason, value.cure):
        return value
    return with_fields(value, path=path, reason=reason, cure=cure)


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, _Walk], ...]:
    """The fields that hold texts, each with what changes them."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    walks = ((field.name, _walk(field.type)) for field in info.fields)
    return tuple((name, walk) for name, walk in walks if walk is not None)


def _walk(kind: inspect.Type) -> _Walk | None:
    """What changes the texts of a type; None where it has none."""
    match kind:
        case inspect.Metadata(extra={"text": TextKind() as text}):
            return lambda value, change: (
                value if value is None or value is UNSET else change(text, value)
            )
        case inspect.Metadata():
            return _walk(kind.type)
        case inspect.StructType():
            return lambda value, change: (
                _in_struct(value, change) if isinstance(value, Struct) else value
            )
        case inspect.DataclassType(cls=cls) if cls is Missing:
            return _gap
        case inspect.UnionType(types=types):
            inner = [
                walk
                for member in types
                if not isinstance(member, _BESIDE) and (walk := _walk(member))
            ]
            if inner:
                return _of_union(inner[0])
            if any(isinstance(member, inspect.NoneType) for member in types):
                return _if_gap
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return of_known(_of_list, _walk(item))
        case inspect.TupleType(item_types=items):
            walks = [*filter(None, map(_walk, items))]
            if walks:
                return _of_list(next((walk for walk in walks if walk is not _if_gap), _if_gap))
        case inspect.DictType(key_type=key, value_type=inner_type):
            return _of_table(_walk(key), _walk(inner_type))
    return None


def _if_gap(value: Any, change: Change) -> Any:
    """A value without texts but for why it is not known."""
    return value


def _of_union(walk: _Walk) -> _Walk:
    def of(value: Any, change: Change) -> Any:
        if value is None or value is UNSET or isinstance(value, int | float):
            return value
        return walk(value, change)

    return of


def _of_list(walk: _Walk) -> _Walk:
    def of(value: Any, change: Change) -> Any:
        if not isinstance(value, tuple | list):  # not told, or absent
            return value
        if walk is _if_gap and not any(isinstance(part, Missing) for part in value):
            return value
        kept, is_changed = [], False
        for place, old in enumerate(value):
            new_value = _at(f"[{place}]", walk, old, change)
            is_changed |= new_value is not old
            if new_value is not None or old is None:
                kept.append(new_value)
        return tuple(kept) if is_changed else value

    return of


def _of_table(key: _Walk | None, inner: _Walk | None) -> _Walk | None:
    if key is None and inner is None:
        return None

    def of(value: Any, change: Change) -> Any:
        if not isinstance(value, Mapping):
            return value
        new = {}
        for name, inner_value in value.items():
            shown = name if key is None else key(name, change)
            new[shown] = inner_value if inner is None else _at("", inner, inner_value, change)
        if all(new.get(name, old_value) is old_value for name, old_value in value.items()):
            return value
        return new

    return of
