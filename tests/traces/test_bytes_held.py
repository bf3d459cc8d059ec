"""What a table of activities holds of some of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.by_hand.run import Run
from traces.timeline import Source


def test_the_columns_of_some_activities_are_taken_when_they_are_asked_for() -> None:
    run = Run()
    for place, name in enumerate(("gemm", "d2h", "norm", "gemm")):
        run.work(name, 10 * place, 10 * place + 5)
    rows = run.rank().activities
    some = rows.take(np.array([True, True, False, True]))
    some = some.take(np.flatnonzero(some.source == Source.KERNEL)[::-1])
    assert some.start_ns.tolist() == rows.start_ns[[3, 0]].tolist()
    assert some.start_ns is some.start_ns
    with pytest.raises(AttributeError):
        some.nothing  # type: ignore[attr-defined]  # noqa: B018
