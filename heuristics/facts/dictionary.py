"""The dictionary of facts: each name that conditions ask once, with what it is asked of, and what
answers it.

A fact is a function under its own name in the tables: its first argument is what is asked, its
docstring what it says, None that it is unknown. It stands with its subject; what is only read there
is a row of `read`, and what the language of conditions can say of other facts a row of
`facts.toml`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from traces.frozen import frozen
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

Asking = TypeVar("Asking", bound=Callable[..., object])


class FactHolder(Protocol):
    """What conditions are asked of."""

    @property
    def told(self) -> dict[str, object]:
        """Facts that were asked for before, by name."""

    @property
    def held(self) -> dict[str, bool | None]:
        """Conditions that were asked before, by text."""


@dataclass(frozen=True)
class Remembering:
    """What was asked of it before, as `Asked` has it: of each object its own."""

    told: dict[str, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    held: dict[str, bool | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def tells(self, name: str) -> Any:
        """What a fact says of it."""
        return answer(name, self)


@frozen
class Fact:
    """What answers a name. `view`: the type of what it is asked of.

    `knobs` it is made of; `option` that gives it.
    """

    of: Callable[[Any], object]
    view: type
    knobs: Texts = ()
    option: str = ""


DICTIONARY: Final[dict[str, Fact]] = {}
"""By name what the modules that are loaded state. A name has one meaning in every table."""


def enter(
    name: str, of: Callable[[Any], object], view: type | None = None, *knobs: str, option: str = ""
) -> None:
    """A function as a fact of that name, of the view that its argument is. ValueError: there is
    one.
    """
    if name in DICTIONARY:
        raise ValueError(f"{name} is a fact of {DICTIONARY[name].view.__name__} already")
    view = view or next(iter(of.__annotations__.values()))
    DICTIONARY[name] = Fact(of, view, knobs, option)


def told_by(*knobs: str, option: str = "") -> Callable[[Asking], Asking]:
    """A function that is a fact, with the knobs or the option that tell it."""

    def entered(of: Asking) -> Asking:
        enter(of.__name__, of, None, *knobs, option=option)
        return of

    return entered


fact: Final = told_by()
"""A function that is a fact, and that no knob alone tells."""


def read(view: type, name: str, *knobs: str, at: str = "", option: str = "") -> None:
    """A fact that is read of what is asked: at its own name where no other is named."""
    enter(name, attrgetter(at or name), view, *knobs, option=option)


def answer(name: str, view: FactHolder) -> Any:
    """What a fact says of what it is asked of, which it is asked once."""
    if name not in view.told:
        view.told[name] = DICTIONARY[name].of(view)
    return view.told[name]


class Says(TableRow, rename={"value": "is"}):
    """A case of a fact of `facts.toml`, which says what its fields are."""

    value: str = ""
    text: str = ""
    when: str = ""
    knobs: Texts = ()
    option: str = ""


@cache
def written_facts() -> dict[str, dict[str, tuple[Says, ...]]]:
    """Facts that conditions and texts say of others, by the name of the view that they are asked
    of.
    """
    table = read_table(
        "heuristics.facts", "facts.toml", dict[str, dict[str, str | tuple[Says, ...]]]
    )
    return {
        view: {name: (Says(row),) if isinstance(row, str) else row for name, row in rows.items()}
        for view, rows in table.items()
    }
