"""No wall is left without a step to take: where no change fits, how to find its cause."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

import diagnoser
from heuristics.result.result import Result
from reports.content.analysis import find_out as finding
from reports.content.analysis.find_out import find_out, with_finds
from reports.content.blocks import Step, words
from reports.result.codec import decode
from tests.by_hand.run import Run, written
from tests.doubles.pages import first_screen, flat
from tests.recordings.inputs import changed
from tests.recordings.simulated import scenario

CHANGE = Step("HST-3", words("Launch as graphs"), "targets 10 %", (), high=0.1, replayed=False)


def of(name: str) -> Result:
    return decode(scenario(name), Result)


def titles(steps: list[Step]) -> list[str]:
    return [str(step.title[0]) for step in steps]


def test_a_wall_that_no_change_of_the_plan_is_for_has_its_step_before_what_acts_on_less() -> None:
    result = of("memory")
    host = msgspec.structs.replace(result.fixes[0], id="HST-3", wall="host_overhead")
    result = msgspec.structs.replace(result, fixes=(host,))
    first, second = titles(with_finds(result, [CHANGE]))
    assert first == "Find the code that allocates, copies or computes again"
    assert second == "Launch as graphs"


@pytest.mark.parametrize(("pauses", "found"), [(0.6, True), (0.2, False)])
def test_long_pauses_that_are_most_of_a_hosts_wall_are_to_be_found(pauses: float, found: bool) -> None:
    """A host of 20 %: pauses of 0.6 of it are 12 %, of 0.2 they are 4 %."""
    result = of("host_overhead")
    walls = tuple(
        msgspec.structs.replace(
            wall,
            cost_ns=1_000,
            cost_frac=0.2,
            cost_by_kind_ns={"long_python_pauses": round(1_000 * pauses), "launch": 300},
        )
        if wall.id == "host_overhead"
        else wall
        for wall in result.walls
    )
    steps = titles(with_finds(msgspec.structs.replace(result, walls=walls), [CHANGE]))
    assert (steps[0] == "Find what the host does in its long pauses") == found


@pytest.mark.parametrize(("until", "blocks", "found"), [(700, 132, True), (700, 1, True), (300, 132, False)])
def test_a_range_in_which_the_host_launches_nothing_and_is_late_the_most_comes_first(
    until: int, blocks: int, found: bool
) -> None:
    """Beside a change, for kernels of one block, and without any."""
    run = Run()
    for step in run.steps(8, every=1_000):
        step.range("load layer 3", 0, until)
        for at in range(720, 1_000, 14):
            step.work("gemm", at, at + 7, blocks=blocks)
    said = flat(first_screen(run.document()))
    assert (" 1 Find what the host waits for in the range in which it launches nothing" in said) is found


@pytest.mark.parametrize(("recorded", "found"), [("gemm", True), ("graph_replay", False)])
def test_slow_kernels_are_to_be_found_only_where_kernels_were_recorded(recorded: str, found: bool) -> None:
    """Compute is 95 % of each step: of kernels, or of graphs that were recorded whole."""
    result = of("healthy")
    (rank,) = result.ranks
    rank = msgspec.structs.replace(rank, compute_by_class_ns={recorded: rank.budget_ns.compute})
    steps = titles([*find_out(msgspec.structs.replace(result, ranks=(rank,)))])
    assert ("Find which kernels are slow, and why" in steps) is found


@pytest.mark.parametrize("told", [True, False])
def test_who_the_others_wait_for_is_no_question_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    result = of("host_overhead")
    wall = msgspec.structs.replace(result.walls[0], id="communication", outcome="finding", cost_frac=0.2)
    late = SimpleNamespace(repair="check the GPU") if told else None
    monkeypatch.setattr(finding, "late_rank", lambda _: late)
    steps = titles(with_finds(msgspec.structs.replace(result, walls=(wall,)), [CHANGE]))
    assert ("Find which rank the others wait for" in steps) is not told
    verdict = msgspec.structs.replace(result.verdict, wall="communication")
    alone = titles([*find_out(msgspec.structs.replace(result, walls=(wall,), verdict=verdict))])
    assert alone == ["Repair what makes the others wait" if told else "Find which rank the others wait for"]


def test_gpus_of_one_process_are_no_ranks_and_what_their_host_communicates_is_no_zero() -> None:
    run = Run(unit="ms")
    for device in range(2):
        for start in range(0, 1600, 100):
            run.work("gemm", start + 60, start + 100, launch=start + 50, device=device)
    for start in range(0, 1600, 100):
        run.range("MPI_Allreduce", start + 5, start + 45)
    with written(run) as (path,):
        screens = [flat(diagnoser.analyze(path).text())]
        changed(  # as newer exports have them
            path,
            "INSERT INTO StringIds VALUES (7777, 'MPI_Allreduce')",
            "CREATE TABLE MPI_P2P_EVENTS AS SELECT start, end, globalTid, 7777 AS textId FROM NVTX_EVENTS",
            "DELETE FROM NVTX_EVENTS",
        )
        screens.append(flat(diagnoser.analyze(path).text()))
    for screen in screens:
        assert "2 GPUs of one process: window 1,540 ms" in screen
        assert "on the GPU alone; by the host 39 %" in screen
        assert "clock" not in screen
        assert "collective" not in screen
