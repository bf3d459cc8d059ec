"""Where the time of figures goes, any of which may lack, and which undecided walls they point at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from heuristics.config.observed import Observed
from heuristics.figures.figures import Figures, frac_of
from heuristics.result.judged import Wall
from heuristics.walls import JUDGES
from heuristics.walls.bound import Bound, find_bound, largest_bucket, unproven_by_figures
from heuristics.walls.price import Unpriced
from tests.doubles.opinions import NOBODY, rank, wall, walls
from traces.missing import Missing
from traces.sections.tables import WallId

NOTHING = structs.replace(
    rank().memory, offload_exposed_ns=NOBODY, host_resident_exposed_ns=NOBODY, recompute_ns=NOBODY,
    peak_bytes=NOBODY,
)  # fmt: skip
WHOLE: dict[str, Any] = {
    "starved_ns": {"python": 300},
    "budget_ns": {"compute": 400, "exposed_comm": 300},
    "blocking_ns": {"tp": 200, "memcpy_d2h": 100},
    "recomputed_ns": 0,
}
"""Of 1000 ns compute is 400, the host's 300; compute waits 200 for the 300 of exposed communication."""
UNDECIDED = walls(memory=None, communication=None, host_overhead=None, compute=None)
UNBOUND = Bound(None, "")


def given(window_ns: int = 1_000, **what: Any) -> Figures:
    figures: dict[str, Any] = {"memory": NOTHING, "judged_ns": window_ns} | what
    return Figures(window_ns=window_ns, **figures)


@pytest.mark.parametrize("lacking", ["", *WHOLE])
def test_a_bound_needs_every_part_but_what_compute_waits_for(lacking: str) -> None:
    """Without that, communication is as much as is exposed of it."""
    found = find_bound([given(**{key: part for key, part in WHOLE.items() if key != lacking})])
    waits = {"": "20 %", "blocking_ns": "30 %"}.get(lacking)
    if waits is not None:
        assert found.bucket == "compute"
        assert f"communication {waits}" in found.because
    else:
        assert found.bucket is None
        assert found.because.startswith(("neither compute", "where the time of the window goes is unknown"))


def test_compute_that_was_not_given_fills_nothing_and_without_any_nobody_knows() -> None:
    exposed, halves = given(budget_ns={"exposed_comm": 501}), {"compute": 500, "exposed_comm": 500}
    assert find_bound([given(budget_ns={"compute": 501})]).bucket == "compute"
    assert find_bound([given(budget_ns=halves)]).because.startswith("neither compute (50 %)")
    assert find_bound([exposed]).bucket == "communication"
    assert find_bound([exposed, given()]).bucket is None
    assert find_bound([given()]) == Bound(
        None, "where the time of the window goes is unknown", "give budget_frac"
    )
    half = given(500, budget_ns={"compute": 500})
    assert find_bound([half, given(500, budget_ns={"exposed_comm": 500})]).bucket is None
    assert find_bound([given(comm_known=False)]).cure != "give budget_frac"
    unheard = WHOLE | {"budget_ns": {"compute": 501}, "blocking_ns": None}
    assert find_bound([given(**unheard)]).because == "compute fills 50 % of the windows, over half"


def test_a_rank_of_whole_graphs_says_what_its_own_recorder_would_need() -> None:
    blind = given(comm_known=False, observed=Observed(recorder="kineto"))
    nsys = given(observed=Observed(recorder="nsys-sqlite"), budget_ns={"compute": 900})
    assert "CUPTI does by default" in find_bound([nsys, blind, given(comm_known=False)]).cure


def test_the_largest_bucket_is_of_all_windows_and_of_equals_the_first() -> None:
    told, untold = given(budget_ns={"idle": 300, "exposed_comm": 300}), given(2_000)
    assert largest_bucket([told, untold]) == ("exposed_comm", 0.1)
    assert largest_bucket([untold]) is None
    assert largest_bucket([given(budget_ns={"idle": 2, "compute": 1})]) == ("idle", 0.002)


def test_idle_time_is_of_the_windows_that_tell_it() -> None:
    ranks = [
        given(budget_ns={"idle": 300}),
        given(3_000, budget_ns={"idle": 500}),
        given(budget_ns={"compute": 9}),
    ]
    assert frac_of(ranks, "idle_ns") == 0.2
    assert frac_of(ranks[2:], "idle_ns") is None


def test_figures_that_were_not_given_stand_beside_no_wall() -> None:
    found = {judge.__name__: judge.judge([given()], Unpriced(NOBODY)) for judge in JUDGES}
    assert {name: one.evidence for name, one in found.items() if one.evidence} == {}
    assert {one.outcome for one in found.values()} == {"unmeasurable"}


def pointed_at(
    ranks: Sequence[Figures], found: Sequence[Wall] = UNDECIDED, bound: Bound = UNBOUND
) -> dict[WallId, str]:
    return {wall_id: why.reason for wall_id, why in unproven_by_figures(ranks, found, bound).items()}


@pytest.mark.parametrize(
    ("budget_ns", "expected"),
    [
        ({"idle": 100}, {"host_overhead": "10 %"}),
        ({"idle": 99}, {}),
        ({"compute": 700, "idle": 200}, {"host_overhead": "20 %", "communication": "10 %"}),
        ({"compute": 700, "idle": 100}, {"communication": "20 %", "host_overhead": "10 %"}),
        ({"compute": 810, "idle": 91}, {}),
        ({"compute": 100}, {}),  # what is idle of the rest was not given
    ],
)
def test_idle_time_and_time_of_neither_kind_point_at_walls_the_largest_first(
    budget_ns: dict[str, int], expected: dict[str, str]
) -> None:
    found = pointed_at([given(budget_ns=budget_ns)])
    assert list(found) == list(expected)
    for wall_id, frac in expected.items():
        assert f"{frac} of the windows" in found[wall_id]  # type: ignore[index]


@pytest.mark.parametrize(("memory", "said"), [
    ({"recompute_ns": 30}, "take 3.0 %"), ({"recompute_ns": 30, "offload_exposed_ns": 20}, "take 5.0 %"),
    ({"offload_exposed_ns": 20, "peak_bytes": 76, "capacity_bytes": 80}, "take 2.0 %"),
    ({"peak_bytes": 72, "capacity_bytes": 80}, "90 % of the memory"),
    ({"peak_bytes": 71, "capacity_bytes": 80}, None), ({"recompute_ns": 0, "offload_exposed_ns": 0}, None),
])  # fmt: skip
def test_memory_is_pointed_at_by_what_is_paid_for_it_else_by_how_full_it_is(
    memory: dict[str, int], said: str | None
) -> None:
    found = pointed_at([given(memory=structs.replace(NOTHING, **memory))])
    assert list(found) == ([] if said is None else ["memory"])
    assert said is None or said in found["memory"]
    full = [given(), given(memory=structs.replace(NOTHING, **memory))]  # one full rank is enough
    for order in (full, full[::-1]):
        assert ("memory" in pointed_at(order)) == (said is not None)
    paid = [given(window_ns, memory=structs.replace(NOTHING, recompute_ns=30)) for window_ns in (50, 25)]
    assert "take 80 %" in pointed_at(paid)["memory"]


def test_what_costs_memory_comes_before_memory_that_is_only_full() -> None:
    full = structs.replace(NOTHING, peak_bytes=80, capacity_bytes=80)
    assert list(pointed_at([given(memory=full, budget_ns={"idle": 100})])) == ["host_overhead", "memory"]
    paying = structs.replace(full, recompute_ns=200)
    assert list(pointed_at([given(memory=paying, budget_ns={"idle": 100})])) == ["memory", "host_overhead"]


def test_only_walls_that_are_undecided_are_pointed_at() -> None:
    decided = walls(host_overhead=20, communication=None)
    assert pointed_at([given(budget_ns={"compute": 500, "idle": 200})], decided).keys() == {"communication"}


@pytest.mark.parametrize(
    ("bucket", "found", "expected"),
    [
        ("compute", walls(memory=5), "no wall's cost bounds it"),
        ("compute", walls(compute=None), "what it costs is unknown: nobody looked"),
        ("compute", [structs.replace(one, missing=()) for one in walls(compute=None)],
         "no wall's cost bounds it"),
        *(("compute", walls()[:3], "no wall's cost bounds it"), ("compute", walls(memory=None), None)),
        *(("compute", [wall("memory", None, "finding"), *walls()[1:]], None), ("memory", walls(), None)),
        (None, walls(), None),
    ],
)  # fmt: skip
def test_a_step_bound_by_compute_has_levers_where_every_other_wall_has_a_price(
    bucket: WallId | None, found: list[Wall], expected: str | None
) -> None:
    told = unproven_by_figures([given()], found, Bound(bucket, ""))
    assert list(told) == ([] if expected is None else ["compute"])
    if expected is not None:
        assert isinstance(told["compute"], Missing)
        assert expected in told["compute"].reason
