"""How many bytes a trace takes for each of its kernels, with 1.1 calls and 0.4 ranges to a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.speed.million import write_export
from traces.formats.open import read_trace
from traces.timeline import RankTimeline, Source, build

KERNELS = 4_000


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> RankTimeline:
    path = tmp_path_factory.mktemp("held") / "run.sqlite"
    write_export(path, KERNELS)
    (found,) = build(read_trace(path)).ranks
    return found


def arrays(held: object) -> Iterator[NDArray[np.generic]]:
    """What holds the memory of each array in it."""
    if isinstance(held, np.ndarray):
        yield arrays_owner(held)
    elif is_dataclass(held):
        for field in fields(held):
            yield from arrays(getattr(held, field.name))
    elif isinstance(held, Mapping | tuple):
        for one in held.values() if isinstance(held, Mapping) else held:
            yield from arrays(one)


def arrays_owner(array: NDArray[np.generic]) -> NDArray[np.generic]:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_the_columns_of_some_activities_are_taken_when_they_are_asked_for(rank: RankTimeline) -> None:
    rows = rank.activities
    long = rows.end_ns - rows.start_ns > 20_000
    some = rows.take(long)
    some = some.take(np.flatnonzero(some.source == Source.KERNEL)[::-1])
    assert len(some) == int(long.sum()) > 0
    assert some.start_ns.tolist() == rows.start_ns[long][::-1].tolist()
    assert some.start_ns is some.start_ns
    with pytest.raises(AttributeError):
        some.nothing  # type: ignore[attr-defined]  # noqa: B018
