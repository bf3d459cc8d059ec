"""Some stretches of a recording replayed, in place of all of it."""

from __future__ import annotations

import numpy as np

from tests.recordings.replay import begun
from traces.replay.run import Borders, Replayed
from traces.steps.found import one_window
from traces.steps.sample import WHOLE, sample_of
from traces.timeline import Activities


def at(start_ns: list[int], end_ns: list[int]) -> Activities:
    """As many activities at these times."""
    some = begun().rank().activities.take(np.zeros(len(start_ns), dtype=np.int64))
    taken = {name: getattr(some, name) for name in Activities.__slots__}
    return Activities(**{**taken, "start_ns": np.array(start_ns), "end_ns": np.array(end_ns)})


def test_work_that_ends_late_in_one_stretch_does_not_make_the_next_begin_late() -> None:
    """Two steps of 100 ns, 100 ns apart; all work of the first takes 900 ns longer."""
    rows = at([0, 210], [100, 300])
    done = Replayed(rows.start_ns, np.array([1_000, 300]))
    pairs = [(0, 100), (200, 300)]
    together, apart = Borders(rows, pairs), Borders(rows, pairs, [100, 500], [150])
    assert together.lengths_ns(done).tolist() == [1_000, 0]
    assert apart.lengths_ns(done).tolist() == [1_000, 500]


def test_a_step_counts_for_those_that_it_stands_for() -> None:
    rows = at([0], [100])
    found = Borders(rows, [(0, 100)], [1_000])
    assert found.lengths_ns(Replayed(rows.start_ns, np.array([60]))).tolist() == [600]


def test_slices_of_a_long_window_stand_for_all_of_it() -> None:
    """A window of 32 parts of 1,000 ns; half of the activities are replayed, a quarter of them counts."""
    window = one_window("none", "", 0, 32_000)
    assert sample_of(window, int(WHOLE.value)).pairs_ns == ((0, 32_000),)
    found = sample_of(window, 2 * int(WHOLE.value))
    assert found.pairs_ns[:2] == ((500, 750), (1_500, 1_750))
    assert found.stretches.pairs()[:2] == [[250, 750], [1_250, 1_750]]
    assert set(found.stand_for_ns) == {1_000}
    assert (len(found.pairs_ns), sum(found.stand_for_ns)) == (32, 32_000)
