"""`analyze --summary` and `merge`: ranks measured one by one, put together without their traces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.simulate.export import write_export
from bench.speed.ranks import large_run
from diagnoser.cli import run
from diagnoser.running.merging import merge_summaries
from heuristics.result.result import Merged
from reports.result.codec import decode
from reports.result.schema import schema
from tests.doubles.sides import run_of
from tests.recordings.moe_pattern import moe_recording
from traces.errors import DamagedTrace
from traces.ranks.codec import SUFFIX, encode
from traces.ranks.decoding import decode as decoded


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Summaries of sixteen ranks, of which the first is late."""
    folder = tmp_path_factory.mktemp("kept")
    for summary in large_run(16):
        (folder / f"{summary.identity.rank}{SUFFIX}").write_bytes(encode(summary))
    return folder


def failed(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(words)
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


def test_the_document_keeps_its_schema_and_comes_back(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run.json"
    assert run(["merge", str(kept), "-o", str(output)]) == 0
    document = json.loads(output.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema(Merged)).validate(document)
    assert document["traces"] == [f"{rank}.sqlite" for rank in range(16)]
    assert decode(document, Merged) == merge_summaries([kept]).result
    assert run(["merge", str(kept), "-o", str(output)]) == 2
    assert "--force-overwrite" in capsys.readouterr().err


def test_what_is_damaged_or_no_summary_is_named_and_the_others_go_on(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = kept / f"0{SUFFIX}"
    broken, foreign, gone = (tmp_path / f"{name}{SUFFIX}" for name in ("broken", "foreign", "gone"))
    broken.write_bytes(whole.read_bytes()[:-9])
    foreign.write_bytes(b"SQLite format 3\x00")
    others = [str(kept / f"{rank}{SUFFIX}") for rank in range(1, 16)]
    assert run(["merge", *others, str(broken), str(foreign), str(gone), "-f", "json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["warnings"] == [
        "broken.rank was skipped: it is damaged",
        "foreign.rank was skipped: it is no summary that this moe-diag reads",
        "gone.rank was skipped: it cannot be read",
    ]
    assert document["run"]["ranks_seen"] == 15
    assert document["run"]["problems"][0]["kind"] == "missing_ranks"
    assert err.count("skipped: ") == 3
    assert str(broken) in err


@pytest.mark.parametrize(("name", "said"), [("", "has no summaries"), ("nothing", "cannot be read")])
def test_without_any_summary_the_error_says_what_to_type(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = failed(["merge", str(tmp_path / name)], capsys)
    assert code == 3
    assert said in err


def test_a_kept_summary_is_never_replaced_unasked_nor_diagnosed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, kept = run_of(tmp_path / "run.sqlite"), tmp_path / f"run{SUFFIX}"
    kept.write_bytes(b"mine")
    code, err = failed(["analyze", str(trace), "--summary", str(tmp_path)], capsys)
    assert (code, kept.read_bytes()) == (2, b"mine")
    assert "--force-overwrite" in err
    kept.write_bytes(encode(next(large_run(8))))
    code, err = failed(["analyze", str(kept)], capsys)
    assert code == 3
    assert f"moe-diag merge {kept}" in err


def test_a_summary_is_read_without_what_its_texts_may_give_away(kept: Path, tmp_path: Path) -> None:
    summary = next(iter(large_run(1)))
    known = summary.identity
    telling: tuple[dict[str, Any], ...] = (
        {"trace": "node0421.cluster.corp.com_alice.sqlite", "world_size_from": "train_alice.sh:7"},
        {"trace": "$(reboot)", "world_size_from": "; curl x | sh"},
    )
    for place, changes in enumerate(telling):
        other = replace(known, world_size=16, **changes)
        (tmp_path / f"{place}{SUFFIX}").write_bytes(encode(replace(summary, identity=other)))
        found = json.dumps(merge_summaries([tmp_path / f"{place}{SUFFIX}"]).to_dict())
        for private in ("alice", "node0421", "reboot", "curl"):
            assert private not in found
    strange: tuple[dict[str, Any], ...] = ({"kind": "nsys\n"}, {"version": "$(reboot)"})
    for wrong in strange:
        blob = encode(replace(summary, identity=replace(known, **wrong)))
        with pytest.raises(DamagedTrace):
            decoded(blob, "there")


def test_summaries_of_files_whose_names_are_withheld_lie_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, host in enumerate(("node0421", "node0422")):
        path = tmp_path / f"run_{host}.sqlite"
        recording = moe_recording(steps=2, layers=1)
        recording.mpi_rank(4200, rank)
        write_export(path, recording)
        assert (
            run(["analyze", str(path), "--summary", str(tmp_path / "kept"), "-o", str(tmp_path / host)]) == 0
        )
        assert "parts of file names are withheld" in capsys.readouterr().err
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert names == [f"run_WITHHELD_rank0{SUFFIX}", f"run_WITHHELD_rank1{SUFFIX}"]
