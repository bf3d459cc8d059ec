"""The three states of a value: known, `Missing` with its reason and cure, None where it does not apply."""

from typing import TYPE_CHECKING, Annotated, Final, Literal, Optional, TypeAlias, TypeVar

from msgspec import Meta, Struct

from traces.missing import Missing

T = TypeVar("T")

if TYPE_CHECKING:
    OrMissing: TypeAlias = T | Missing | None
else:  # what JSON holds: a number or null, whose reason stands in `missing`
    OrMissing = Optional

Ns = Annotated[int, Meta(ge=0)]
"""A length of time in ns."""
Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=0)]
Frac = Annotated[float, Meta(ge=0, le=1)]
"""A share of a whole, which the field names."""
SCHEMA_VERSION: Final = "1.0"
"""Of the documents that are written."""
SchemaVersion = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]
"""Of the documents that keep the contract: each later 1.x adds keys and changes none."""


class Section(Struct, frozen=True):
    """A part of a result: an object of the JSON document, its keys the fields."""


class Tool(Section, frozen=True):
    """What made the result. `guidance`: NVIDIA's guide that decided, None where two runs had two."""

    name: Literal["moe-diag"]
    version: str
    guidance: str | None


def known(value: OrMissing[T]) -> T | None:
    """The value where it is known; None where it is missing or does not apply."""
    return None if isinstance(value, Missing) else value
