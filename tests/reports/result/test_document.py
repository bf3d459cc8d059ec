"""The JSON contract, the table, and the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import diagnoser
from bench.simulate.recording import Recording
from reports.result.json_text import render_json
from tests.agreement.untold import unexplained
from tests.doubles.pages import first_screen, flat
from tests.read_back.schema import validate
from tests.recordings.moe_pattern import moe_recording
from traces.errors import NothingToDiagnose
from traces.steps.selection import seconds

Export = Callable[..., Path]
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def small() -> Recording:
    """Window 100: gemm 40, sendrecv 30 of which 10 hidden, memcpy 20, an unknown kernel 10, idle 10."""
    recording = Recording()
    recording.gpu("NVIDIA H100 80GB HBM3")
    recording.kernel("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", 1_000, 1_040, launch_ns=900)
    recording.kernel(SENDRECV, 1_030, 1_060, launch_ns=910, stream=20)
    recording.copy("h2d", 1_060, 1_080, size_bytes=64, launch_ns=920)
    recording.kernel("mystery<\x1b[31m|`x`>(int)", 1_090, 1_100, launch_ns=930)
    return recording


def graph_only() -> Recording:
    recording = Recording()
    recording.graph_replay(100, 190, launch_ns=90)
    recording.memset(190, 200, size_bytes=4)
    return recording


@pytest.mark.parametrize(
    ("make", "schema"),
    [
        (small, "none"),
        (small, "3.25.0"),
        (graph_only, "3.25.0"),
        (moe_recording, "none"),
        (moe_recording, "3.28.1"),
    ],
)
def test_every_document_is_valid_and_every_null_is_explained(
    export: Export, make: Callable[[], Recording], schema: str
) -> None:
    document = diagnoser.analyze(export(make(), schema=schema)).to_dict()
    validate(document)
    assert unexplained(document) == []
    assert json.loads(render_json(document)) == document


def test_a_null_without_a_reason_is_found() -> None:
    assert unexplained(
        {"a": {"b": None}, "ab": None, "missing": [{"path": "a", "reason": "", "cure": ""}]}
    ) == ["ab"]


def test_the_four_walls_stand_in_the_order_of_the_workflow(export: Export) -> None:
    document = diagnoser.analyze(export(moe_recording())).to_dict()
    assert [wall["id"] for wall in document["walls"]] == [
        "memory",
        "communication",
        "host_overhead",
        "compute",
    ]
    assert document["verdict"]["wall"] == "communication"


@pytest.mark.parametrize(
    ("compute_ns", "comm_ns", "bound"),
    [(51, 49, "compute"), (49, 51, "communication"), (50, 50, None), (20, 20, None)],
)
def test_bound_needs_more_than_half_of_the_summed_windows(
    export: Export, compute_ns: int, comm_ns: int, bound: str | None
) -> None:
    recording = Recording()
    for at in range(compute_ns):  # enough to be judged
        recording.kernel("nvjet_tst_128x256", at, at + 1)
    recording.kernel(SENDRECV, 100 - comm_ns, 100)
    assert diagnoser.analyze(export(recording)).to_dict()["verdict"]["bound"] == bound


def test_idle_and_copies_without_an_account_are_never_called_host_or_memory(export: Export) -> None:
    recording = Recording()
    recording.kernel("nvjet_tst_128x256", 0, 10)
    recording.kernel("nvjet_tst_128x256", 990, 1_000)
    document = diagnoser.analyze(export(recording)).to_dict()
    assert document["verdict"]["bound"] is None
    assert document["verdict"]["largest_bucket"] == "idle"
    assert "nothing recorded <0.001 = 0.001 ms" in flat(first_screen(document))


def test_the_table_has_one_row_per_bucket_kind_and_class(export: Export) -> None:
    frame = diagnoser.analyze(export(small())).to_frame()
    assert list(frame.columns) == ["trace", "process", "device", "group", "key", "ns", "frac"]
    rows = {(row.group, row.key): (row.ns, row.frac) for row in frame.itertuples()}
    assert rows == {
        ("bucket", "compute"): (50, 0.5),
        ("bucket", "exposed_comm"): (20, 0.2),
        ("bucket", "exposed_copy"): (20, 0.2),
        ("bucket", "idle"): (10, 0.1),
        ("exposed_comm_kind", "sendrecv_unresolved"): (20, 0.2),
        ("exposed_copy_kind", "memcpy_h2d"): (20, 0.2),
        ("compute_class", "gemm"): (40, 0.4),
        ("compute_class", "other"): (10, 0.1),
    }


def test_what_could_not_be_told_is_missing_in_the_table_not_zero(export: Export) -> None:
    frame = diagnoser.analyze(export(graph_only())).to_frame()
    row = frame[(frame["group"] == "bucket") & (frame["key"] == "exposed_comm")]
    assert row["ns"].isna().all()


def test_the_same_input_gives_the_same_bytes(export: Export) -> None:
    path = export(moe_recording())
    assert render_json(diagnoser.analyze(path).to_dict()) == render_json(diagnoser.analyze(path).to_dict())


def test_a_trace_that_fails_beside_one_that_works_is_a_warning(export: Export, tmp_path: Path) -> None:
    good, empty = export(small()), export(Recording(), "empty.sqlite")
    text = tmp_path / "notes.txt"
    text.write_text("hello", encoding="utf-8")
    document = diagnoser.analyze([empty, good, text]).to_dict()
    assert [trace["name"] for trace in document["traces"]] == ["run.sqlite"]
    assert len(document["warnings"]) == 2
    assert str(tmp_path) not in json.dumps(document)
    with pytest.raises(NothingToDiagnose):
        diagnoser.analyze([empty])


def test_seconds_are_exact() -> None:
    assert seconds(-5) == "-0.000000005s"
