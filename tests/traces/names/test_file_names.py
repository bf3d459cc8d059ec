"""Base names of files: what of them is told, and what may be a host, a person or an address."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.names.file_names import WITHHELD, recorder_of, told_name, told_path, told_paths


@pytest.mark.parametrize(
    "name",
    [
        *(
            "communication.sqlite",
            "run.nsys-rep",
            "rank0.sqlite",
            "before.json",
            "run_moe-diag.json",
            "train.sh",
        ),
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
        ("dgx-07_rank3.sqlite", f"{WITHHELD}_rank3.sqlite"),
        ("compute-0-12.sqlite", f"{WITHHELD}.sqlite"),
        ("ip-10-1-2-3.sqlite", f"{WITHHELD}.sqlite"),
        ("alice@corp.example.json", f"{WITHHELD}.json"),
        ("fe80::1.json", f"{WITHHELD}.json"),
        ("hf_AbCdEfGhIjKlMnOpQrSt.json", f"hf_{WITHHELD}.json"),
        ("u1234567_run.json", f"{WITHHELD}_run.json"),
        ("x3k9q1w2e.sqlite", f"{WITHHELD}.sqlite"),
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
