"""How a section is made of what was measured: its fields copied, and reasons in place of what is unknown."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from traces.missing import Missing

S = TypeVar("S", bound=Struct)


def copied(found: Any, kind: type[S], /, **other: Any) -> S:
    """A section with the fields of what was measured; `other`: those that are made of something else."""
    names = kind.__struct_fields__
    own = {name: getattr(found, name) for name in names if name not in other and hasattr(found, name)}
    return kind(**own, **other)


def all_copied(found: Any, kind: type[S]) -> S:
    """A section of the same fields as what was measured, with the sections in it."""
    return msgspec.convert(found, kind, from_attributes=True)


def because(section: S, gaps: Mapping[str, Missing | None]) -> S:
    """The section with a reason in each of these fields that has no value; no reason: it does not apply."""
    open_ = {name: gap for name, gap in gaps.items() if gap and getattr(section, name) is None}
    return replace(section, **open_) if open_ else section


def each(names: Iterable[str], one: Missing | None) -> dict[str, Missing | None]:
    """The same reason for several fields."""
    return dict.fromkeys(names, one)
