"""What the product finds in a hand-made run, as parts of time that add up to the integer."""

from __future__ import annotations

from collections.abc import Mapping

from traces.measurements import RankMeasurements
from traces.missing import Missing


class Parts(dict[str, float]):
    """Parts of time by name, none zero, seen to add up. `masked`, `decided`: of an account, as told there."""

    masked: float = 0
    decided: Mapping[str, float]


def in_unit(ns: int, unit_ns: int) -> float:
    """A plain int wherever it can be one."""
    return ns / unit_ns if ns % unit_ns else ns // unit_ns


def budget_parts(found: RankMeasurements, unit_ns: int) -> Parts:
    """The windows: compute by class, then exposed communication and copies by kind, then idle."""
    budget = found.budget
    parts_ns = {f"compute.{key}": ns for key, ns in budget.compute_by_class_ns.items()}
    parts_ns |= {f"exposed_comm.{kind}": ns for kind, ns in budget.exposed_comm_by_kind_ns.items()}
    parts_ns |= {f"exposed_copy.{kind}": ns for kind, ns in budget.exposed_copy_by_kind_ns.items()}
    parts_ns["idle"] = budget.idle_ns
    assert sum(parts_ns.values()) == budget.window_ns == found.steps.windows.total_ns
    assert _in_ledger(found, "budget") == budget.window_ns
    return _parts(parts_ns, unit_ns)


def account_parts(found: RankMeasurements, unit_ns: int) -> Parts:
    """Why no compute ran, by the names of the ledger; together the windows without compute."""
    account = found.account
    if isinstance(account, Missing):
        raise LookupError(account.reason)
    parts_ns = {f"launch_starved.{cause}": ns for cause, ns in account.launch_starved_ns.items()}
    parts_ns |= {f"blocking.{kind}": ns for kind, ns in account.blocking_ns.items()}
    parts_ns["launch_latency.arrival"] = account.arrival_ns
    parts_ns["launch_latency.kernel_gap"] = account.kernel_gap_ns
    for name in ("graph_opaque", "dependency_stalled", "trailing"):
        parts_ns[name] = getattr(account, f"{name}_ns")
    absent_ns = found.budget.window_ns - found.budget.compute_ns
    assert sum(parts_ns.values()) == absent_ns == sum(account.decided_ns.values())
    assert _in_ledger(found, "absent") == absent_ns
    parts = _parts(parts_ns, unit_ns)
    parts.masked = in_unit(account.masked_ns, unit_ns)
    parts.decided = _parts(account.decided_ns, unit_ns)
    return parts


def _in_ledger(found: RankMeasurements, group: str) -> int:
    return sum(sum(row.per_step_ns) for row in found.ledger if row.group == group)


def _parts(parts_ns: Mapping[str, int], unit_ns: int) -> Parts:
    return Parts({name: in_unit(ns, unit_ns) for name, ns in parts_ns.items() if ns})
