"""Where only some folders may be read, no name leads out of them, whatever is exchanged meanwhile."""

from __future__ import annotations

import ast
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diagnoser.demo import unpack
from diagnoser.running.inputs.named import traces_named
from heuristics.rules.rules import known_lines
from reports.result.read import is_result, read_document
from tests.places import ROOT
from tests.recordings.nsys import EXPORTS_WELL, desk
from traces.errors import TraceNotFound
from traces.files.beneath import OutsideRoot, is_beneath, only_beneath, opened, opens_only
from traces.files.plain_file import read_bytes, read_text
from traces.formats.memory_snapshot import read_memory_snapshot
from traces.formats.open import ReadOptions, read_trace
from traces.formats.readers import Reader
from traces.settings.read import read_configuration
from traces.training_log.read import read_log

READ: dict[str, Callable[[Path], Any]] = {
    "trace": read_trace,
    "trace by its pages": lambda path: read_trace(path, ReadOptions(reader=Reader.PAGES)),
    "configuration": read_configuration,
    "log": lambda path: read_log(path, known_lines()),
    "result": read_document,
    "head of a result": is_result,
    "text": read_text,
    "bytes": lambda path: read_bytes(path, 100),
    "memory snapshot": read_memory_snapshot,
}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A root with folders, and a place outside with the same files."""
    root, outside = tmp_path / "root", tmp_path / "root outside"
    for folder in (root, outside):
        folder.mkdir()
        unpack(folder / "run.sqlite", "healthy")
        (folder / "run.yaml").write_text("model:\n  num_moe_experts: 8\n", encoding="utf-8")
    (root / "in").mkdir()
    return root, outside


@pytest.mark.parametrize("kind", READ)
def test_no_reader_follows_a_name_out_of_the_root(
    kind: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = places
    target = outside / ("run.yaml" if kind in ("configuration", "text") else "run.sqlite")
    (root / "link").symlink_to(target)
    (root / "in" / "relative").symlink_to(f"../../{outside.name}/{target.name}")
    (root / "folder").symlink_to(outside, target_is_directory=True)
    monkeypatch.chdir(root)
    names = ("link", "in/relative", f"folder/{target.name}", f"../{outside.name}/{target.name}", str(target))
    with only_beneath(root):
        for name in (*names, f"in/../../{outside.name}/{target.name}", f"/proc/self/root{target}"):
            with pytest.raises(OutsideRoot, match="Give a path inside it, or start moe-diag mcp --root"):
                READ[kind](Path(name))


def test_links_that_stay_inside_are_followed(places: tuple[Path, Path]) -> None:
    root, _ = places
    (root / "in" / "link.sqlite").symlink_to("../run.sqlite")
    (root / "again").symlink_to(root / "in", target_is_directory=True)
    with only_beneath(root):
        assert read_trace(root / "again" / "link.sqlite").info.kind == "nsys-sqlite"
        assert read_configuration(root / "run.yaml").settings


def test_a_link_that_may_not_be_read_leads_out(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = places
    (root / "link").symlink_to(outside)

    def refused(path: object, **how: object) -> str:
        raise PermissionError(13, "Permission denied")

    with only_beneath(root):
        monkeypatch.setattr(os, "readlink", refused)
        with pytest.raises(OSError, match=r"link|Not a directory|loop"):
            opened(root / "link" / "run.sqlite")


def test_a_pattern_or_a_folder_gives_nothing_from_outside(places: tuple[Path, Path]) -> None:
    root, outside = places
    (root / "in" / "out").symlink_to(outside, target_is_directory=True)
    (root / "in" / "out.json").symlink_to(outside / "run.yaml")
    with only_beneath(root):
        with pytest.raises(TraceNotFound, match="matches no file"):
            traces_named([root / "in" / "o*" / "run.*"])
        with pytest.raises(TraceNotFound, match="a link out of its folder"):
            traces_named([root / "in"])


@contextmanager
def exchanged(place: Path, inside: Path, outside: Path) -> Iterator[None]:
    """Another thread puts now what lies inside, now a link to what lies outside at one place."""
    stop = threading.Event()

    def exchange() -> None:
        other = place.with_name("other")
        while not stop.is_set():
            other.symlink_to(outside)
            other.replace(place)
            shutil.copy(inside, other)
            other.replace(place)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("kind", ["text", "configuration", "bytes"])
def test_a_file_that_is_exchanged_for_a_link_is_never_read_outside(
    kind: str, places: tuple[Path, Path]
) -> None:
    root, outside = places
    secret = outside / "secret.yaml"
    secret.write_text("model:\n  num_moe_experts: 4321\n", encoding="utf-8")
    place, seen = root / "in" / "run.yaml", []
    shutil.copy(root / "run.yaml", place)
    with only_beneath(root), exchanged(place, root / "run.yaml", secret):
        for _ in range(3_000):
            try:
                seen.append(str(READ[kind](place)))
            except (OSError, OutsideRoot, ValueError) as error:
                seen.append(str(error))
            except Exception as error:
                seen.append(repr(error))
    assert len({*seen}) > 1  # it was exchanged
    assert [one for one in seen if "4321" in one] == []


def test_what_sqlite_opens_by_itself_must_be_the_same_file(places: tuple[Path, Path]) -> None:
    root, outside = places
    databases: list[sqlite3.Connection] = []
    with only_beneath(root):
        with opens_only(root / "run.sqlite"):
            databases.append(sqlite3.connect(root / "run.sqlite"))
        with pytest.raises(OutsideRoot, match="was exchanged"), opens_only(root / "run.sqlite"):
            databases.append(sqlite3.connect(outside / "run.sqlite"))
    for one in databases:
        one.close()


def test_a_report_is_exported_from_a_copy_and_its_export_is_read(tmp_path: Path) -> None:
    here = desk(tmp_path, export=f"[ -L report.nsys-rep ] && exit 3; {EXPORTS_WELL}")
    link = here.report.with_name("link.nsys-rep")
    link.symlink_to(shutil.copy(here.report, tmp_path / "outside.nsys-rep"))
    options = ReadOptions(here.nsys.path, here.cache)
    with only_beneath(here.report.parent):
        with pytest.raises(OutsideRoot):
            read_trace(link, options)
        assert read_trace(here.report, options).info.kind == "nsys-report"
        assert not is_beneath(next(here.cache.glob("*.sqlite")))


def test_a_folder_is_no_file_and_keeps_nothing_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            opened(tmp_path)
        with only_beneath(tmp_path), pytest.raises(IsADirectoryError):
            opened(tmp_path)
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


OWN = {
    "traces/files/beneath.py": "the one home of opening",
    "traces/files/folder.py": "what is ours in a folder, by its descriptor",
    "traces/files/locks.py": "locks of ours",
    "traces/files/elsewhere.py": "the working folder itself",
    "traces/formats/export_cache.py": "exports that are kept, and their records",
    "traces/formats/nsys_tool.py": "what nsys wrote into our folder",
    "traces/formats/sqlite_tables.py": "SQLite, within opens_only",
    "traces/loops.py": "our own modules",
    "traces/toml_tables.py": "our own tables",
    "heuristics/rules/rules.py": "tables of plug-ins",
    "reports/result/voice/phrases.py": "our own tables and lists",
    "reports/write/html/environment.py": "our own templates",
    "diagnoser/__init__.py": "our own packages",
    "diagnoser/__main__.py": "standard streams",
    "diagnoser/agent/server.py": "the skill file",
    "diagnoser/demo/__init__.py": "our own recordings",
    "diagnoser/history/own_file.py": "the user's history, which no tool reads",
    "diagnoser/history/store.py": "the user's history, which no tool reads",
    "diagnoser/megatron/worker.py": "standard streams",
    "diagnoser/options/__init__.py": "our own tables",
    "diagnoser/output/__init__.py": "standard streams",
    "diagnoser/output/handover.py": "our own page",
}
"""Who else opens files, and which: none is named by what is asked of a tool."""
OPENS = frozenset({"open", "read_bytes", "read_text", "connect", "fdopen"})


def opening(text: str) -> Iterator[int]:
    """Lines that open a file by a way of their own."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name("open")):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value, name)) if name in OPENS:
                if ast.unparse(value) != "webbrowser":
                    yield node.lineno


def test_no_other_file_opens_what_is_named() -> None:
    packages = ("traces", "heuristics", "reports", "diagnoser", "moe_diag")
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    found = {path for path in files if [*opening(path.read_text(encoding="utf-8"))]}
    assert {str(path.relative_to(ROOT)) for path in found} == {*OWN}, "open it by traces/files/beneath.py"
