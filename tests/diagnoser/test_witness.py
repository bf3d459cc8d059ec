"""`--witness` beside summaries or alone, pages of merged ranks, and `demo ranks`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.speed.ranks import large_run
from diagnoser.cli import run
from tests.places import ROOT
from traces.ranks.summaries.codec import SUFFIX, encode

SAMPLES = ROOT / "tests" / "data" / "witness"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Summaries of eight ranks, of which the first is late."""
    folder = tmp_path_factory.mktemp("kept")
    for summary in large_run(8):
        (folder / f"{summary.identity.rank}{SUFFIX}").write_bytes(encode(summary))
    return folder


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 0
    return " ".join(capsys.readouterr().out.split())


def test_dumps_alone_say_where_the_run_hangs_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(["merge", "--witness", f"{SAMPLES}/missing_rank/trace_rank_?"], capsys)
    assert "HANGS IN ALLREDUCE seq 2 of EXPERT_MODEL_PARALLEL_GROUP: rank 3 never entered" in text
    assert "expert_model_parallel_size" in text
    assert "First Look at that rank" in text


@pytest.mark.parametrize("form", ["html", "png", "svg", "pdf", "markdown"])
def test_merged_ranks_have_pages_and_pictures(form: str, kept: Path, tmp_path: Path) -> None:
    assert run(["merge", str(kept), "-f", form, "-o", str(tmp_path)]) == 0
    (made,) = tmp_path.iterdir()
    assert made.name.startswith(f"{kept.name}_run.")
    if form == "html":
        page = made.read_text(encoding="utf-8")
        assert "heat-ticks" in page
        assert "rank 0: slow device" in page


def test_a_hostile_dump_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = tmp_path / "trace_rank_0"
    hostile.write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueR.")
    assert run(["merge", "--witness", str(hostile)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "asks for more than plain values" in line
