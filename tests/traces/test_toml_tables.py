"""Tables of ours: read into typed rows, and a wrong row named with its file and field."""

import re
import tomllib
from collections.abc import Mapping

import pytest
from msgspec import Struct

from traces.names.gpus import Product, products
from traces.patterns import Pattern
from traces.toml_tables import WrongRow, keyed, read_rows, read_table


class Colour(str):
    """A field that TOML has no type for."""


def colour(text: str) -> Colour:
    if text not in ("red", "blue"):
        raise ValueError(f"{text} is no colour")
    return Colour(text)


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    id: str = ""
    sizes: tuple[int, ...] = ()
    pattern: Pattern | None = None
    colour: Colour | None = None
    shades: Mapping[str, Colour] = {}


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    row: tuple[Row, ...] = ()
    named: dict[str, Row] = {}


def table(text: str) -> Table:
    return read_rows(tomllib.loads(text), Table, "a.toml", {Colour: colour})


def test_rows_are_read_into_their_types() -> None:
    (row,) = table('[[row]]\nid = "a"\nsizes = [1, 2]\npattern = "b+"\ncolour = "red"').row
    assert (row.sizes, row.colour) == ((1, 2), "red")
    assert isinstance(row.colour, Colour)
    assert row.pattern is not None
    assert row.pattern.search("abb")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[row]]\nid = "a"\nsize = 1', "a.toml, row a: Object contains unknown field `size`"),
        ('[[row]]\n[[row]]\nid = "b"\nsizes = [1, "x"]', "a.toml, row b, sizes 2: Expected `int`"),
        ("[[row]]\n[[row]]\nsizes = 3", "a.toml, row 2, sizes: Expected `array`"),
        ('[[row]]\nid = "a"\npattern = "("', "a.toml, row a, pattern: (: missing )"),
        ('[[row]]\nid = "a"\ncolour = "sour"', "a.toml, row a, colour: sour is no colour"),
        (
            "[named.one]\n[named.two]\nsize = 1\n[named.three]\nsize = 1",
            "a.toml, named, two: Object contains",
        ),
        ('[named.one.shades]\nx = "red"\ny = "sour"', "a.toml, named, one, shades, y: sour is no colour"),
        ("rows = []", "a.toml: Object contains unknown field `rows`"),
    ],
)
def test_a_wrong_row_is_named_with_file_row_and_field(text: str, said: str) -> None:
    with pytest.raises(WrongRow, match=f"^{re.escape(said)}"):
        table(text)


def test_a_table_of_a_package_is_found_by_its_name() -> None:
    (found,) = read_table("traces.names", "gpus.toml", dict[str, tuple[Product, ...]]).values()
    assert found == tuple(products().values())


def test_a_wrong_table_of_a_package_is_named_by_its_path() -> None:
    with pytest.raises(WrongRow, match=r"^traces/names/gpus\.toml, gpus: Expected `int`, got `array`$"):
        read_table("traces.names", "gpus.toml", dict[str, int])


def test_a_row_that_stands_under_its_id_has_it() -> None:
    written = keyed(tomllib.loads("[b]\nsizes = [1]\n[a]"))
    assert [*read_rows(written, dict[str, Row], "a.toml").values()] == [Row("b", (1,)), Row("a")]
