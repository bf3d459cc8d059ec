"""Our own tables: TOML files beside the code, read as a whole into the types of their rows."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final, TypeVar, dataclass_transform, get_origin

import tomli
from msgspec import Struct, ValidationError, convert

from traces.patterns import Match, Pattern, WrongPattern, compiled, whole_number

Readers = Mapping[Any, Callable[[Any], object]]
"""Type of a field that TOML has not -> what makes it of what is written; ValueError: it is none."""

_Read = TypeVar("_Read")
_PLACE: Final = compiled(r" - at (?:`key` in )?`\$(.*)`$")
_STEP: Final = compiled(r"\.([\w-]+)|\[(\.{3}|\d{1,9})\]")


@dataclass_transform(frozen_default=True)
class TableRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a table of ours, or a table: what it does not know is an error."""


class WrongRow(ValueError):
    """A table that cannot be read; the message names the file, the row by its id or key, and the
    field.
    """


def read_table(package: str, name: str, kind: type[_Read], readers: Readers | None = None) -> _Read:
    """A table of a package as `kind`: a struct that forbids unknown fields, or a dict or tuple of
    such.

    "null" is None, as TOML has none. Fields of type `Pattern` are compiled; `readers` makes those
    of other types. Raises `WrongRow`.
    """
    return read_rows(written(package, name), kind, place(package, name), readers)


def read_keyed(
    package: str, name: str, row: type[_Read], readers: Readers | None = None
) -> dict[str, _Read]:
    """A table of rows, each under its id, in its order. Raises `WrongRow`."""
    return read_rows(keyed(written(package, name)), dict[str, row], place(package, name), readers)  # type: ignore[valid-type]


def written(package: str, name: str) -> dict[str, Any]:
    """A table of a package as it stands."""
    return tomli.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


def place(package: str, name: str) -> str:
    """A table of a package, as errors name it."""
    return f"{package.replace('.', '/')}/{name}"


def keyed(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows that stand under their ids, each with its id."""
    return {id: {"id": id, **row} if isinstance(row, dict) else row for id, row in rows.items()}


def read_rows(
    written: dict[str, Any], kind: type[_Read], table: str, readers: Readers | None = None
) -> _Read:
    """The rows of a table that is parsed already; `table`: its name in errors."""
    document = _with_nulls(written)
    make: Readers = {Pattern: _pattern, **(readers or {})}

    def made(of: type, value: Any) -> Any:
        return make[get_origin(of) or of](value)

    def read() -> _Read:
        return convert(document, kind, dec_hook=made)

    try:
        return read()
    except ValidationError as error:
        place = _PLACE.search(str(error))
        reason = str(error)[: place.start()] if place else str(error)
        where = ", ".join((table, *(_names(document, place[1], read) if place else ())))
        raise WrongRow(f"{where}: {reason}") from None


def _with_nulls(written: Any) -> Any:
    if isinstance(written, dict):
        return {name: _with_nulls(value) for name, value in written.items()}
    if isinstance(written, list):
        return [*map(_with_nulls, written)]
    if written == "null":
        return None
    return written


def _pattern(text: str) -> Pattern:
    try:
        return compiled(text)
    except WrongPattern as error:
        raise ValueError(f"{text}: {error}") from None


def _names(written: Any, path: str, read: Callable[[], object]) -> list[str]:
    """The steps to what is wrong: fields and keys by name, rows by their id, else counted from
    1.
    """
    at, names = written, list[str]()
    for field, place in map(Match.groups, _STEP.finditer(path)):
        if (number := whole_number(place or "")) is not None:
            at = at[number]
            row = at["id"] if isinstance(at, dict) and "id" in at else number + 1
            names[-1] += f" {row}"
        else:
            name = field or _first_wrong(at, read)
            at = at.get(name)
            names.append(name)
    return names


def _first_wrong(at: dict[str, Any], read: Callable[[], object]) -> str:
    """The key that msgspec does not name: the first with which the table reads no more."""
    entries = dict(at)
    at.clear()
    for name, value in entries.items():
        at[name] = value
        try:
            read()
        except ValidationError:
            return name
    raise AssertionError("the table read when it was read again")
