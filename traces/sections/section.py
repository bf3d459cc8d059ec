"""A section of a result, the units of its values, and how it is made of what has the same
fields.
"""

from typing import Annotated, Any, TypeVar, dataclass_transform

from msgspec import Meta, Struct, field

Ns = Annotated[int, Meta(ge=0)]
"""A length of time in ns."""
Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=0)]
Frac = Annotated[float, Meta(ge=0, le=1)]
"""A share of a whole, which the field names."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Section(Struct, frozen=True):
    """A part of a result: an object of the JSON document, its keys the fields."""


S = TypeVar("S")


def copied(kind: type[S], /, *of: Any, **other: Any) -> S:
    """A section filled by equal names: each field from the last of what was found that has one.
    `other`: those made otherwise.
    """
    fields = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
    own = {name: getattr(source, name) for source in of for name in fields if hasattr(source, name)}
    return kind(**{**own, **other})
