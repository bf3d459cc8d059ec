"""ACME-1: the cluster's own rails for NCCL."""

from __future__ import annotations

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix
from heuristics.fixes.precondition import Precondition
from heuristics.run.run import Run


def change(run: Run) -> Change:
    """Two variables, in every framework; knobs of Megatron go into `Change({"knob": value})`."""
    del run
    return Change(launch=("NCCL_IB_HCA=mlx5_0,mlx5_3", "NCCL_CROSS_NIC=0"))


def advice(run: Run) -> tuple[Precondition, ...]:
    """What it needs to pay: met, unmet (then it is refused) or unknown, with what would tell."""
    del run
    return (Precondition("the job runs on partition east", "unknown", told_by="squeue"),)


FIXES: Final = (
    Fix(
        id="ACME-1",
        wall="communication",
        title="Keep NCCL on the two rails of partition east",
        kinds=("ep_dispatch", "ep_combine"),
        change=change,
        advice=advice,
        versions="every release",
        verify="bytes per second of dispatch and combine rise",
        sources=("ACME cluster handbook, section 7",),
        any_framework=True,
    ),
)
