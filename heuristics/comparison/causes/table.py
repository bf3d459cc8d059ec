"""The one table of causes, `causes.toml`, as it stands: by what shows them, with the sets of names
in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from traces.names.kernels import compute_classes
from traces.texts import Texts
from traces.toml_tables import TableRow, place, written

_TABLE: Final = ("heuristics.comparison.causes", "causes.toml")
PLACE: Final = place(*_TABLE)
Written = Mapping[str, Any]
Witness = Literal["traces", "files"]


class Cause(TableRow, kw_only=True):
    """One cause, whatever shows it. `mirrored`: its title where it went away; `next`: how to be
    sure.
    """

    id: str
    title: str
    mirrored: str
    next: str

    def titled(self, mirrored: bool) -> str:
        if mirrored:
            return self.mirrored
        return self.title


@cache
def table() -> Written:
    """The file; its set `classes` is all classes of compute."""
    written_table = written(*_TABLE)
    written_table["sets"]["classes"] = [f"compute.{class_}" for class_ in compute_classes()]
    return written_table


def shown_by(witness: Witness) -> Iterator[dict[str, Any]]:
    """Causes that a kind of evidence can show, each with what shows it there, in their order."""
    for id_, row in table()["causes"].items():
        if witness in row:
            common = {field: row[field] for field in ("title", "mirrored", "next")}
            yield {"id": id_, **common, **row[witness]}


@cache
def named(*names: str) -> Texts:
    """A list in which `@name` stands for a set of the table."""
    return tuple(_listed(names, table()["sets"]))


def expanded(row: Written, family: Written, key: str) -> dict[str, Any]:
    """A row with names for its sets, and the key, lists and texts of a family, if it is of one."""
    sets = {**table()["sets"], **{f"family_{name}": names for name, names in family.items()}}
    texts = {"next": table()["families_next"], **family, "key": key}
    texts["word"] = "unnamed" if key == "other" else key

    def filled(written: Any) -> Any:
        if isinstance(written, list):
            return [*map(filled, _listed(written, sets))]
        if isinstance(written, str):
            for name, text in texts.items():
                written = written.replace(f"{{{name}}}", str(text))
        return written

    return {field: filled(written) for field, written in row.items()}


def _listed(written: Iterable[Any], sets: Written) -> Iterator[Any]:
    for name in written:
        if isinstance(name, str) and name.startswith("@"):
            yield from _listed(sets.get(name[1:], ()), sets)
        else:
            yield name
