"""Every key of a result is explained in `measures.toml`, and the published dictionary says the same."""

from __future__ import annotations

from collections.abc import Iterator

from heuristics.result.brief import Brief
from heuristics.result.result import Result
from reports.measures import GROUPS, elsewhere, measures
from tests.agreement.schema import places
from tests.places import ROOT, Reviewed
from tests.read_back.source import words_of_the_code

PAGE = ROOT / "docs" / "measures.md"
_HEAD = """# Dictionary of measures

What every key of a result means, by group: its name on a page, its unit, what it is, how it is computed, and
where it stands in the JSON document (`[]`: in a list, `*`: under any key). `moe-diag explain KEY` prints
the same. Made by a test from `reports/measures.toml` and the types in `heuristics/result`; do not edit.
"""
_COLUMNS = "| Key | Name | Unit | What | How | Where |\n| :-- | :-- | :-- | :-- | :-- | :-- |"
_MANY = 3
SHORT = {"faults"}
"""Keys that only the short results have."""


def fields() -> dict[str, list[str]]:
    """Keys of a result, each with its places."""
    found: dict[str, list[str]] = {}
    for place in places(Result):
        if not place.startswith("missing[]"):
            found.setdefault(key_of(place), []).append(place)
    for place in places(Brief):
        if key_of(place) in SHORT:
            found.setdefault(key_of(place), []).append(place)
    return found


def key_of(place: str) -> str:
    return place.rpartition(".")[2].replace("[]", "")


def page() -> Iterator[str]:
    found = fields()
    yield _HEAD
    for group, title in GROUPS.items():
        yield f"## {title}\n\n{_COLUMNS}"
        for one in measures().values():
            if one.group == group:
                where = found.get(one.name, [])
                shown = ", ".join(f"`{place}`" for place in where[:_MANY])
                more = f" and {len(where) - _MANY} more" if len(where) > _MANY else ""
                cells = (f"`{one.name}`", one.title, one.unit, one.what, one.how, shown + more)
                yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        yield ""
    yield "## Where a key means something else\n\n| Section and key | What |\n| :-- | :-- |"
    yield from (f"| `{place}` | {what} |" for place, what in elsewhere().items())
    yield ""


def test_every_key_of_a_result_has_its_words() -> None:
    assert [key for key in fields() if key not in measures()] == []


def test_every_measure_is_a_key_of_a_result_or_a_word_in_it() -> None:
    words = {*fields(), *words_of_the_code()}
    assert [name for name in measures() if name not in words and f"longest_{name}" not in words] == []


def test_the_published_dictionary_is_that_of_the_measures(reviewed: Reviewed) -> None:
    text = "\n".join(page())
    assert text == reviewed(PAGE, text)
