"""`analyze --summary` and `merge`: ranks measured one by one, put together without their traces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.speed.ranks import large_run
from diagnoser.cli import run
from diagnoser.running.merging import merge_summaries
from tests.doubles.sides import run_of
from traces.errors import DamagedTrace
from traces.ranks.summaries.codec import SUFFIX, encode
from traces.ranks.summaries.decoding import decode as decoded


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
