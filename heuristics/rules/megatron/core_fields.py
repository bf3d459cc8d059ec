"""Fields of Megatron-Core's configuration by version, as `core_fields.toml` has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from traces.settings.settings import Value
from traces.toml_tables import read_table


@dataclass(frozen=True, slots=True)
class Field:
    """A field that some versions lack: in which it first is, in which it last is, and its default there.

    `until` is empty where it is still on main.
    """

    since: str
    until: str
    default: Value


class _Since(Struct, forbid_unknown_fields=True):
    off: str = ""
    unset: str = ""
    others: dict[str, Value] = {}

    @property
    def defaults(self) -> dict[str, Value]:
        off, unset = dict.fromkeys(self.off.split(), False), dict.fromkeys(self.unset.split())
        return {**off, **unset, **self.others}


class _Table(Struct, forbid_unknown_fields=True):
    always: str
    of_mla: str
    until: dict[str, str]
    since: dict[str, _Since]


_TABLE: Final = read_table("heuristics.rules.megatron", "core_fields.toml", _Table)
ALWAYS: Final = frozenset(_TABLE.always.split())
OF_MLA: Final = frozenset(_TABLE.of_mla.split())
SOMETIMES: Final[Mapping[str, Field]] = {
    name: Field(since, _TABLE.until.get(name, ""), default)
    for since, brought in _TABLE.since.items()
    for name, default in brought.defaults.items()
}


def is_core_field(knob: str) -> bool:
    """Whether some version has a field of this name."""
    return knob in ALWAYS or knob in SOMETIMES
