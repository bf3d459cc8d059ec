from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.second.drawn import operations
from bench.second.scenarios import GPU, draw_scenario, program
from bench.second.simulator import SecondSimulator
from bench.second.simulator_truth import borders_ns, costs_frac, judge
from bench.second.times import by_the_engine, by_the_second
from bench.simulate.engine import execute
from bench.simulate.handicaps import Handicap, taken_away
from bench.simulate.host_program import (
    AUTOGRAD,
    MAIN,
    Await,
    Busy,
    Engine,
    Launch,
    Machine,
    Operation,
    Place,
    Program,
    Record,
    Signal,
    StreamWait,
    Work,
)
from bench.simulate.knobs import Knobs, draw_knobs
from bench.simulate.recorded import View
from bench.simulate.step import program_of
from bench.simulate.truth import true_costs

DISPATCHERS = ("alltoall", "deepep", "hybridep", "allgather", "none")
QUEUES = (1022, 60, 12)
SEEDS = range(3000, 3050)


def drawn(seed: int) -> Knobs:
    """Drawn knobs of a small run; all that is rare in a draw is in a quarter of them."""
    knobs = draw_knobs(
        seed,
        step_count=2,
        layer_count=2,
        microbatch_count=1 + seed % 2,
        dispatcher=DISPATCHERS[seed % 5],
        gpu=("H100", "GB200")[seed % 3 == 0],
    )
    if seed % 4 == 0:
        return replace(
            knobs,
            microbatch_count=2,
            ep_overlap=True,
            offload_mib=30.0,
            retries_per_step=2.0,
            recompute="moe",
        )
    if seed % 4 == 1:
        return replace(
            knobs, gc_pause_ms=5.0, gc_per_layer_frac=0.2, pageable_host=True, end_of_step="read_back",
            pipeline_us=50.0, graph_attention=True, graph_router=True, graph_preprocess=True,
        )  # fmt: skip
    if seed % 4 == 2:
        return replace(
            knobs, delayed_wgrad=True, shared_expert=True, shared_expert_stream=True, dense_tile_count=60,
            cpu_adam_ms=3.0, cpu_adam_frac=0.5, first_step_ms=4.0, initial_kernel_count=6,
            end_of_step="loss", resident_mib=20.0,
        )  # fmt: skip
    return knobs


def with_queue(given: Program, launches: int) -> Program:
    return Program(replace(given.machine, queue_launches=launches), given.threads)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_simulators_agree_on_every_call_and_all_gpu_work(seed: int) -> None:
    whole = with_queue(program_of(drawn(seed)), QUEUES[seed % 3])
    assert by_the_second(SecondSimulator(whole)) == by_the_engine(execute(whole))


@pytest.mark.parametrize("handicap", Handicap)
@pytest.mark.parametrize("seed", [3004, 3011, 3017])
def test_they_agree_without_each_handicap_too(seed: int, handicap: Handicap) -> None:
    without = with_queue(taken_away(program_of(drawn(seed)), handicap), QUEUES[seed % 3])
    assert by_the_second(SecondSimulator(without)) == by_the_engine(execute(without))


@pytest.mark.parametrize("seed", [3000, 3006, 3013])
def test_they_agree_on_what_each_wall_costs(seed: int) -> None:
    knobs = drawn(seed)
    whole = program_of(knobs)
    programs = {None: whole} | {one: taken_away(whole, one) for one in Handicap}
    borders = {one: borders_ns(SecondSimulator(given).pieces) for one, given in programs.items()}
    engine = true_costs(knobs)
    for wall, frac in costs_frac(borders, range(2)).items():
        assert frac == pytest.approx(engine.cost_frac(wall), abs=0.001)


@settings(max_examples=100, deadline=None)
@given(operations(), st.sampled_from((1, 2, 3, 1022)), st.sampled_from((0.0, 0.05, 0.5)))
def test_both_simulators_agree_on_any_program_of_one_thread(
    said: list[Operation], queue: int, beside: float
) -> None:
    given = Program(Machine(100, queue, beside), {MAIN: said})
    assert by_the_second(SecondSimulator(given)) == by_the_engine(execute(given))


def work(alone_ns: int, stream: int = 7, event_gap_ns: int = 2) -> Launch:
    """A call of 10 ns; its work arrives 5 ns later, and 1 ns behind other work of its stream."""
    place = Place(0, 0, 0, "forward", "some")
    some = Work("some", Engine.SMS, stream, alone_ns, place, 50, 0, 1, event_gap_ns, 5)
    return Launch("launch", (some,), 10)


def second(main: Sequence[Operation], other: Sequence[Operation] = ()) -> SecondSimulator:
    return SecondSimulator(Program(Machine(100, 2), {MAIN: main, AUTOGRAD: other}))


def test_an_event_holds_up_only_the_next_work_of_its_stream() -> None:
    first: list[Operation] = [work(50, 8), Record(1, 8, 0), StreamWait(1, 7, 0)]
    done = second([*first, work(0), work(50, event_gap_ns=30)])
    times = [(piece.start_ns, piece.end_ns) for piece in done.pieces]
    assert times == [(15, 65), (67, 67), (70, 120)]  # the queue of two makes the last submit at 65


def test_a_flag_that_is_up_already_wakes_nobody() -> None:
    done = second([Signal(1)], [Busy(100), Await(1, 15), work(50)])
    assert done.calls[AUTOGRAD][0].start_ns == 100


def test_threads_submit_in_the_order_of_their_clocks() -> None:
    done = second([Busy(100), work(50)], [work(20), work(30)])
    assert [(piece.thread, piece.start_ns) for piece in done.pieces] == [
        (AUTOGRAD, 15),
        (AUTOGRAD, 36),
        (MAIN, 115),
    ]


def test_what_traffic_takes_from_compute_is_the_decimal_fraction_that_is_written() -> None:
    moves = work(21, 8).works[0]._replace(engine=Engine.COMMUNICATION)
    said = [work(48), Launch("launch", (moves,), 10)]
    given = Program(Machine(100, beside_comm_frac=0.05), {MAIN: said})
    # from 25 to 46 a compute kernel does 20 of its 48 ns, not one part in 10^17 less
    assert SecondSimulator(given).pieces[0].end_ns == 15 + 48 + 1
    assert by_the_second(SecondSimulator(given)) == by_the_engine(execute(given))


def test_a_program_that_waits_for_what_never_comes_is_refused_here_too() -> None:
    with pytest.raises(ValueError, match="never comes"):
        second([Await(1, 0)])


@pytest.mark.parametrize("seed", [0, 13])
def test_a_handicap_left_out_of_a_scenario_costs_what_it_costs_to_take_it_away(seed: int) -> None:
    scenario = replace(draw_scenario(seed), step_count=2, layer_count=2, microbatch_count=1)
    whole = program(scenario)
    for handicap in Handicap:
        left_out = SecondSimulator(program(scenario, handicap))
        taken = SecondSimulator(taken_away(whole, handicap))
        assert borders_ns(left_out.pieces) == borders_ns(taken.pieces)


@pytest.mark.parametrize(
    ("seed", "wall"), [(0, "memory"), (5, "host_overhead"), (7, "communication"), (11, "compute"), (14, None)]
)
def test_a_step_written_another_way_is_diagnosed_as_it_truly_is(
    seed: int, wall: str | None, tmp_path: Path
) -> None:
    scenario = replace(draw_scenario(seed), microbatch_count=1)
    view = View(ranges=("steps", "none")[seed % 2])
    knobs = Knobs(seed=seed, gpu=GPU, step_count=scenario.step_count)
    judged = judge(lambda handicap: program(scenario, handicap), knobs, view, tmp_path)
    assert (judged.wall, judged.is_right) == (wall, True)
    assert judged.worst_frac < 0.015
