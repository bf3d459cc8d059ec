"""What guides, programs and data sheets publish and a fix, a guide or a layout sets:
recipes.toml.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from traces.toml_tables import read_table


class Published(Struct, frozen=True, array_like=True):
    """A row of the table: a value of a recipe, which nothing is held against."""

    value: int | float
    unit: str
    source: str

    @property
    def whole(self) -> int:
        return int(self.value)


RECIPES: Final[Mapping[str, Published]] = read_table(
    "heuristics", "recipes.toml", dict[str, Published]
)
