"""One text of a loop, run two ways."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.doubles.loops import VALUES, add_up
from traces import loops
from traces.loops import COMPILED_FROM, loop
from traces.progress import listening


@loop("marks")
def mark(data: NDArray[np.uint8], marks: NDArray[np.uint8]) -> None:
    for place in range(len(data)):
        marks[place] = data[place] // 2


def test_bytes_are_read_and_written_both_ways() -> None:
    for way in (mark.interpreted, mark.compiled):
        marks = np.zeros(3, dtype=np.uint8)
        way(np.array([4, 200, 255], dtype=np.uint8), marks)
        assert marks.tolist() == [2, 100, 127]


def test_little_work_is_interpreted_and_much_is_compiled() -> None:
    assert add_up.over(int(COMPILED_FROM.value) - 1) == add_up.interpreted
    assert add_up.over(int(COMPILED_FROM.value)) is add_up.compiled


def test_a_loop_that_comes_often_is_compiled_in_the_end() -> None:
    often, rounds = loop("sums")(add_up._text), int(COMPILED_FROM.value) // 4
    ran = [often.over(rounds) for _ in range(5)]
    assert ran[:3] == [often.interpreted] * 3
    assert ran[3:] == [often.compiled] * 2
    assert loop("sums")(add_up._text).over(rounds, times=4).__name__ == often.compiled.__name__


def test_a_numba_that_cannot_be_imported_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    loops._compiles.cache_clear()
    try:
        assert add_up.over(10**9) == add_up.interpreted
    finally:
        loops._compiles.cache_clear()


def test_the_first_compile_is_announced_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words: list[str] = []
    for _ in range(2):
        fresh = loop("sums")(add_up._text)
        with listening(lambda doing, *_: words.append(doing)):
            fresh.compiled(VALUES, np.zeros(3, dtype=np.int64), 10)
    assert words == ["compiling the loops for large traces, once"]
    assert list((tmp_path / "moe-diag" / "loops").rglob("*.nbc"))
    assert (tmp_path / "moe-diag").stat().st_mode & 0o777 == 0o700


def test_where_nothing_can_be_kept_a_loop_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    fresh = loop("sums")(add_up._text)
    assert fresh.compiled(VALUES, np.zeros(3, dtype=np.int64), 10) == 10


def test_where_the_disk_is_full_a_loop_runs_and_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    sums = np.zeros(3, dtype=np.int64)
    assert loop("sums")(add_up._text).compiled(VALUES, sums, 10) == 10
    assert sums.tolist() == [3, 7, 10]
