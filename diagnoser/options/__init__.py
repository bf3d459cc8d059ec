"""Options, each written once in `options.toml`, which says what its fields are, and what a shell
completes.

A field of a request (`diagnoser.options.requests`) or a parameter of a command is one by its name.
What a shell completes is asked at each Tab: nothing heavy is loaded.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, get_args

from msgspec.structs import replace

from heuristics.config.about import Guidance
from reports.formats import FRAMEWORKS, ResultKind, named
from traces.formats.readers import Reader
from traces.patterns import compiled
from traces.sections.tables import WallId
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

Place = str | PathLike[str]

Flavor = StrEnum("Flavor", "GITHUB JIRA")
Answer = StrEnum("Answer", "PASS FAIL")
"""Of a gate, as `heuristics.result.gate` has them, which loads msgspec; a test holds them
together."""
Edition = StrEnum("Edition", {one.upper(): one for one in get_args(Guidance)})  # type: ignore[misc]

ARGUMENTS: Final = "Arguments"
_HEURISTICS: Final = Path(__file__).resolve().parents[2] / "heuristics"
_FIX: Final = compiled(r"(?m)^\[([A-Z]+-\d{1,4})\]")


class OptionRow(TableRow):
    """An option or an argument."""

    help: str
    title: str = ""
    takes: str = ""
    flags: Texts = ()
    kind: Literal["", "file", "files", "texts", "answer", "reader", "count", "forms"] = ""
    words: str = ""
    least: int | None = None
    is_first: bool = False
    shows_default: bool = False
    is_repeated: bool = True


@cache
def rows() -> Mapping[str, OptionRow]:
    """By parameter, or `command.parameter` where it is that command's alone, in the order of the
    help.
    """
    rows_by_name = {}
    for title, rows_of_title in by_title().items():
        for name, row in rows_of_title.items():
            rows_by_name[name] = replace(row, title=title)
    return rows_by_name


@cache
def by_title() -> Mapping[str, Mapping[str, OptionRow]]:
    return read_table("diagnoser.options", "options.toml", dict[str, dict[str, OptionRow]])


def typed_as(row: OptionRow, of: ResultKind) -> tuple[Any, Any]:
    """What the parser makes of a row whose kind is not what the API takes, and its default."""
    forms: Any = StrEnum("Form", [*map(str.upper, named(of))])  # type: ignore[misc]
    kinds = {
        "file": (Path | None, None),
        "files": (list[Path], ()),
        "texts": (list[str], ()),
        "answer": (Answer | None, None),
        "reader": (Reader, Reader.AUTO),
        "count": (int | None, None),
        "forms": (list[forms] | None, None),
    }
    return kinds[row.kind]


def explain_words(incomplete: str) -> list[str]:
    from reports.measures import glossary, measures

    fixes = []
    for wall in get_args(WallId):
        fixes += _FIX.findall((_HEURISTICS / "fixes" / f"{wall}.toml").read_text(encoding="utf-8"))
    words = glossary()
    own = (*words["word"], *words["screen"], *words["field"])
    return _beginning(incomplete, (*get_args(WallId), *fixes, *words["finding"], *measures(), *own))


def scenarios(incomplete: str) -> list[str]:
    from diagnoser.demo import RECORDINGS

    return _beginning(incomplete, ("list", *RECORDINGS))


def patches(incomplete: str) -> list[str]:
    return _beginning(incomplete, FRAMEWORKS)


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


COMPLETED: Final = {"explain": explain_words, "scenarios": scenarios, "patches": patches}
