"""The references that coupled ranks are held against, on cases small enough to do in the head."""

from __future__ import annotations

import numpy as np
import pytest

from bench.simulate.ranks.clocks_by_definition import Clock, fit_clocks
from bench.simulate.ranks.waits_by_definition import Part, charged_ns, uncharged_ns, waits

MS, S = 1_000_000, 1_000_000_000
EPOCH = 1_760_000_000 * S


def parts(*rows: tuple[int, int, int], group: str = "ep", sequence: int = 0) -> list[Part]:
    return [Part(rank, group, sequence, start, end) for rank, start, end in rows]


def test_the_shortest_takes_the_transfer_and_the_others_waited_for_it() -> None:
    (one,) = waits(parts((0, 0, 130), (1, 100, 130), (2, 40, 130)))
    assert (one.transfer_ns, one.wait_ns, one.late) == (30, {0: 100, 1: 0, 2: 60}, (1,))
    assert (one.later_ns, one.moved_ns) == ({0: 100, 1: 0, 2: 60}, {0: 30, 1: 30, 2: 30})
    assert charged_ns([one]) == {1: 160}


def test_what_a_slow_link_takes_longer_is_no_lateness() -> None:
    (one,) = waits(parts((0, 0, 60), (1, 10, 120), (2, 20, 60)))
    assert (one.transfer_ns, one.wait_ns, one.late) == (40, {0: 20, 1: 70, 2: 0}, (2,))
    assert (one.later_ns, one.moved_ns) == ({0: 20, 1: 10, 2: 0}, {0: 40, 1: 100, 2: 40})


def test_instances_are_told_apart_by_group_and_number() -> None:
    first, other = parts((0, 0, 50), (1, 40, 50)), parts((0, 60, 90), (2, 80, 90), group="dp")
    again = parts((0, 100, 150), (1, 120, 150), sequence=1)
    found = waits([*again, *other, *first])
    assert [(one.group, one.sequence, one.transfer_ns) for one in found] == [
        ("ep", 0, 10),
        ("dp", 0, 10),
        ("ep", 1, 30),
    ]
    assert charged_ns(found) == {1: 60, 2: 20}


def test_ranks_that_were_late_together_share_what_is_charged() -> None:
    assert charged_ns(waits(parts((0, 0, 50), (1, 40, 50), (2, 40, 50)))) == {1: 20, 2: 20}


def test_nobody_is_charged_where_a_rank_of_the_group_was_not_recorded() -> None:
    found = waits(parts((0, 0, 50), (1, 40, 50)), {"ep": (0, 1, 2)})
    assert (found[0].late, found[0].missing) == ((), (2,))
    assert (charged_ns(found), uncharged_ns(found)) == ({}, 40)


def test_a_group_is_who_took_part_in_any_of_its_instances() -> None:
    found = waits(parts((0, 0, 50), (1, 40, 50)) + parts((1, 60, 70), sequence=1))
    assert [one.missing for one in found] == [(), (0,)]


def test_a_rank_takes_part_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        waits(parts((0, 0, 50), (0, 40, 50)))


def recorded(true_ns: dict[str, int], offset_ns: int, drift_ppm: float) -> dict[str, int]:
    return {key: time + round(time * drift_ppm * 1e-6) + offset_ns for key, time in true_ns.items()}


ENDS = {f"ep {n}": 10 * MS * n + n % 7 * 1_000 for n in range(300)}


def test_offset_and_drift_of_a_clock_are_found_to_the_ns() -> None:
    fitted = fit_clocks({"a": ENDS, "b": recorded(ENDS, 2 * S, 100.0)})["b"]
    assert fitted is not None
    assert fitted.drift_ppm == pytest.approx(100, abs=0.01)
    assert fitted.residual_ns <= 1
    assert np.abs(fitted.on_first_ns(np.array([2 * S])) - 0).max() <= 1


def test_a_few_participants_that_end_later_move_no_clock() -> None:
    other = recorded(ENDS, -S, -40.0)
    late = {key: time + (n % 5 == 0) * 3 * MS for n, (key, time) in enumerate(other.items())}
    fitted = fit_clocks({"a": ENDS, "b": late})["b"]
    assert fitted is not None
    found = fitted.on_first_ns(np.array(list(other.values())))
    assert np.abs(found - np.array(list(ENDS.values()))).max() <= 2


def test_a_clock_is_fitted_through_another_that_shares_collectives_with_both() -> None:
    halves = dict(list(ENDS.items())[:150]), dict(list(ENDS.items())[150:])
    fitted = fit_clocks(
        {
            "a": recorded(halves[0], EPOCH, 0.0),
            "c": recorded(halves[1], -5 * MS, 90.0),
            "b": recorded(ENDS, 7, -70.0),
            "d": {"of nobody else": 3},
        }
    )
    assert fitted["a"] == Clock(EPOCH, 0, 0.0, 0.0, 150)
    assert fitted["c"] is not None
    own = np.array(list(recorded(halves[1], -5 * MS, 90.0).values()))
    assert np.abs(fitted["c"].on_first_ns(own) - EPOCH - np.array(list(halves[1].values()))).max() <= 2
    assert fitted["d"] is None
