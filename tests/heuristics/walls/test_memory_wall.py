"""The memory wall: its price decides; retries, room and recompute that could not be seen beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import UNSET

from heuristics.walls.memory import does_not_fit
from tests.doubles.opinions import BEGUN, NOBODY, costs, evidence, judge_memory, rank, seen, with_memory
from traces.measure.bounds import Bounds
from traces.measurements import RankMeasurements
from traces.missing import Missing, known

DOUBT = Missing("replay", "what the host waits for is not understood", "record more")
UNTOLD = Missing("", "no thread is named", "record with nsys")


@pytest.mark.parametrize("bytes_known", [True, False])
def test_the_price_of_memory_decides_whether_or_not_its_use_was_recorded(bytes_known: bool) -> None:
    found = judge_memory([rank(costs(memory=50), bytes_known=bytes_known)])
    assert (found.outcome, found.cost_ns, found.cost_frac, found.missing) == ("clear", 50, 0.05, ())
    assert evidence(found, "cost_frac").value == 0.05
    assert ("peak_frac" in seen(found)) == bytes_known
    assert judge_memory([rank(), rank(bytes_known=False)]).outcome == "clear"


@pytest.mark.parametrize(
    ("cost_ns", "retries", "outcome"),
    [(10, 0.51, "finding"), (9, 0.51, "clear"), (10, 0.0, "clear"), (100, 0.5, "finding")],
)
def test_retries_in_most_of_the_steps_are_a_finding_where_they_cost_one_percent(
    cost_ns: int, retries: float, outcome: str
) -> None:
    found = judge_memory([with_memory(rank(costs(memory=cost_ns)), allocator_retry_frac=retries)])
    assert (found.outcome, does_not_fit((found,))) == (outcome, outcome == "finding" and retries > 0.5)
    assert ("allocator_retry_frac" in seen(found)) == (retries != 0.0)


@pytest.mark.parametrize(
    ("peak_bytes", "outcome"),
    [(0, "clear"), (71, "clear"), (72, "finding"), (Missing("", "", ""), "unmeasurable")],
)
def test_retries_that_cost_nothing_are_a_finding_in_full_memory_alone_and_have_no_price(
    peak_bytes: object, outcome: str
) -> None:
    """Of 80 bytes; a headline never says that a wall of 0.1 % slows the run."""
    short = with_memory(rank(costs(memory=1)), allocator_retry_frac=1.0, peak_bytes=peak_bytes)
    found = judge_memory([short])
    assert (found.outcome, does_not_fit((found,))) == (outcome, outcome == "finding")
    assert known(found.cost_frac) == (0.001 if outcome == "clear" else None)


def test_one_rank_that_does_not_fit_or_is_full_is_enough_and_the_worst_is_named() -> None:
    ranks = [
        with_memory(rank(costs(memory=60)), allocator_retry_frac=frac, peak_bytes=peak)
        for frac, peak in ((NOBODY, 30), (1.0, 40), (0.5, 80))
    ]
    found = judge_memory(ranks)
    retried = evidence(found, "allocator_retry_frac")
    assert (found.outcome, does_not_fit((found,))) == ("finding", True)
    assert (retried.value, retried.limit, retried.rank) == (1.0, 0.5, 1)
    assert retried.unit == "fraction of the steps after the first"
    assert evidence(found, "peak_frac").value == 1.0  # of the fullest
    full = [replace(one, costs=costs(memory=1)) for one in ranks]
    for order in (full, full[::-1]):
        assert isinstance(judge_memory(order).cost_ns, Missing)
    assert judge_memory(full[:2]).outcome == "clear"


def test_a_run_without_room_has_no_price_but_the_most_that_it_can_be() -> None:
    short = with_memory(rank(costs(memory=1)), allocator_retry_frac=1.0, peak_bytes=80)
    assert judge_memory([short]).at_most_frac == judge_memory([short]).cost_frac
    bounded = replace(short, costs=costs(memory=1, at_least=DOUBT), bounds=Bounds(0, 0, 50, 0))
    assert (judge_memory([bounded]).outcome, judge_memory([bounded]).at_most_frac) == ("finding", 0.05)


def unseen(at_most_ns: int | None, priced: object = None, **what: object) -> RankMeasurements:
    """A rank of which it could not be told what runs again, but at most this."""
    recompute = replace(rank().recompute, recompute_ns=UNTOLD, at_most_ns=at_most_ns)
    one = rank(costs(memory=20) if priced is None else priced, recompute=recompute, **what)  # type: ignore[arg-type]
    return with_memory(one, recompute_ns=UNTOLD, recompute_modules=UNTOLD)


def test_memory_is_not_clear_where_nothing_bounds_recompute() -> None:
    other = with_memory(unseen(None), recompute_ns=DOUBT)  # the first says why
    mixed = [unseen(0), unseen(None)]
    for ranks in ([unseen(None), other], [rank(), unseen(None)], mixed, mixed[::-1]):
        found = judge_memory(ranks)
        assert (found.outcome, known(found.cost_ns), known(found.at_most_frac)) == (
            "unmeasurable",
            None,
            None,
        )
        assert not {"cost_frac", "steady_cost_frac"} & seen(found)
        assert found.missing[0].endswith("unknown: no thread is named")
        assert found.cure == "record with nsys"
    assert judge_memory([rank(costs(memory=200)), unseen(None)]).outcome == "finding"


@pytest.mark.parametrize(
    ("at_most_ns", "outcome", "most"), [(0, "clear", 0.02), (79, "clear", 0.099), (80, "unmeasurable", 0.1)]
)
def test_recompute_that_could_not_be_seen_is_bounded(at_most_ns: int, outcome: str, most: float) -> None:
    """2 % are measured of a window of 1000 ns; what is unseen adds at most 0, 7.9 or 8 %."""
    found = judge_memory([unseen(at_most_ns)])
    assert (found.outcome, found.at_most_frac) == (outcome, most)
    assert found.at_least_frac == (0.02 if outcome == "unmeasurable" else UNSET)


def test_what_is_unseen_is_of_the_windows_of_all_ranks_without_start_up() -> None:
    """72 of 1000 and 1000 - 200 ns are 4 %, and of the two ranks 20 each is paid: 40 of 1800."""
    found = judge_memory([unseen(72), rank(costs(memory=20), account=BEGUN)])
    assert (found.outcome, known(found.at_most_frac)) == ("clear", 40 / 1_800 + 72 / 1_800)
    assert judge_memory([unseen(60), unseen(20)]).at_most_frac == 40 / 2_000 + 80 / 2_000


@pytest.mark.parametrize(
    ("at_most_ns", "bound_ns", "outcome", "most"),
    [
        (30, 99, "clear", 0.099),  # what is unseen is in the bound of the partition
        (30, 100, "unmeasurable", 0.1),
        (None, 99, "unmeasurable", None),
    ],
)
@pytest.mark.parametrize("priced", [costs(memory=20, at_least=DOUBT), DOUBT], ids=["doubted", "no price"])
def test_without_a_proven_price_the_partition_bounds_what_is_unseen(
    at_most_ns: int | None, bound_ns: int, outcome: str, most: float | None, priced: object
) -> None:
    found = judge_memory([unseen(at_most_ns, priced, bounds=Bounds(0, 0, bound_ns, 0))])
    assert (found.outcome, known(found.at_most_frac)) == (outcome, most)
    is_doubted = priced is not DOUBT
    assert found.at_least_frac == (0.02 if is_doubted and outcome == "unmeasurable" else UNSET)
    if outcome == "unmeasurable":
        own_reason = is_doubted or at_most_ns is None
        assert found.missing[0].startswith("time of recompute unknown" if own_reason else DOUBT.reason)


def test_graphs_recorded_whole_may_hold_more_of_what_runs_again() -> None:
    again = replace(rank().recompute, places=np.array([0]))
    held = rank(recompute=again, replay_count=1)
    found = judge_memory([rank(), held])
    assert (found.outcome, found.missing[0].partition(",")[0]) == (
        "unmeasurable",
        "something is computed a second time",
    )
    assert (
        judge_memory([replace(held, replay_count=0), replace(held, recompute=rank().recompute)]).outcome
        == "clear"
    )
    doubted = replace(held, costs=costs(at_least=DOUBT))
    assert judge_memory([doubted]).missing == (DOUBT.reason,)  # one doubt is enough


def test_what_memory_pays_for_is_said_where_anything_is_paid() -> None:
    paying = with_memory(rank(costs(memory=200)), recompute_ns=150, offload_exposed_ns=0, allocator_ns=20)
    found = judge_memory([paying])
    assert evidence(found, "recompute_frac").value == 0.15
    assert evidence(found, "allocator_frac").value == 0.02
    assert "offload_exposed_frac" not in seen(found)


def test_what_copies_move_and_how_fast_stands_beside_their_cost() -> None:
    """2 and 4 copies of 3 GB in 100 ms, and 5 GB in 100 ms: 4 GB on each GPU, 40 GB/s."""
    ms = 10**6
    ranks = [
        with_memory(
            rank(costs(memory=200)),
            host_resident_copies=copies,
            host_resident_bytes=gigabytes * 10**9,
            host_resident_union_ns=100 * ms,
        )
        for copies, gigabytes in ((2, 3), (4, 5))
    ]
    counted = with_memory(rank(), host_resident_copies=9, host_resident_bytes=NOBODY)  # by figures alone
    found = judge_memory([*ranks, counted])
    values = [evidence(found, f"host_resident_{key}").value for key in ("copies", "bytes", "gb_per_s")]
    assert values == [3, 4 * 10**9, 40.0]
    assert "offload_bytes" not in seen(found)
