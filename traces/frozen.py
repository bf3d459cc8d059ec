"""Values that stay as they were made: dataclasses, frozen and with slots."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[T]) -> type[T]:
    """A class whose fields are all that it has, and never change."""
    return dataclass(frozen=True, slots=True)(kind)
