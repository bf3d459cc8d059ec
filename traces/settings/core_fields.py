"""Fields of Megatron-Core's configuration by version, as `core_fields.toml` has them."""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from traces.frozen import frozen
from traces.settings.settings import Value, Values
from traces.toml_tables import read_table


@frozen
class Field:
    """A field that some versions lack: in which it first is, in which it last is, and its default
    there.

    `until` is empty where it is still on main.
    """

    since: str
    until: str
    default: Value


class _Since(Struct, forbid_unknown_fields=True):
    off: str = ""
    unset: str = ""
    others: Values = {}

    @property
    def defaults(self) -> Values:
        off, unset = dict.fromkeys(self.off.split(), False), dict.fromkeys(self.unset.split())
        return {**off, **unset, **self.others}


class _Table(Struct, forbid_unknown_fields=True):
    always: str
    of_mla: str
    until: dict[str, str]
    since: dict[str, _Since]


@frozen
class CoreFields:
    """Fields of the configuration: of all versions, of multi-latent attention alone, of some
    versions.
    """

    always: frozenset[str]
    of_mla: frozenset[str]
    sometimes: Mapping[str, Field]

    def __contains__(self, knob: str) -> bool:
        return knob in self.always or knob in self.sometimes


@cache
def core_fields() -> CoreFields:
    """The table, read where Megatron-Core is asked."""
    table = read_table("traces.settings", "core_fields.toml", _Table)
    sometimes = {}
    for since, brought in table.since.items():
        for name, default in brought.defaults.items():
            sometimes[name] = Field(since, table.until.get(name, ""), default)
    return CoreFields(frozenset(table.always.split()), frozenset(table.of_mla.split()), sometimes)
