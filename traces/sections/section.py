"""A section of a result, and the units of its values."""

from typing import Annotated

from msgspec import Meta, Struct

Ns = Annotated[int, Meta(ge=0)]
"""A length of time in ns."""
Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=0)]
Frac = Annotated[float, Meta(ge=0, le=1)]
"""A share of a whole, which the field names."""


class Section(Struct, frozen=True):
    """A part of a result: an object of the JSON document, its keys the fields."""
