from __future__ import annotations

import pytest

from traces.settings.settings import Value, settings
from traces.training_log.iterations import perturbation_frac, steady_step
from traces.training_log.log import Iteration, Message, TrainingLog

MS = 1_000_000
RECORDED: dict[str, Value] = {"profiling.profile_step_start": 4, "profiling.profile_step_end": 6}


def made(
    lengths_ms: list[int],
    *messages: Message,
    indexes: list[int] | None = None,
    knobs: dict[str, Value] | None = None,
) -> TrainingLog:
    """One logged iteration at every tenth line."""
    numbered = zip(indexes or range(1, len(lengths_ms) + 1), lengths_ms, strict=True)
    return TrainingLog(
        name="run.log",
        line_count=10 * len(lengths_ms),
        iterations=tuple(Iteration(at, ms * MS, 10 * (place + 1)) for place, (at, ms) in enumerate(numbered)),
        messages=messages,
        settings=settings(knobs or {}, "log"),
    )


def left_out(log: TrainingLog) -> dict[int, str]:
    steady = steady_step(log)
    assert steady is not None
    return {one.iteration.index: one.reason for one in steady.left_out}


def test_the_first_three_iterations_are_left_out() -> None:
    steady = steady_step(made([900, 200, 150, 100, 104, 102]))
    assert steady is not None
    assert [one.index for one in steady.used] == [4, 5, 6]
    assert (steady.median_ns, steady.mean_ns) == (102 * MS, 102 * MS)
    assert (steady.spread_ns, steady.count) == (4 * MS, 3)


def test_a_restart_has_first_iterations_of_its_own() -> None:
    log = made([900, 100, 100, 100, 100] * 2, indexes=[1, 2, 3, 4, 5, 4, 5, 6, 7, 8])
    steady = steady_step(log)
    assert steady is not None
    assert [one.line for one in steady.used] == [40, 50, 90, 100]


def test_a_line_for_many_iterations_is_left_out_if_the_first_are_among_them() -> None:
    assert left_out(made([300, 100, 100], indexes=[10, 20, 30])) == {10: "first"}
    assert left_out(made([900, 300, 100, 100], indexes=[1, 10, 20, 30])) == {1: "first", 10: "first"}
    assert left_out(made([900, 300, 100, 100], indexes=[501, 510, 520, 530])) == {501: "first", 510: "first"}


def test_an_iteration_far_above_is_named_by_the_checkpoint_before_it() -> None:
    log = made([100, 100, 100, 100, 300, 100, 300, 100], Message("checkpoint", 45))
    assert left_out(log) == {1: "first", 2: "first", 3: "first", 5: "checkpoint", 7: "far_above"}


def test_a_checkpoint_without_delay_leaves_its_iteration_in() -> None:
    assert 5 not in left_out(made([100] * 6, Message("checkpoint", 45)))


def test_warm_up_and_capture_of_graphs_are_left_out() -> None:
    graphs: dict[str, Value] = {"cuda_graph_impl": "transformer_engine", "cuda_graph_warmup_steps": 4}
    log = made([100] * 8, Message("graph-capture-begins", 41), Message("graph-captured", 42), knobs=graphs)
    assert left_out(log) == {1: "first", 2: "first", 3: "first", 4: "graph_warm_up", 5: "graph_capture"}


@pytest.mark.parametrize(
    ("impl", "count"),
    [("none", 5), ("transformer_engine", 4)],
    ids=["graphs off", "three warm-ups and capture"],
)
def test_the_default_warm_up_counts_only_with_graphs(impl: str, count: int) -> None:
    steady = steady_step(made([100] * 8, knobs={"cuda_graph_impl": impl}))
    assert steady is not None
    assert steady.count == count


def test_iterations_that_a_profiler_is_set_to_record_are_left_out() -> None:
    log = made([100] * 8, knobs={**RECORDED, "profiling.use_nsys_profiler": True})
    assert {index for index, reason in left_out(log).items() if reason == "profiled"} == {5, 6}


def test_a_profilers_steps_count_only_where_one_is_on() -> None:
    log = made([100] * 8, knobs=RECORDED)
    assert "profiled" not in left_out(log).values()


def test_iterations_while_nsys_says_it_captures_are_left_out() -> None:
    log = made([100] * 8, Message("profiler-begins", 41), Message("profiler-ends", 55))
    assert {index for index, reason in left_out(log).items() if reason == "profiled"} == {5, 6}


def test_a_log_of_first_iterations_has_no_steady_step() -> None:
    assert steady_step(made([900, 100, 100])) is None
    assert steady_step(made([])) is None


def test_a_profiled_step_is_compared_with_the_steady_one() -> None:
    steady = steady_step(made([900, 200, 150, 100, 100]))
    assert steady is not None
    assert perturbation_frac(125 * MS, steady) == 0.25
