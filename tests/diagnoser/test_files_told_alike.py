"""Recordings whose names are told alike are still several: of a host each, or of a folder each."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.simulate.export import write_export
from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.run import run
from diagnoser import analyze


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("node042.sqlite", "node043.sqlite"), ("WITHHELD#1.sqlite", "WITHHELD#2.sqlite")),
        (("a/run.sqlite", "b/run.sqlite"), ("run#1.sqlite", "run#2.sqlite")),
    ],
)
def test_ranks_stay_with_their_recordings(
    names: tuple[str, str], told: tuple[str, str], tmp_path: Path
) -> None:
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        write_export(path, record(run(Knobs(step_count=3, layer_count=1)), View()))
    result = analyze(paths, ask_megatron=False).result
    assert tuple(trace.name for trace in result.traces) == told
    assert {rank.trace for rank in result.ranks} <= {*told}
    whole = analyze(paths, ask_megatron=False, redact=False).result
    assert tuple(Path(trace.name).name for trace in whole.traces) == (
        ("node042.sqlite", "node043.sqlite") if names[0].startswith("node") else told
    )
