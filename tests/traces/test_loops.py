"""One text of a loop, run two ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traces import loops
from traces.columns import IntArray
from traces.loops import COMPILED_FROM, loop
from traces.progress import listening


@loop("sums")
def add_up(values: IntArray, sums: IntArray, most: int) -> int:
    total = 0
    for place in range(len(values)):
        total = smaller(total + values[place], most)
        sums[place] = total
    return total


@loop()
def smaller(one: int, other: int) -> int:
    return min(one, other)


VALUES = np.array([3, 4, 5], dtype=np.int64)


def test_interpreted_and_compiled_give_the_same() -> None:
    for way in (add_up.interpreted, add_up.compiled):
        sums = np.zeros(3, dtype=np.int64)
        assert way(VALUES, sums, 10) == 10
        assert sums.tolist() == [3, 7, 10]


def test_little_work_is_interpreted_and_much_is_compiled() -> None:
    assert add_up.over(int(COMPILED_FROM.value) - 1) == add_up.interpreted
    assert add_up.over(int(COMPILED_FROM.value)) is add_up.compiled


def test_without_numba_everything_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_compiles", lambda: False)
    assert add_up.over(10**9) == add_up.interpreted


def test_the_first_compile_is_announced_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words: list[str] = []
    for _ in range(2):
        fresh = loop("sums")(add_up._text)
        with listening(lambda doing, fraction: words.append(doing)):
            fresh.compiled(VALUES, np.zeros(3, dtype=np.int64), 10)
    assert words == ["compiling the loops for large traces, once"]
    assert list((tmp_path / "moe-diag" / "loops").rglob("*.nbc"))


def test_where_nothing_can_be_kept_a_loop_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    fresh = loop("sums")(add_up._text)
    assert fresh.compiled(VALUES, np.zeros(3, dtype=np.int64), 10) == 10
