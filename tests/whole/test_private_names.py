"""Hosts, users, addresses and secrets in names of kernels, ranges and files are in no output."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from diagnoser.cli import run
from tests.doubles.document import DISPATCH, GEMM
from tests.hostile.secrets import laid_open
from tests.read_back.rendering import ANALYSIS, COMPARISON, PICTURES
from tests.recordings.kineto import as_profiler_json

US, MS = 1_000, 1_000_000
HOST, USER = "node0421", "alicewonder"
SECRETS: Final = {
    "host with its domain": f"{HOST}.cluster.qcorp.com",
    "address": "10.11.12.13",
    "address and port": "10.11.12.13:29500",
    "address in a name": "ip-10-11-12-13",
    "long address": "fe80::1ff:fe23:4567:890a",
    "long address of the net": "2001:db8::8a2e:370:7334",
    "mail": f"{USER}@qcorp.com",
    "token of hf": "hf_QwErTyUiOpAsDfGhJkLzXcVbNm",
    "token of GitHub": "ghp_QwErTyUiOpAsDfGhJkLzXcVbNm0123456789",
    "key of AWS": "AKIAQWERTYUIOPASDFGH",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.QwErTyUiOp",
    "key of a service": "sk-QwErTyUiOpAsDfGhJkLz",
    "home": f"/home/{USER}/runs/secret_run",
    "share": f"/lustre/{USER}/secret_run/",
    "tilde": f"~{USER}/secret_run",
    "storage": f"s3://{USER}-bucket/secret_run",
    "password": "password=QwErTyUiOp",
}
FOUND: Final = (
    *(HOST, "qcorp", "10.11.12.13", "10-11-12-13", "fe23", "8a2e", USER, "QwErTy", "QWERTYUIOP", "eyJzdWIi"),
    "secret_run",
)
"""What of them is looked for, in capitals or not."""
ENVIRONMENT: Final = f"PATH=/usr/bin\nUSER={USER}\nHOSTNAME={HOST}.cluster.qcorp.com"
TEXTS: Final = [form for form in ANALYSIS if form not in (*PICTURES, "jira", "megatron-lm", "bridge")]
COMPARED: Final = [form for form in COMPARISON if form not in (*PICTURES, "jira")]


def private_run(own: bool, longer_us: int = 0) -> Recording:
    """Eight steps of kernels and ranges named by every secret: alone, and behind a name that is known.

    `own`: the bare names of host and user as well, as the recording tells them.
    """
    recording = Recording()
    recording.gpu(f"NVIDIA {SECRETS['host with its domain']}")
    names = [*SECRETS.values(), *([HOST, USER] if own else [])]
    for step in range(8):
        at = (40 * step + 1) * MS
        recording.range(f"iteration {step}", at - 100 * US, at - 50 * US)
        for place, name in enumerate(names):
            launch = at - 100 * US + place * 1_200
            recording.range(name, launch - 100, launch + 900)
            recording.range(f"layer {name}", launch - 90, launch + 890, registered=True)
            for prefix, stream, long_us in (("", 7, 20), (f"{DISPATCH}_", 20, 100), (f"{GEMM}_", 7, 200)):
                end = at + long_us * US + (longer_us * US if prefix else 0)
                recording.kernel(prefix + name, at, end, launch_ns=launch, stream=stream, grid=(132, 1, 1))
                at = end
    return recording


def exported(path: Path, longer_us: int = 0) -> Path:
    recording = private_run(own=True, longer_us=longer_us)
    recording.mpi_rank(1000, 3)
    recording.diagnostic(f"{SECRETS['home']}: records were lost")
    write_export(path, recording)
    with closing(sqlite3.connect(path)) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(TARGET_INFO_SYSTEM_ENV)")]
        assert {"name", "value"} <= {*columns}
        said = {"Hostname": SECRETS["host with its domain"], "DeviceEnvironment": ENVIRONMENT}
        db.execute("DELETE FROM TARGET_INFO_SYSTEM_ENV")
        for name, value in said.items():
            row = [{"name": name, "value": value}.get(column, 0) for column in columns]
            db.execute(f"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ({', '.join('?' * len(row))})", row)
    return path


def profiled(path: Path) -> Path:
    recording = private_run(own=False)
    rows = {name: several for name, several in recording.rows.items() if "GPU" not in name}
    recording.rows.clear()
    recording.rows.update(rows)
    path.write_text(as_profiler_json(recording), encoding="utf-8")
    return path


def kept_back(folder: Path, said: str = "") -> list[str]:
    """Which secrets a folder's files, their names, and what was printed hold."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    contents = [laid_open(path.read_bytes()) for path in files]
    contents += [
        zlib.decompress(one[len(b"moe-diag rank") + 2 :])
        for one in contents
        if one.startswith(b"moe-diag rank")
    ]
    names = " ".join(str(path.relative_to(folder)) for path in files)
    whole = b"\n".join((*contents, names.encode(), said.encode())).lower()
    assert len(files) > 0 or said
    return [one for one in FOUND if one.lower().encode() in whole]


NAMES: Final = (
    f"{HOST}.cluster.qcorp.com_{USER}_1234.sqlite",
    "trace_10.11.12.13.sqlite",
    f"{HOST}_{USER}.sqlite",
    f"report_{USER}.sqlite",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_format_names_host_user_or_address_of_an_export(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, out = exported(tmp_path / name), tmp_path / "out"
    out.mkdir()
    words = ["analyze", path.name, "--full", "--no-megatron", "--ticket", "out/ticket", "--summary", "out"]
    assert run([*words, *(word for form in TEXTS for word in ("-f", form)), "-o", "out/"]) == 0
    assert run(["analyze", path.name, "--flavor", "jira", "-f", "markdown", "-o", "out/jira.txt"]) == 0
    assert run(["merge", "out", "-f", "json", "-o", "out/merged.json"]) == 0
    assert run(["merge", "out"]) == 0
    assert run(["analyze", path.name]) == 0
    assert run(["doctor", path.name]) == 0
    assert kept_back(out, capsys.readouterr().out) == []


def test_no_format_names_host_user_or_address_of_a_profiler_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, out = profiled(tmp_path / f"{HOST}_1234.1690000000000.pt.trace.json"), tmp_path / "out"
    out.mkdir()
    words = ["analyze", path.name, "--full", "--no-megatron", "--ticket", "out/ticket"]
    assert run([*words, *(word for form in TEXTS for word in ("-f", form)), "-o", "out/"]) == 0
    assert run(["analyze", path.name]) == 0
    assert kept_back(out, capsys.readouterr().out) == []


def test_no_comparison_and_no_history_names_host_user_or_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(tmp_path / "out" / "history.sqlite"))
    base, new, out = exported(tmp_path / NAMES[0]), exported(tmp_path / NAMES[2], 50), tmp_path / "out"
    out.mkdir()
    words = ["compare", base.name, new.name, "--full"]
    assert run([*words, *(word for form in COMPARED for word in ("-f", form)), "-o", "out/"]) in (0, 5)
    assert run(["history", "add", base.name]) == 0
    assert run(["history", "add", new.name]) == 0
    assert run(["history", "list"]) == 0
    assert kept_back(out, capsys.readouterr().out) == []


@pytest.mark.parametrize("form", PICTURES)
def test_no_picture_names_host_user_or_address(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, out = exported(tmp_path / NAMES[0]), tmp_path / "out"
    out.mkdir()
    assert run(["analyze", path.name, "-f", form, "-o", "out/"]) == 0
    assert kept_back(out) == []


def test_the_search_notices_what_gets_out(tmp_path: Path) -> None:
    for name, secret in SECRETS.items():
        (tmp_path / "one").write_text(f"x{secret}y", encoding="utf-8")
        assert kept_back(tmp_path), name


def test_what_was_not_withheld_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --no-redact all is told but secrets, and ordinary names always are."""
    monkeypatch.chdir(tmp_path)
    exported(tmp_path / NAMES[0])
    assert run(["analyze", NAMES[0], "--full", "--no-redact", "-f", "json"]) == 0
    out = capsys.readouterr().out
    assert NAMES[0] in out
    assert f"{GEMM}_{SECRETS['home']}" in out
    assert SECRETS["token of hf"] not in out
    assert GEMM in out
