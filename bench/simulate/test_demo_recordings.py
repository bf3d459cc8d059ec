"""The recordings of the demo are what the simulator makes today.

`pytest --update-golden bench/simulate` records those again that are not.
"""

from __future__ import annotations

import io
import lzma
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bench.simulate.ranks.demo import write_demo
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from bench.simulate.scenarios import SCENARIOS
from diagnoser.demo import RECORDINGS, SEVERAL, compressed, unpack

LIMIT_BYTES = 1_500_000


def content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """How each table was declared, and its rows."""
    with closing(sqlite3.connect(path)) as export:
        declared = dict(export.execute("SELECT name, sql FROM sqlite_master"))
        return {text: export.execute(f"SELECT * FROM {name}").fetchall() for name, text in declared.items()}


def test_every_run_of_the_demo_can_be_made_again() -> None:
    assert [*RECORDINGS] == [*SCENARIOS, *SEVERAL]


def shipped(name: str, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    unpack(folder / "shipped.sqlite", name)
    found = content(folder / "shipped.sqlite")
    (folder / "shipped.sqlite").unlink()
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recording_is_what_the_simulator_makes(
    name: str, tmp_path: Path, export: Callable[..., Path], request: pytest.FixtureRequest
) -> None:
    made = export(record(run(SCENARIOS[name]), View()), f"{name}.sqlite", schema=View().schema)
    packed = compressed(name)
    if request.config.getoption("--update-golden") and not (
        packed.exists() and shipped(name, tmp_path) == content(made)
    ):
        packed.write_bytes(lzma.compress(made.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    assert shipped(name, tmp_path) == content(made)


def test_the_recordings_of_ranks_are_what_the_simulator_makes(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made, there, packed = tmp_path / "made", tmp_path / "there", compressed("ranks")
    made.mkdir()
    found = {path.name: content(path) for path in write_demo(made)}

    def shipped_ranks() -> dict[str, dict[str, list[tuple[object, ...]]]]:
        unpack(there, "ranks")
        return {path.name: content(path) for path in sorted(there.iterdir())}

    if request.config.getoption("--update-golden"):
        packed.write_bytes(lzma.compress(_archive(made), preset=9 | lzma.PRESET_EXTREME))
    assert shipped_ranks() == found
    assert len(found) == SEVERAL["ranks"]


def _archive(folder: Path) -> bytes:
    """Names and contents alone: no time, no user."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.iterdir()):
            one = tarfile.TarInfo(path.name)
            one.size = path.stat().st_size
            archive.addfile(one, io.BytesIO(path.read_bytes()))
    return data.getvalue()


def test_recordings_that_differ_in_one_number_are_not_the_same(tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", "communication")
    before = content(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as export, export:
        export.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + 1 WHERE rowid = 7")
    assert content(tmp_path / "run.sqlite") != before


def test_all_recordings_together_stay_small_and_nothing_else_lies_beside_them() -> None:
    paths = {compressed(name) for name in RECORDINGS}
    assert {*compressed("memory").parent.iterdir()} == paths
    assert sum(path.stat().st_size for path in paths) < LIMIT_BYTES
