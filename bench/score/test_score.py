from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.score import distance, grade, naive, shown, truth
from bench.score.corpus import FIRST_SEED, SEARCHED, TUNED, corpus
from bench.score.grade import Count
from bench.score.one import Result, score
from bench.score.table import table, wrong_ones
from bench.score.true_account import REASONS, account
from bench.score.truth import WALLS
from bench.simulate.engine import execute
from bench.simulate.export import write_export
from bench.simulate.host_program import (
    MAIN,
    Busy,
    Engine,
    Launch,
    Machine,
    Operation,
    Place,
    Program,
    Record,
    StreamWait,
    Synchronise,
    Work,
)
from bench.simulate.knobs import Knobs
from bench.simulate.recording import Recording
from bench.simulate.run import Run, run
from bench.simulate.scenarios import SCENARIOS
from bench.simulate.truth import TrueCosts

US = 1_000
RIGHT = {"communication": 0.35, "host_overhead": 0.20, "memory": 0.05, "compute": 0.00}
QUIET = dict.fromkeys(WALLS, 0.04)


def result(true_frac: dict[str, float] | None = None, **changes: object) -> Result:
    """A run that was diagnosed as it truly is, unless changed."""
    true = RIGHT if true_frac is None else true_frac
    largest = max(true, key=lambda wall: true[wall])
    basis = Result(
        family="drawn",
        group="",
        name="seed 1",
        recorded={"schema": "3.25.0", "calls": "True", "ranges": "steps", "cut": "no"},
        made={"end of step": "none", "optimizers": "adam", "accumulation": "2"},
        true_frac=true,
        retries=False,
        hidden=(),
        veiled=(),
        wall=largest if true[largest] >= 0.1 else None,
        told={wall: "finding" if frac >= 0.1 else "clear" for wall, frac in true.items()},
        found_frac=dict(true),
        rows={"compute": (0.70, 0.70), "host": (0.20, 0.20)},
        steps_true=4,
        steps_found=4,
        steps_used=3,
        step_source="nvtx",
        raw={"communication": 0.4, "host_overhead": 0.2, "memory": 0.0, "compute": 0.6},
    )
    return replace(basis, **changes)  # type: ignore[arg-type]


def test_the_true_verdict_is_the_largest_cost_with_its_margin() -> None:
    found = truth.verdict(RIGHT, retries=False)
    assert (found.wall, found.near) == ("communication", ())
    assert found.margin_frac == pytest.approx(0.15)


def test_nothing_above_a_tenth_is_no_wall() -> None:
    assert truth.verdict(QUIET | {"compute": 0.099}, retries=False).wall is None
    assert truth.verdict(QUIET | {"compute": 0.100}, retries=False).wall == "compute"


def test_two_walls_under_three_points_apart_are_near() -> None:
    costs = QUIET | {"communication": 0.30, "memory": 0.28}
    assert truth.verdict(costs, retries=False).near == ("memory",)
    assert truth.verdict(costs | {"memory": 0.26}, retries=False).near == ()


def test_retries_in_steady_steps_put_memory_first() -> None:
    assert truth.verdict(RIGHT, retries=True).wall == "memory"
    assert truth.verdict(RIGHT, retries=True, hidden=("memory",)).wall == "communication"


def test_a_hidden_wall_is_no_part_of_the_true_verdict() -> None:
    found = truth.verdict(RIGHT, retries=False, hidden=("communication",))
    assert found.wall == "host_overhead"
    assert found.margin_frac == pytest.approx(0.15)


def test_costs_are_those_of_the_steps_used_and_never_below_nothing() -> None:
    costs = TrueCosts((100, 100, 200), {"memory": (50, 10, 20), "compute": (0, -5, 0)})
    assert truth.costs_of(costs, [1, 2]) == {"memory": 0.1, "compute": 0.0}


RETRYING = replace(SCENARIOS["allocator"], layer_count=2, step_count=3)


def test_steady_retries_are_told_from_none() -> None:
    assert truth.retries_in_steady_steps(run(RETRYING), range(RETRYING.step_count))
    steady = replace(RETRYING, retries_per_step=0.0)
    assert not truth.retries_in_steady_steps(run(steady), range(steady.step_count))


@pytest.mark.parametrize("name", ["communication", "token_sync", "offload", "deepep"])
def test_the_true_account_adds_up_twice(name: str) -> None:
    simulated = run(replace(SCENARIOS[name], step_count=2))
    rows = account(simulated, list(pairwise(simulated.borders_ns)))
    buckets = rows["compute"] + rows["exposed_comm"] + rows["exposed_copy"] + rows["idle"]
    reasons = sum(rows[reason] for reason in REASONS)
    assert buckets == sum(simulated.step_ns)
    assert rows["compute"] + reasons == buckets


def test_the_true_account_lays_time_on_what_the_scenario_is_named_for() -> None:
    def most(name: str) -> str:
        simulated = run(replace(SCENARIOS[name], step_count=2))
        rows = account(simulated, [(simulated.borders_ns[1], simulated.borders_ns[2])])
        return max(REASONS, key=lambda row: rows[row])

    assert (most("communication"), most("host_overhead")) == ("blocking_comm", "host")
    assert most("offload") == "blocking_copy"


PLACE = Place(0, 0, 0, "forward", "some")


def launched(ns: int, stream: int = 7, engine: Engine = Engine.SMS) -> Launch:
    """A call of 10 ns; its work arrives 5 ns later, or starts 1 ns after its stream, 2 after an event."""
    blocks = 100 if engine is Engine.SMS else 0
    return Launch("launch", (Work("some", engine, stream, ns, PLACE, blocks, 0, 1, 2, 5),), 10)


def accounted(*operations: Operation) -> dict[str, int]:
    done = execute(Program(Machine(100), {MAIN: operations}))
    end_ns = max(activity.end_ns for activity in done.activities)
    rows = account(Run(Knobs(), done, (0, end_ns)), [(0, end_ns)])
    return {row: ns for row, ns in rows.items() if ns}


def test_time_before_a_launch_is_the_hosts() -> None:
    rows = accounted(Busy(100), launched(50))
    assert rows == {"compute": 50, "idle": 115, "host": 110, "latency": 5}


def test_time_behind_communication_that_an_event_waits_for_is_blocking() -> None:
    moving = launched(200, stream=20, engine=Engine.COMMUNICATION)
    rows = accounted(launched(50), moving, Record(1, 20, 0), StreamWait(1, 7, 0), launched(50))
    # compute 15 to 65, communication 25 to 225, compute 227 to 277
    assert rows == {
        "compute": 100, "exposed_comm": 160, "idle": 17, "host": 10, "blocking_comm": 160, "latency": 7
    }  # fmt: skip


def test_communication_that_nothing_waits_for_is_no_reason() -> None:
    moving = launched(200, stream=20, engine=Engine.COMMUNICATION)
    rows = accounted(moving, Busy(80), launched(50))
    # communication 15 to 215, compute launched at 100
    assert (rows["host"], rows["latency"], rows["trailing"]) == (100, 5, 60)


def test_a_host_that_waits_for_communication_is_blocked_and_comes_back_late() -> None:
    moving = launched(200, stream=20, engine=Engine.COMMUNICATION)
    rows = accounted(moving, Synchronise("stream", 20, 5, 30), launched(50))
    # communication 15 to 215, awaited from 15 on; back at 245, launched at 255
    assert (rows["blocking_comm"], rows["host"], rows["latency"]) == (200, 55, 5)


def test_a_right_verdict_counts_in_the_bin_of_its_margin() -> None:
    scores = grade.by_margin([result()])
    assert [score.right.of for score in scores] == [0, 0, 0, 1, 0]
    assert scores[3].right == Count(1, 1)


def test_a_verdict_truly_near_the_largest_is_right_and_one_further_is_wrong() -> None:
    costs = QUIET | {"communication": 0.30, "memory": 0.28, "compute": 0.24}
    assert grade.is_right(result(costs, wall="memory"))
    assert not grade.is_right(result(costs, wall="compute"))
    assert not grade.is_right(result(costs, wall=None))


def test_a_wrong_verdict_at_the_limit_and_an_abstention_are_counted_as_such() -> None:
    at_limit = result(QUIET | {"compute": 0.11}, wall=None)
    silent = result(wall=None, told=dict.fromkeys(WALLS, "unmeasurable"), found_frac={})
    (score,) = grade.by_margin([at_limit, silent, result()], [(0.05, 2.0)])
    assert (score.right, score.at_limit, score.abstained) == (Count(1, 3), 1, 1)


def test_the_naive_rules_are_scored_on_the_same_runs() -> None:
    (score,) = grade.by_margin([result()], [(0.05, 2.0)])
    assert (score.naive, score.naive_without_compute) == (0, 1)


def test_what_a_recording_hides_is_left_out_of_the_verdicts_and_must_be_unmeasurable_or_truly_clear() -> None:
    blind = result(wall=None, hidden=WALLS, told=dict.fromkeys(WALLS, "unmeasurable"), found_frac={})
    bold = replace(blind, told={**blind.told, "communication": "clear"})  # truly a wall
    assert grade.told_runs([blind, bold]) == []
    assert grade.hiding([blind, bold]) == Count(7, 8)
    bounded = replace(blind, told={**blind.told, "compute": "clear"})  # truly none
    assert grade.hiding([bounded]) == Count(4, 4)


def test_memory_whose_use_was_recorded_must_be_clear_below_the_limit() -> None:
    clear = result(recorded={"memory": "True"})
    silent = replace(clear, told={**clear.told, "memory": "unmeasurable"})
    assert grade.roomy([clear, silent, result(recorded={"memory": "False"})]) == Count(1, 2)


def test_a_wall_hidden_in_part_may_be_unmeasurable_but_not_clear() -> None:
    told = {**result().told, "communication": "unmeasurable"}
    silent = result(wall=None, veiled=WALLS, told=told, found_frac={})
    clear = replace(silent, told={**told, "communication": "clear"})
    assert grade.told_runs([silent]) == []
    assert grade.veiled_clear([silent, clear]) == Count(1, 4)
    recall = {score.wall: score.recall for score in grade.by_wall([silent])}
    assert recall["communication"] == Count(0, 0)


def test_near_ties_must_be_named() -> None:
    costs = QUIET | {"communication": 0.30, "memory": 0.28}
    named, silent = result(costs, tied_with=("memory",)), result(costs)
    assert grade.near_ties([named, silent, result()]) == Count(1, 2)
    assert grade.ties_said([result(tied_with=("host_overhead",)), result()]) == Count(1, 2)


def test_precision_and_recall_are_by_wall() -> None:
    missed = result(told={**result().told, "communication": "clear"})
    alarmed = result(told={**result().told, "compute": "finding"})
    scores = {score.wall: score for score in grade.by_wall([missed, alarmed])}
    assert scores["communication"].recall == Count(1, 2)
    assert scores["communication"].precision == Count(1, 1)
    assert scores["compute"].precision == Count(0, 1)
    assert scores["compute"].recall == Count(0, 0)


def test_a_memory_wall_without_capacity_but_with_a_small_price_was_judged() -> None:
    told = {**result().told, "memory": "unmeasurable"}
    assert not grade.abstained(result(told=told), "memory")
    assert grade.abstained(result(told=told, found_frac={**RIGHT, "memory": None}), "memory")


def test_an_alarm_is_false_only_where_nothing_costs_a_tenth() -> None:
    alarmed = result(QUIET, told={**result(QUIET).told, "compute": "finding"})
    assert grade.false_alarms([result(QUIET), alarmed, result()]) == Count(1, 2)


def test_errors_of_costs_and_rows_are_counted_in_points() -> None:
    off = result(found_frac={**RIGHT, "communication": 0.37}, rows={"host": (0.25, 0.20)})
    costs = distance.cost_errors([result(), off], "communication")
    rows = distance.row_errors([result(), off], "host")
    assert costs is not None
    assert rows is not None
    assert (costs.near, rows.near) == (Count(1, 2), Count(1, 2))
    assert costs.middle == pytest.approx(0.01)
    assert costs.most == pytest.approx(0.02)
    assert distance.row_errors([result(rows={"host": (None, 0.2)})], "host") is None


def test_steps_are_counted_by_how_they_were_found() -> None:
    blind = result(recorded={**result().recorded, "calls": "False"}, steps_found=1)
    scores = distance.by_step_source([result(), blind])
    assert [score.source for score in scores] == ["nvtx", "nvtx, no calls recorded"]
    assert [score.exactly for score in scores] == [Count(1, 1), Count(0, 1)]
    assert [score.partly for score in scores] == [0, 1]
    assert scores[0].used == Count(3, 4)


def test_schemas_are_in_order_of_version() -> None:
    runs = [result(recorded={"schema": schema}) for schema in ("3.25.0", "3.4.0", "2.9.1")]
    assert [score.how for score in distance.by_recorded(runs)] == ["2.9.1", "3.4.0", "3.25.0"]


def test_spellings_agree_within_a_point() -> None:
    one, other = result(), result(found_frac={**RIGHT, "memory": 0.059})
    truly = result(RIGHT | {"memory": 0.08})
    far = result(found_frac={**RIGHT, "memory": 0.061})
    assert shown.spelled_alike([one, other]) == Count(1, 1)
    assert shown.spelled_alike([one, far]) == Count(0, 1)
    assert shown.spelled_alike([one, truly]) == Count(1, 1)
    assert shown.spelled_alike([one, replace(other, wall=None)]) == Count(0, 1)


def test_a_run_that_failed_is_no_right_answer_anywhere() -> None:
    failed = replace(result(), wall=None, told={}, found_frac={}, rows={}, error="ValueError: no")
    assert grade.told_runs([failed]) == []
    text = table([result(), failed], date="2026-01-02", simulator="0123456789ab", seeds="1 to 2")
    assert "could not be diagnosed: 1" in text
    assert list(wrong_ones([failed])) == ["seed 1: ValueError: no"]


def test_the_table_says_date_seeds_and_simulator() -> None:
    text = table([result()], date="2026-01-02", simulator="0123456789ab", seeds="5000 to 5000")
    assert text.startswith("Scored on 2026-01-02: 1 drawn runs, seeds 5000 to 5000, simulator `0123456789ab`")
    assert "| verdict, where it is clear | 99 % | 100.0 % (1 of 1) | none |" in text
    assert "| **5 and more** | 100.0 % (1 of 1) | 0 | 0 | 0.0 % (0 of 1) | 100.0 % (1 of 1) |" in text


def test_a_wrong_verdict_is_said_with_costs_found_and_true() -> None:
    (line,) = wrong_ones([result(wall="compute"), result()])
    assert line.startswith("drawn seed 1: said compute, true communication; communication 35.0/35.0")


def test_seeds_that_limits_were_tuned_on_are_refused() -> None:
    with pytest.raises(ValueError, match="0 to 219"):
        corpus(TUNED.stop - 1, 1)
    cases = corpus(FIRST_SEED, 2)
    assert FIRST_SEED not in SEARCHED
    assert not {case.knobs.seed for case in cases} & {*TUNED, *SEARCHED}


def test_one_family_can_be_run_alone() -> None:
    assert {case.family for case in corpus(FIRST_SEED, 4, "steps")} == {"steps"}
    assert len(corpus(FIRST_SEED, 4, "steps")) == 2  # a third of the drawn ones, rounded up
    with pytest.raises(
        ValueError, match="no family 'stesp'; there are bare recompute, broken, cpu adam, cut graphs"
    ):
        corpus(FIRST_SEED, 4, "stesp")


def test_the_naive_rule_adds_up_kernels_by_their_names(tmp_path: Path) -> None:
    recording = Recording()
    recording.kernel("gemm", 0, 40 * US, stream=7)
    recording.kernel("ncclDevKernel_AllGather(x)", 10 * US, 40 * US, stream=9)
    recording.copy("d2h", 50 * US, 60 * US, size_bytes=2 << 20, stream=11)
    recording.copy("d2h", 60 * US, 70 * US, size_bytes=4, stream=11)
    recording.kernel("gemm", 80 * US, 100 * US, stream=7)
    recording.call("cudaFree_v3020", 0, 15 * US)
    write_export(tmp_path / "run.sqlite", recording)
    shares = naive.raw_shares(tmp_path / "run.sqlite")
    expected = {"communication": 0.3, "host_overhead": 0.2, "memory": 0.25, "compute": 0.6}
    assert shares == pytest.approx(expected)
    assert naive.largest(shares) == "compute"
    assert naive.without_compute(shares) == "communication"


def test_a_broken_diagnosis_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("diagnoser.analyze", broken)
    (case, *_) = corpus(FIRST_SEED, 1)
    small = replace(case, knobs=Knobs(step_count=2, layer_count=2, microbatch_count=1))
    assert score(small).error == "RuntimeError: no"


def test_spellings_on_both_sides_of_the_limit_may_differ_as_their_truths_do() -> None:
    def spelled(true: float, wall: str | None) -> Result:
        fractions = dict.fromkeys(WALLS, 0.0) | {"communication": true}
        return result(fractions, found_frac=dict(fractions), wall=wall)

    below, above = spelled(0.095, None), spelled(0.101, "communication")
    assert shown.spelled_alike([below, above]) == Count(1, 1)
    turned = [replace(below, wall="communication"), replace(above, wall=None)]
    assert shown.spelled_alike(turned) == Count(0, 1)
