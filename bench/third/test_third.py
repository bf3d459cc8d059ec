"""The laws of the third simulator's model, on runs that take a second each."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bench.third.__main__ import main
from bench.third.engine import QUEUE
from bench.third.handicaps import CAUSES, Kind
from bench.third.program import Do, Operation
from bench.third.recorded import Ranges, Style, draw_style
from bench.third.run import Truth, draw_truth, launches
from bench.third.world import MIB

_APART_US = 2.5
"""Within this all ranks end."""


@cache
def drawn(kind: Kind, seed: int = 5) -> Truth:
    return draw_truth(seed, kind)


def ends(truth: Truth) -> list[list[float]]:
    return [[one.end for one in each] for each in truth.done.operations]


def test_a_seed_draws_the_same_run_again() -> None:
    again = draw_truth(5, Kind.SLOW_GPU)
    assert again.hands == drawn(Kind.SLOW_GPU).hands
    assert ends(again) == ends(drawn(Kind.SLOW_GPU))


def test_a_handicap_changes_no_draw_of_others() -> None:
    truth = drawn(Kind.SLOW_GPU)
    (hand,) = truth.hands
    for rank, (hit, plain) in enumerate(zip(truth.done.operations, truth.base.operations, strict=True)):
        assert [one.work_us for one in hit] == [one.work_us for one in plain]
        took = [(one.end - one.start, other.end - other.start) for one, other in computed(hit, plain)]
        slower = sorted(mine / usual for mine, usual in took)[len(took) // 2]
        assert slower == pytest.approx(hand.strength if rank in hand.ranks else 1.0, rel=0.02)


def computed(hit: tuple[Operation, ...], plain: tuple[Operation, ...]) -> list[tuple[Operation, Operation]]:
    return [
        (one, other)
        for one, other in zip(hit, plain, strict=True)
        if one.do is Do.LAUNCH and one.moves is None and one.kernel not in ("copy", "batch")
    ]


def test_data_moves_when_the_last_rank_is_there_and_all_end_together() -> None:
    for one in drawn(Kind.SLOW_GPU).done.transfers:
        parts = one.parts.values()
        assert set(one.parts) == set(one.moves.ranks)
        assert one.last == max(part.start for part in parts)
        assert all(one.end <= part.end <= one.end + _APART_US for part in parts)


def test_streams_are_in_order_and_the_host_never_launches_beyond_its_queue() -> None:
    for each in drawn(Kind.SLOW_GPU).done.operations:
        launched = launches(each)
        by_stream: dict[int, float] = {}
        for one in launched:
            assert one.start >= max(by_stream.get(one.stream, 0.0), one.returned)
            by_stream[one.stream] = one.end
        for one, later in zip(launched, launched[QUEUE:], strict=False):
            assert later.returned >= one.end


def test_the_waiting_by_last_arriver_is_all_the_waiting() -> None:
    truth = drawn(Kind.SLOW_GPU)
    summed = sum(us for *_, us in truth.done.waits)
    by_hand = sum(one.last - part.start for one in truth.done.transfers for part in one.parts.values())
    assert summed == pytest.approx(by_hand)


def test_gradients_and_parameters_have_the_sizes_of_recorded_payloads() -> None:
    truth = drawn(Kind.HEALTHY, 2)
    of_experts = {
        one.moves.call: one.moves.ring / (truth.world.gradients_mib * MIB)
        for one in truth.done.transfers
        if one.moves.group.name == "EXPERT_DATA"
    }
    of_all = {
        one.moves.call: one.moves.ring / (truth.world.gradients_mib * MIB)
        for one in truth.done.transfers
        if one.moves.group.name == "DATA" and one.moves.call != "ncclAllReduce"
    }
    assert of_all == pytest.approx({"ncclReduceScatter": 0.3, "ncclAllGather": 0.15})
    assert not of_experts or of_experts == pytest.approx({"ncclReduceScatter": 0.8, "ncclAllGather": 0.4})


@pytest.mark.parametrize("kind", [Kind.SLOW_NODE, Kind.SLOW_NIC, Kind.LOADER], ids=lambda kind: kind.value)
def test_a_handicap_costs_at_least_a_twentieth_and_names_whom_it_hits(kind: Kind) -> None:
    truth = drawn(kind)
    (hand,) = truth.hands
    assert truth.saved_frac >= 0.05
    assert CAUSES[hand.kind] != "none"
    assert set(hand.ranks) <= set(hand.accept)


def test_even_windows_hold_whole_steps_and_clocks_of_one_node_are_one() -> None:
    truth = drawn(Kind.SLOW_NODE)
    style: Style = draw_style(truth.world, truth.done, Ranges.NONE, False)
    layout = truth.world.layout
    for rank, ((begin, end), each) in enumerate(zip(style.windows_us, truth.done.operations, strict=True)):
        inside = Counter(one.step for one in launches(each) if begin <= one.called and one.end <= end)
        whole = Counter(one.step for one in launches(each) if one.step > 0)
        assert {step: inside[step] for step in whole} == whole
        first = next(other for other in range(layout.size) if layout.node(other) == layout.node(rank))
        assert style.clocks[rank].drift_ppm == style.clocks[first].drift_ppm


def test_files_and_their_truth_are_written(tmp_path: Path) -> None:
    main([str(tmp_path), "--kind", "slow_gpu", "--seed", "5", "--even"])
    (folder,) = tmp_path.iterdir()
    truth = json.loads((folder / "truth.json").read_text())
    assert truth["family"] == "slow_gpu"
    assert not truth["ragged"]
    for waits in truth["waits"].values():
        assert waits["wait"] == sum(waits["caused"].values())
    files = {line.split(",")[0] for line in (folder / "map.csv").read_text().splitlines()[1:]}
    assert files == {path.name for path in folder.glob("*.sqlite")}
