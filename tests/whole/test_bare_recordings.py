"""Six recordings without ranges, or with few, and the truth of a simulator that is none of ours.

Its truth is given for each stretch of whole steps that a reader may choose: the row of as many steps counts
whose length is nearest. Late launches are counted a second time here, from the rows of the file alone.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import diagnoser

POINTS: Final = 0.015
NAMES: Final = (
    "comm-hidden-46-nvtx.sqlite", "dense-dp-45.sqlite", "mem-churn-42.sqlite", "mem-recompute-41.sqlite",
    "overlap-edges-43.sqlite", "overlap-edges-44-nvtx.sqlite",
)  # fmt: skip
_LAUNCHED: Final = (
    "SELECT k.start, k.end, r.end, s.value LIKE 'nccl%' FROM CUPTI_ACTIVITY_KIND_KERNEL k "
    "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN StringIds s ON s.id = k.demangledName"
)


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest, recordings: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """A recording, what is said of it, and the row of its truth for the steps that were used."""
    path = recordings / "bare" / request.param
    document = diagnoser.analyze(path, ask_megatron=False).to_dict()
    steps = document["ranks"][0]["steps"]
    truth = json.loads((path.parent / "truth.json").read_text())[path.name]["by_used_steps"]
    rows = [row for row in truth if row["n"] == len(steps["used"])]
    return path, document, min(rows, key=lambda row: abs(row["step_ns"] - steps["mean_ns"]))


Case = tuple[Path, dict[str, Any], dict[str, Any]]


def test_what_goes_without_a_handicap_is_what_it_truly_is(case: Case) -> None:
    path, document, true = case
    costs = {wall["id"]: wall["cost_frac"] for wall in document["walls"]}
    walls = ("communication", "host_overhead", *(["memory"] if path.name.startswith("mem-") else []))
    for wall in walls:
        assert costs[wall] == pytest.approx(true["saving"][wall], abs=POINTS), wall


def test_late_launches_and_exposed_all_to_all_have_their_true_share_of_the_step(case: Case) -> None:
    _, document, true = case
    rank = document["ranks"][0]
    window_ns, exposed_ns = rank["budget_ns"]["window"], rank["exposed_comm_by_kind_ns"]
    tokens_ns = sum(exposed_ns.get(kind, 0) for kind in ("ep_dispatch", "ep_combine", "ep_a2a"))
    starved_ns = sum(rank["absent_ns"]["launch_starved"].values())
    shares = {"exposed_a2a_ns": tokens_ns / window_ns, "launch_starved_ns": starved_ns / window_ns}
    assert shares == pytest.approx({key: true[key] / true["step_ns"] for key in shares}, abs=POINTS)
    assert "sendrecv_unresolved" not in exposed_ns


def test_late_launches_are_those_that_the_rows_of_the_file_show(case: Case) -> None:
    """One compute stream, and nothing the host waits for but its own stream, which is idle then."""
    path, document, _ = case
    rank = document["ranks"][0]
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        start, end, back, moves = np.array(connection.execute(_LAUNCHED).fetchall(), dtype=np.int64).T
    order = np.flatnonzero(moves == 0)[np.argsort(start[moves == 0])]
    first, last = rank["windows_ns"][0][0], rank["windows_ns"][-1][1]
    idle_since = np.maximum(np.append(first, end[order][:-1]), first)
    late = np.minimum(np.minimum(back, start)[order], last) - idle_since
    late_ns = late[(start[order] > first) & (late > 0)].sum()
    assert sum(rank["absent_ns"]["launch_starved"].values()) == late_ns
