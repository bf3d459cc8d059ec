"""Facts of a run from `moe-diag.toml`, or `[tool.moe-diag]` of pyproject.toml, so that no line
repeats them.

The file is looked for in the working folder and, inside a repository, in the folders above it up to
its root. What is typed wins, fact by fact. The file may have come with the folder, from somebody
else: it names no file outside of that folder, or of the repository.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from diagnoser.options.given import BY_OPTION, KINDS, given_from
from diagnoser.output import say
from diagnoser.running.inputs.named import is_within
from heuristics.config.about import OPTIONS, option_of
from traces.errors import InputError, UsageError, reason_of
from traces.files.plain_file import read_text
from traces.nearest import nearest
from traces.spelling import printable
from traces.texts import Texts

R = TypeVar("R")

OWN: Final = "moe-diag.toml"
_FILES: Final = ("config", "log")
"""Facts that are files, by a path from the folder of the file that names them."""


class WrongFacts(InputError):
    """A file of facts that cannot be read, or holds what is none."""


class FactsFile(NamedTuple):
    """What one file says of a run: `about` by the fields of `Given`, and files by their option."""

    file: Path
    about: Mapping[str, object]
    files: Mapping[str, Path]


def with_facts(asked: "partial[R]", wanted: bool, of_place: bool = False) -> "partial[R]":
    """A request with the facts of the file that is near, which is said; as it is where there is
    none.

    `of_place`: only those of machines and programs, for a configuration that may be another one.
    Raises `WrongFacts`.
    """
    facts = facts_near(Path.cwd()) if wanted else None
    if facts is None:
        return asked
    typed, about, files, fact_names = asked.keywords, {}, {}, []
    for name, value in facts.about.items():
        if name not in typed["about"] and (OPTIONS[name].is_of_place or not of_place):
            about[name] = value
            fact_names.append(option_of(name)[2:])
    for name, path in facts.files.items():
        if not of_place and typed.get(name) is None:
            files[name] = path
            fact_names.append(name)
    if fact_names:
        say(f"facts from {facts.file.name}: {', '.join(fact_names)}")
    return partial(asked.func, **{**typed, **files, "about": {**about, **typed["about"]}})


def facts_near(folder: Path) -> FactsFile | None:
    """The facts of the nearest file that has some. Raises `WrongFacts`."""
    places = _folders(folder)
    top = places[-1]
    for place in places:
        if (own := place / OWN).is_file():
            return _facts(own, _table(own, _read(own, top)), top)
        shared = place / "pyproject.toml"
        if (
            shared.is_file()
            and is_within(shared, top)
            and "[tool.moe-diag]" in (text := _read(shared, top))
        ):
            return _facts(shared, _table(shared, text).get("tool", {}).get("moe-diag", {}), top)
    return None


def _folders(folder: Path) -> list[Path]:
    """The folder, and those above it up to the root of its repository; outside of one the folder
    alone.
    """
    above = [folder, *folder.parents]
    for place, above_folder in enumerate(above):
        if (above_folder / ".git").exists():
            return above[: place + 1]
    return [folder]


def _read(path: Path, top: Path) -> str:
    if not is_within(path, top):
        raise _wrong(path, "it is a link out of its folder, which is not followed")
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise _wrong(path, f"it cannot be read ({reason_of(error)})") from None


def _table(path: Path, text: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError) as error:
        raise _wrong(path, f"it is no TOML ({error})") from None


def _facts(path: Path, table: Mapping[str, object], top: Path) -> FactsFile:
    about = {}
    files = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in _FILES:
            if not isinstance(value, str):
                raise _wrong(path, f"{key} must be a text, the path of a file")
            files[name] = path.parent / value
            if not is_within(files[name], top):
                raise _wrong(path, f"{key} is a file elsewhere, which only --{key} FILE may name")
        elif (field := BY_OPTION.get(name, name)) in OPTIONS:
            about[field] = _value(path, key, OPTIONS[field].kind, value)
        else:
            raise _wrong(
                path,
                f"nothing is known of {printable(key, 60)!r}. {_near(name, (*BY_OPTION, *_FILES))}",
            )
    try:
        given_from(about)
    except UsageError as error:
        raise _wrong(path, str(error).rstrip(".")) from None
    return FactsFile(path, about, files)


def _value(path: Path, key: str, kind: type, value: object) -> object:
    if kind is str and isinstance(value, list) and all(isinstance(text, str) for text in value):
        return ",".join(value)
    if kind is list and isinstance(value, dict):
        return [f"{name}={text}" for name, text in value.items()]
    if type(value) is not kind:
        raise _wrong(path, f"{key} must be {KINDS[kind]}")
    return value


def _near(name: str, known: Texts) -> str:
    near = nearest(name, known)
    if near:
        return f"Did you mean {near}?"
    return f"There are {', '.join(known)}"


def _wrong(path: Path, what: str) -> WrongFacts:
    end = "" if what.endswith("?") else "."
    return WrongFacts(f"{path.name}: {what}{end} --no-facts leaves the file out")
