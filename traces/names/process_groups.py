"""Process groups and collectives by the names that PyTorch, NCCL and Megatron-Core give them.

A description is the user's own text: only those that `process_groups.toml` knows go further.
"""

from functools import cache
from typing import Final

from traces.patterns import Pattern, compiled
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

EVERYBODY: Final = "default_pg"
"""PyTorch's description of the group of all ranks."""


class _Row(TableRow):
    pattern: Pattern
    settings: Texts


class _Table(TableRow):
    operations: Texts
    rows: tuple[_Row, ...]


@cache
def _table() -> _Table:
    return read_table("traces.names", "process_groups.toml", _Table)


def _row(description: str) -> _Row | None:
    return next((row for row in _table().rows if row.pattern.fullmatch(description)), None)


def known_group(description: str) -> str | None:
    """The description where it is one that we know, else None."""
    if _row(description):
        return description
    return None


def settings_of(description: str) -> Texts:
    """The settings, by Megatron-Core's names, that make a group as large as it is."""
    row = _row(description)
    if row:
        return row.settings
    return ()


OTHER: Final = "OTHER"


def operation_named(text: str) -> str:
    """What a collective does: `nccl:_all_gather_base`, `ALLTOALL_BASE`, `AllReduce` -> ALLGATHER,
    ALLTOALL, ALLREDUCE; `OTHER` for what we do not know.
    """
    plain = compiled(r"[^A-Z]+").sub("", text.rpartition(":")[2].upper())
    for operation in _table().operations:
        if operation.replace("_", "") in plain:
            return operation
    return OTHER
