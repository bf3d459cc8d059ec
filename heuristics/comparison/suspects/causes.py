"""The table of causes, `causes.toml`, as it stands, and the sets of names in it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from traces.names.kernels import compute_classes
from traces.toml_tables import written

Written = Mapping[str, Any]


@cache
def table() -> Written:
    """The file; its set `classes` is all classes of compute."""
    found = written("heuristics.comparison.suspects", "causes.toml")
    found["sets"]["classes"] = [f"compute.{class_}" for class_ in compute_classes()]
    return found


@cache
def named(*names: str) -> tuple[str, ...]:
    """A list in which `@name` stands for a set of the table."""
    return tuple(_listed(names, table()["sets"]))


def expanded(row: Written, family: Written, key: str) -> dict[str, Any]:
    """A row with names for its sets, and the key, lists and texts of a family, if it is of one."""
    sets = {**table()["sets"], **{f"family_{name}": one for name, one in family.items()}}
    texts = {"next": table()["families_next"], **family, "key": key}

    def filled(written: Any) -> Any:
        if isinstance(written, list):
            return [*map(filled, _listed(written, sets))]
        if isinstance(written, str):
            for name, text in texts.items():
                written = written.replace(f"{{{name}}}", str(text))
        return written

    return {field: filled(written) for field, written in row.items()}


def _listed(written: Iterable[Any], sets: Written) -> Iterator[Any]:
    for one in written:
        if isinstance(one, str) and one.startswith("@"):
            yield from _listed(sets.get(one[1:], ()), sets)
        else:
            yield one
