"""Exchanges that one recording separates and another does not: one row on both sides."""

from collections.abc import Callable
from functools import partial
from typing import Final

from traces.limits import Limit
from traces.missing import known
from traces.sections.rank import Rank

_DIRECTED: Final = ("ep_dispatch", "ep_combine")
_OPEN: Final = {
    "sendrecv_unresolved": (*_DIRECTED, "ep_a2a", "pp_p2p", "cp", "sendrecv_unresolved"),
    "ep_a2a": (*_DIRECTED, "ep_a2a"),
}
"""Kinds of exchanges whose purpose or direction is unknown, each with all that such an exchange may be."""
TOLD: Final = Limit(
    0.05,
    "of the exchanges",
    "ours: at the borders of a window a few are unresolved; more is a recording that resolves less",
)


def exchange_rows(base: Rank, new: Rank) -> Callable[[str], str]:
    """Name of a row -> its name on both sides: that of all it may be, where a side knows less of it."""
    for kind, whole in _OPEN.items():
        one, other = _part(base, kind, whole), _part(new, kind, whole)
        if one is not None and other is not None and abs(one - other) > TOLD.value:
            return partial(_renamed, kind, whole)
    return str


def _part(rank: Rank, kind: str, whole: tuple[str, ...]) -> float | None:
    """How many of some exposed exchanges are of one kind; None where there are none."""
    counts = {row.row: row.count for row in known(rank.ledger) or () if row.group == "budget"}
    number = sum(counts.get(f"exposed_comm.{one}", 0) for one in whole)
    return counts.get(f"exposed_comm.{kind}", 0) / number if number else None


def _renamed(kind: str, whole: tuple[str, ...], row: str) -> str:
    bucket, _, what = row.partition(".")
    return f"{bucket}.{kind}" if bucket in ("exposed_comm", "blocking") and what in whole else row
