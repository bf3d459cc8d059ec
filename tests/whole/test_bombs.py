"""Small files that are made to fill memory or time, and what is no file: refused at once, in one line."""

from __future__ import annotations

import gzip
import os
import socket
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.simulate.export import write_export
from bench.speed.ranks import large_run
from diagnoser.cli import run
from diagnoser.history import store
from diagnoser.running.work import processes
from tests.configurations.check import BRIDGE, log_lines
from tests.recordings.moe_pattern import moe_recording
from traces.files import unpacked
from traces.limits import Limit
from traces.ranks.summaries.codec import VERSION, encode

EVENT = (
    b'{"ph":"X","cat":"kernel","name":"a","ts":%b,"dur":2.5,"pid":0,"tid":7,"args":{"device":0,"stream":7}}'
)
TRACE = b'{"schemaVersion":1,"deviceProperties":[],"traceEvents":['
DIGITS = b"9" * 1_000_000
DEEP = b"[" * 1_000_000
NINE = [f"  a{at + 1}: &a{at + 1} [{','.join([f'*a{at}'] * 9)}]" for at in range(12)]
NINE_MERGED = [f"  a{at + 1}: &a{at + 1}\n    <<: [{','.join([f'*a{at}'] * 9)}]" for at in range(9)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording and a configuration; packed files are bombs from a megabyte on, also
    in processes, which inherit that limit only where they are forked.
    """
    monkeypatch.setattr(unpacked, "MOST_TEXT", Limit(1 << 20, "bytes", "for a test"))
    monkeypatch.setattr(processes, "_forks", lambda: True)
    monkeypatch.chdir(tmp_path)
    recording = moe_recording(steps=2, layers=1)
    recording.gpu()
    write_export(tmp_path / "run.sqlite", recording)
    (tmp_path / "run.yaml").write_text(BRIDGE, encoding="utf-8")
    return tmp_path


def refusal(words: str, said: pytest.CaptureFixture[str]) -> str:
    """The one line that a command line ends with, of code 3."""
    assert run(words.split()) == 3, said.readouterr().err
    told = said.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    return told.err


RECORDING = ("analyze b.json.gz", "compare b.json.gz run.sqlite", "doctor b.json.gz")
LOG = ("analyze run.sqlite --log b.json.gz",)
RESULT = ("report b.json.gz", "compare b.json.gz run.sqlite", "history add b.json.gz --store h")


@pytest.mark.parametrize(
    ("several", "begin", "again"),
    [
        *((RECORDING, b"{", b" "), (RECORDING, TRACE, b"[],"), (RECORDING, TRACE, EVENT % b"1.5" + b",")),
        *((RECORDING, TRACE + EVENT % b"1.5" + b'],"x":"', b"x"), (RECORDING, b"[0", b",0")),
        *((RECORDING, b'{"traceEvents":', b"["), (LOG, b"begin\n", b"x"), (LOG, b"begin\n", b"\n")),
        (LOG, b"begin\n", b" iteration 1/ 9 | elapsed time per iteration (ms): 1.0 |\n"),
        (RESULT, b'{"schema_version":"1.0","x":[0', b",[]"),
    ],
)
def test_a_packed_file_unpacks_no_further_than_any_does(
    several: tuple[str, ...], begin: bytes, again: bytes, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "b.json.gz").write_bytes(gzip.compress(begin + again * ((8 << 20) // len(again))))
    for words in several:
        assert "unpacks to more than 100 times its size" in refusal(words, capsys)


def test_an_honest_packed_file_is_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(log_lines()).encode()
    (place / "b.log.gz").write_bytes(gzip.compress(lines))
    assert run(["analyze", "run.sqlite", "--log", "b.log.gz", "--no-megatron", "-o", "r.json"]) == 0
    (place / "r.json.gz").write_bytes(gzip.compress((place / "r.json").read_bytes()))
    assert run(["report", "r.json.gz"]) == 0
    assert capsys.readouterr().out


def test_a_summary_unpacks_no_further_than_any_does(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in (("a", b"\x91" * 5_000_000), ("b", b"\x00" * 50_000_000)):
        (place / f"{name}.rank").write_bytes(
            b"moe-diag rank\x00" + bytes([VERSION]) + zlib.compress(data, 9)[:65_000]
        )
        assert "is a damaged summary" in refusal(f"merge {name}.rank", capsys)


@pytest.mark.parametrize("size", [{"rank": 1 << 40}, {"rank": 0, "world_size": 10**12}, {"rank": -1}])
def test_a_rank_or_a_number_of_ranks_that_no_run_has_is_a_damaged_summary(
    size: dict[str, Any], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing of so many is listed rank by rank."""
    summary = next(iter(large_run(1)))
    blob = encode(replace(summary, identity=replace(summary.identity, **size)))
    (place / "a.rank").write_bytes(blob)
    assert "is a damaged summary" in refusal("merge a.rank", capsys)


def test_arrays_of_a_script_that_double_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "run.sh").write_text(
        "A=(--a 1)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + 'torchrun x.py "${A[@]}"\n'
    )
    assert "grow without bound" in refusal("check-config run.sh", capsys)


def test_a_document_of_the_history_unpacks_no_further_than_any_does(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["history", "add", "run.sqlite", "--store", "h.sqlite"]) == 0
    assert run(["history", "baseline", "main", "1", "--store", "h.sqlite"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(store, "LARGEST", Limit(1000, "bytes", "for a test"))
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(place / "h.sqlite"))
    assert "is damaged" in refusal("compare --baseline main run.sqlite", capsys)


@pytest.mark.parametrize(
    "words", ["analyze b.json", "report b.json", "check-config run.yaml --symptoms b.json --no-megatron"]
)
@pytest.mark.parametrize("text", [
    TRACE + DEEP, b'{"schema_version":"1.0","x":' + DEEP, b'{"a":' * 100_000,
    TRACE + EVENT % DIGITS + b"]}", b'{"schema_version":"1.0","x":%b}' % DIGITS,
    b'{"baseTimeNanoseconds":%b,"traceEvents":[%b]}' % (DIGITS, EVENT % b"1.5"),
])  # fmt: skip
def test_deep_json_and_endless_numbers_are_refused(
    words: str, text: bytes, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "b.json").write_bytes(text)
    assert refusal(words, capsys)


@pytest.mark.parametrize("number", [b"1e999999999", b"1e-999999999", b'"1e999999999"', b"1." + DIGITS])
def test_a_number_with_an_endless_exponent_is_no_time(
    number: bytes, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = b",".join(EVENT % time for time in (b"1.5", number, b"20.5"))
    (place / "b.json").write_bytes(TRACE + events + b"]}")
    assert run(["analyze", "b.json", "--no-megatron"]) in (0, 3)
    assert capsys.readouterr()


@pytest.mark.parametrize("lines", [
    ["  a0: &a0 [x,x,x,x,x,x,x,x,x]", *NINE], ["  a0: &a0 {moe_router_topk: 2}", *NINE_MERGED, "  <<: *a9"],
    ["  a0: &a0", "    <<: *a0"], ["  a0: &a0 [*a0]"], ["  a0: " + "[" * 200_000],
    [f"  key{at}: 1" for at in range(30_000)],
])  # fmt: skip
def test_a_yaml_that_multiplies_or_holds_itself_is_refused(
    lines: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "b.yaml").write_text("\n".join(["model:", "  num_moe_experts: 8", *lines]), encoding="utf-8")
    refused = refusal("check-config b.yaml --no-megatron", capsys)
    assert "b.yaml" in refused


def test_a_line_without_an_end_is_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "b.log").write_bytes(b"x" * 20_000_000 + b"\n" + "".join(log_lines()).encode())
    assert run(["analyze", "run.sqlite", "--log", "b.log", "--no-megatron"]) == 0


@pytest.fixture
def odd(place: Path) -> Iterator[list[str]]:
    """What is no file: a pipe that nobody writes to, a device without an end, a socket, links to them."""
    os.mkfifo(place / "pipe")
    for name, target in (("to_pipe", "pipe"), ("zero", "/dev/zero")):
        (place / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        yield ["pipe", "to_pipe", "zero", "/dev/zero", "socket"]


@pytest.mark.parametrize(
    "words",
    [
        "analyze {}", "analyze run.sqlite --config {}", "analyze run.sqlite --log {}",
        "analyze run.sqlite --ranks {}", "doctor {}", "report {}", "merge {}", "compare {} run.sqlite",
        "compare run.sqlite {}", "compare run.sqlite run.sqlite --new-log {}", "check-config {}",
        "check-config run.yaml --symptoms {}", "history add {} --store h.sqlite", "history list --store {}",
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_and_never_waited_for(
    words: str, odd: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in odd:
        refused = refusal(words.format(name), capsys)
        assert "a pipe or a device" in refused or "--symptoms" in words


def test_a_map_of_ranks_is_never_read_without_an_end(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("traces.files.plain_file.MOST_TEXT", Limit(1000, "bytes", "for a test"))
    (place / "map.csv").write_text("file,rank\n" * 1000, encoding="utf-8")
    assert "over 0.001 MB" in refusal("analyze run.sqlite --ranks map.csv", capsys)
