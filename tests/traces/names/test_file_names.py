"""Names that are told: of files what may be a host is withheld; what no recorder writes is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulate.export import write_export
from tests.recordings.inputs import changed
from tests.recordings.kineto import call, event, on_gpu, write
from tests.recordings.moe_pattern import moe_recording
from tests.recordings.ranks import summary_of
from tests.recordings.two_readers import both, database
from traces.columns import Columns
from traces.formats.open import read_trace
from traces.formats.sqlite_tables import SqliteTables
from traces.names.file_names import WITHHELD, recorder_of, told_name, told_path, told_paths
from traces.names.foreign import LONGEST, cut_name
from traces.ranks.summaries.codec import encode
from traces.ranks.summaries.decoding import decode
from traces.witness.read import read_witness


@pytest.mark.parametrize(
    "name",
    [
        *(
            "mixtral-8x7b-h100-ep8.nsys-rep",
            "qwen3_30b_a3b_bs4.log",
            "dense-dp-45.sqlite",
            "FullRecompute2.json",
        ),
        *("20261128_103000_run.json", "run (1).sqlite", "worker3.pt.trace.json.gz", "gpu3.nsys-rep", "x", ""),
    ],
)
def test_a_name_of_words_of_the_field_is_told_whole(name: str) -> None:
    assert told_name(name) == name


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("node0421.cluster.example.com_alice_1234.nsys-rep", f"{WITHHELD}_1234.nsys-rep"),
        ("trace_10.1.2.3.json", f"{WITHHELD}.json"),
        ("trace_10_1_2_3.json", f"{WITHHELD}.json"),
        (
            "bigbox_1234.1690000000000000000.pt.trace.json",
            f"{WITHHELD}_1234.1690000000000000000.pt.trace.json",
        ),
        *(("dgx-07_rank3.sqlite", f"{WITHHELD}_rank3.sqlite"), ("compute-0-12.sqlite", f"{WITHHELD}.sqlite")),
        *(("ip-10-1-2-3.sqlite", f"{WITHHELD}.sqlite"), ("alice@corp.example.json", f"{WITHHELD}.json")),
        *(("fe80::1.json", f"{WITHHELD}.json"), ("hf_AbCdEfGhIjKlMnOpQrSt.json", f"hf_{WITHHELD}.json")),
        *(("u1234567_run.json", f"{WITHHELD}_run.json"), ("x3k9q1w2e.sqlite", f"{WITHHELD}.sqlite")),
        ("the run is slow as the host is late.json", f"{WITHHELD}.json"),
        ("$(reboot).sqlite", f"{WITHHELD}.sqlite"),
    ],
)
def test_what_may_be_a_host_a_person_or_an_address_is_withheld(name: str, told: str) -> None:
    assert told_name(name) == told
    assert told_path(Path("folder") / name) == told


@given(st.text(max_size=60))
def test_a_name_that_is_told_has_nothing_that_a_shell_or_a_terminal_obeys(name: str) -> None:
    told = told_name(name)
    assert told.isascii()
    assert told.isprintable()
    assert not {*told} & set(";|&$`<>\\'\"/*?~!@:%^{}")
    assert told_name(told) == told


@given(
    st.from_regex(r"[a-z]{3,12}", fullmatch=True), st.sampled_from(["run_{}", "{}_1234", "{}-node12", "a.{}"])
)
def test_a_word_is_told_in_every_place_or_in_none(word: str, place: str) -> None:
    alone = told_name(f"{word}.json")
    assert (word in told_name(f"{place.format(word)}.json")) <= (alone == f"{word}.json")


def test_the_profiler_names_a_file_by_its_host() -> None:
    assert recorder_of(Path("bigbox_1234.169000.pt.trace.json")) == ("bigbox",)
    assert recorder_of(Path("bigbox.lab_1234.169000.pt.trace.json.gz")) == ("bigbox.lab", "bigbox")
    assert recorder_of(Path("trace.json")) == ()


def test_files_that_would_be_told_alike_are_numbered() -> None:
    paths = [Path("a/node042.sqlite"), Path("a/node043.sqlite"), Path("b/run.json.gz"), Path("c/run.json.gz")]
    told = [told_paths([*paths, Path("run.sqlite")])[path] for path in (*paths, Path("run.sqlite"))]
    assert told == [
        *("WITHHELD#1.sqlite", "WITHHELD#2.sqlite"),
        *("run#1.json.gz", "run#2.json.gz", "run.sqlite"),
    ]
    assert [told_name(name) for name in told] == told


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
    for place in ("StringIds SET value = value", "NVTX_EVENTS SET text = text"):
        changed(path, f"UPDATE {place} || '{HUGE}'")
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
