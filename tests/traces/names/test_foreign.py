"""A name that no recorder writes is cut once, where it is read, by every reader alike."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bench.simulate.export import write_export
from tests.recordings.kineto import call, event, on_gpu, write
from tests.recordings.moe_pattern import moe_recording
from tests.recordings.ranks import summary_of
from tests.recordings.two_readers import both, database
from traces.columns import Columns
from traces.formats.open import read_trace
from traces.formats.sqlite_tables import SqliteTables
from traces.names.file_names import WITHHELD
from traces.names.foreign import LONGEST, cut_name
from traces.ranks.codec import encode
from traces.ranks.decoding import decode
from traces.witness.read import read_witness

MOST = int(LONGEST.value)
HUGE = "_" * 3 * MOST


@given(st.text(max_size=3), st.integers(0, 3 * MOST))
def test_head_and_tail_of_a_name_stay(text: str, length: int) -> None:
    name = f"<{text}{'é' * length}{text}>"
    kept = cut_name(name)
    assert (kept == name) == (len(name) <= MOST)
    assert len(kept) == min(len(name), MOST)
    assert (kept[:2], kept[-2:]) == (name[:2], name[-2:])


def lengths(columns: Columns) -> set[int]:
    """How long the longest name of each kind is."""
    kinds = (
        *(columns.kernel_names, columns.call_names, columns.range_texts, columns.thread_names.values()),
        *(columns.os_calls.names, columns.overheads.names),
    )
    return {max(map(len, names)) for names in kinds if names}


def test_names_of_an_export_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    write_export(path, moe_recording(steps=1, layers=1), lazy=False)
    assert max(lengths(read_trace(path))) < MOST
    with closing(sqlite3.connect(path)) as export, export:
        export.execute("UPDATE StringIds SET value = value || ?", (HUGE,))
        export.execute("UPDATE NVTX_EVENTS SET text = text || ?", (HUGE,))
    assert lengths(read_trace(path)) == {MOST}


def test_names_of_a_trace_of_the_pytorch_profiler_are_cut(tmp_path: Path) -> None:
    events = [
        call(f"cudaLaunchKernel{HUGE}", 90, 2, 1),
        on_gpu("kernel", f"gemm{HUGE}", 100, 60, 1),
        event("user_annotation", f"step{HUGE}", 80, 100),
        event("overhead", f"Flush{HUGE}", 80, 1),
    ]
    assert lengths(read_trace(write(tmp_path / "run.json", events))) == {MOST}


def test_both_readers_of_exports_cut_alike_and_have_each_text_once(tmp_path: Path) -> None:
    other_middle = f"{HUGE[:MOST]}x{HUGE[MOST + 1 :]}"
    path = database(
        tmp_path / "run.sqlite",
        "CREATE TABLE t (a INTEGER, s TEXT)",
        "INSERT INTO t VALUES (?, ?)",
        rows=[*enumerate((HUGE, "short", other_middle, HUGE, f"{HUGE}!"))],
    )
    assert both(path, "t", ["a"], ["s"]) == "pages"
    with SqliteTables(path) as tables:
        column = tables.read("t", ["a"], ["s"]).texts["s"]
    assert [len(text) for text in column.values] == [MOST, 5, MOST]
    assert column.codes.tolist() == [0, 1, 0, 0, 2]


def test_names_of_dumps_and_summaries_are_cut(tmp_path: Path) -> None:
    entry = {"collective_seq_id": 1, "process_group": [HUGE, "default_pg"], "profiling_name": "nccl:send"}
    dump = tmp_path / "dump_0"
    dump.write_text(json.dumps({"entries": [entry]}), encoding="utf-8")
    (one,) = read_witness(dump)
    assert [len(name) for name, _ in one.groups] == [MOST]
    summary = summary_of(None, [], [])
    summary = replace(summary, identity=replace(summary.identity, trace=HUGE))
    assert decode(encode(summary), "a.rank").identity.trace == WITHHELD  # no word of a recorder is so long
