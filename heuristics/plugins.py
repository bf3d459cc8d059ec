"""Packages of others that add rules and fixes: found by their entry points, and what was left out
of them.

Group `moe_diag.fixes`: a `Fix` or several (`heuristics/fixes/added.py`). Group `moe_diag.rules`: a
package whose TOML files are tables of rules, written as those in `heuristics/rules`
(`heuristics/rules/rules.py`). Both are loaded where a run is judged, and where `explain` is asked.
What cannot be used is left out whole and named in `problems`, which every result has as warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from traces.texts import Texts

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["moe_diag.fixes", "moe_diag.rules"]
_PROBLEMS: Final[dict[str, None]] = {}


class WrongPlugin(ValueError):
    """What a plug-in offers cannot be used; the message is one clause."""


@cache
def offered(group: Group) -> tuple[EntryPoint, ...]:
    """What is installed beside this program, in one order on every machine."""
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda entry: (name_of(entry), entry.value)))


def name_of(entry: EntryPoint) -> str:
    """The package that offers it, with its version, and the name it gave."""
    package = (
        f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package without a name"
    )
    return f"plug-in {package} ({entry.name})"


@contextmanager
def left_out_if_wrong(entry: EntryPoint) -> Iterator[None]:
    """Whatever goes wrong with a plug-in is noted, and ends nothing."""
    try:
        yield
    except Exception as error:  # code of others may raise anything
        note(entry, error)


def note(entry: EntryPoint, error: Exception, then: str = "is left out") -> None:
    """Put a problem among the warnings. Texts of foreign errors may hold paths, so their type
    stands.
    """
    why = str(error) if isinstance(error, WrongPlugin) else f"it raised {type(error).__name__}"
    _PROBLEMS[f"{name_of(entry)} {then}: {why}"] = None


def problems() -> Texts:
    """What was left out so far and why, a sentence each."""
    return tuple(_PROBLEMS)
