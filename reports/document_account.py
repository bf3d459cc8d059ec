"""The account of time without compute in `ranks[]`."""

from __future__ import annotations

from typing import Any

from traces.account.account import Account
from traces.missing import Missing

_KEYS = ("absent_ns", "masked_ns", "absent_decided_by_frac")


def account_section(account: Account | Missing) -> dict[str, Any]:
    """`absent_ns` adds up to window - compute; all None where there is no account."""
    if isinstance(account, Missing):
        return dict.fromkeys(_KEYS)
    total_ns = account.total_ns
    return {
        "absent_ns": {
            "launch_starved": dict(account.launch_starved_ns),
            "blocking": dict(account.blocking_ns),
            "launch_latency": {"arrival": account.arrival_ns, "kernel_gap": account.kernel_gap_ns},
            "graph_opaque": account.graph_opaque_ns,
            "dependency_stalled": account.dependency_stalled_ns,
            "trailing": account.trailing_ns,
        },
        "masked_ns": account.masked_ns,
        "absent_decided_by_frac": {
            by: ns / total_ns if total_ns else 0.0 for by, ns in account.decided_ns.items()
        },
    }


def account_gaps(path: str, account: Account | Missing, clock_offset_ns: int | None) -> list[Missing]:
    """Entries for what is None in the account of the rank at `path`."""
    if not isinstance(account, Missing):
        return []
    keys = [*_KEYS, *(["clock_offset_ns"] if clock_offset_ns is None else [])]
    return [Missing(f"{path}.{key}", account.reason, account.cure) for key in keys]
