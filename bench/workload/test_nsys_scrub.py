"""A scrubbed export reads as before and holds nothing of the machine it was recorded on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import diagnoser
from bench.simulate.export import schema_versions, write_export
from bench.workload.nsys_scrub import scrub_exports
from tests.hostile.secrets import SECRET, plant, secrets_in
from tests.recordings.moe_pattern import moe_recording
from traces.formats.open import read_trace

TABLE_OF_STARTS = "TARGET_INFO_SESSION_START_TIME"


def found(path: Path) -> dict[str, Any]:
    """What is diagnosed, without the recording's name and when it was made."""
    document = diagnoser.analyze([path]).to_dict()
    return {key: document[key] for key in ("verdict", "walls", "fixes", "ranks")}


def scrubbed(path: Path) -> Path:
    out = path.with_name("scrubbed.sqlite")
    scrub_exports([path], [out])
    return out


@pytest.mark.parametrize("schema", schema_versions()[::4])
def test_a_scrubbed_export_of_any_schema_gives_the_same_diagnosis(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "run.sqlite"
    recording = moe_recording(steps=2, layers=1)
    recording.gpu()
    write_export(path, recording, schema, lazy=False)
    before = json.dumps(found(path)).replace("run.sqlite", "scrubbed.sqlite")
    assert json.dumps(found(scrubbed(path))) == before


@pytest.mark.parametrize("schema", schema_versions())
def test_no_text_of_an_export_survives_that_is_not_known_to_be_public(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "run.sqlite"
    write_export(path, moe_recording(steps=2, layers=1), schema, lazy=False)
    assert plant(path) >= 10
    assert SECRET.encode() in path.read_bytes()
    assert secrets_in(scrubbed(path).read_bytes()) == []


def test_ranks_stay_as_far_apart_as_they_were_and_lose_the_date(tmp_path: Path) -> None:
    paths, outs = ([tmp_path / f"{name}{rank}.sqlite" for rank in (0, 1)] for name in ("rank", "out"))
    for path in paths:
        write_export(path, moe_recording(steps=2, layers=1))
    with closing(sqlite3.connect(paths[0])) as database, database:
        database.execute(f"UPDATE {TABLE_OF_STARTS} SET utcEpochNs = utcEpochNs + 1234")
    scrub_exports(paths, outs)
    assert [read_trace(out).session_start_ns for out in outs] == [1234, 0]
