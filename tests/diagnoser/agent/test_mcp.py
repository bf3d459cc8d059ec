"""The tools as a program gets them: by a client of the official package, and each answer by itself."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import diagnoser
from diagnoser.agent.answers import DATA, FRAME, Tools, answer_of, answered, as_data
from diagnoser.agent.bounds import MEMORY, TIME, Bounds, bounds_of
from diagnoser.agent.server import SKILL, number_of, skill
from diagnoser.cli import run
from diagnoser.demo import unpack
from tests.places import ROOT
from traces.errors import UsageError
from traces.limits import MESSAGE

BRIDGE = ROOT / "tests" / "data" / "settings" / "bridge.yaml"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    unpack(path, "communication")
    return path


def kept(answer: str) -> Path:
    (line,) = (one for one in answer.splitlines() if one.startswith("Whole result"))
    return Path(line.partition(": ")[2])


def test_each_tool_answers_shortly_and_names_the_whole(tmp_path: Path, recording: Path) -> None:
    tools = Tools(tmp_path / "kept")
    diagnosed = tools.analyze([str(recording)])
    answers = {
        "analyze": diagnosed,
        "compare": tools.compare(str(kept(diagnosed)), str(recording)),
        "check_config": tools.check_config(str(BRIDGE), about={"gpu": "H100"}),
        "plan": tools.plan("Qwen3-30B-A3B", gpus=16, about={"gpu": "H100"}),
    }
    for name, answer in answers.items():
        assert len(answer.encode()) < MESSAGE.value, name
        assert json.loads(kept(answer).read_text(encoding="utf-8"))["schema_version"] == "1.0", name
        assert run(["report", str(kept(answer))]) == 0, name
    assert "SLOWED BY  expert all-to-all (50 %)" in diagnosed
    assert "NO CHANGE" in answers["compare"].upper()


def test_what_is_kept_is_its_users_alone_whatever_the_mask(tmp_path: Path, recording: Path) -> None:
    before = os.umask(0)
    try:
        answer = Tools(tmp_path / "kept").analyze([str(recording)])
    finally:
        os.umask(before)
    assert stat.S_IMODE(kept(answer).stat().st_mode) == 0o600


@given(st.text(st.characters(exclude_categories=())), st.integers(0, 9_000), st.text(max_size=30))
def test_no_text_of_a_file_makes_an_answer_long_or_ends_what_is_marked(
    text: str, times: int, place: str
) -> None:
    answer = answer_of(as_data(text * times), (f"Whole: {place * 200}", f"More: {place * 200}"))
    assert len(answer.encode()) < MESSAGE.value
    first, *lines = answer.split("\n")
    assert first == FRAME
    assert all(line.isprintable() for line in lines)
    ours = ("Whole:", "More:", "(")
    assert all(line.startswith((DATA.rstrip(), *ours)) for line in lines)
    assert sum(not line.startswith(DATA.rstrip()) for line in lines) <= len(ours)


def test_a_long_explanation_is_told_in_parts_and_none_of_it_is_left_out() -> None:
    whole, told, at = diagnoser.explain("COM-2").splitlines(), list[str](), 1
    while len(told) < len(whole):
        answer = Tools().explain("COM-2", at)
        assert len(answer.encode()) < MESSAGE.value
        lines = [one for one in answer.splitlines() if not one.startswith(("Goes on:", "Whole:"))]
        assert lines
        told += lines
        at = len(told) + 1
    assert [one.strip() for one in told] == [one.strip() for one in whole]


def test_a_bug_says_where_and_not_what_it_held() -> None:
    def fails() -> str:
        raise RuntimeError("a secret from the trace")

    answer = answered(fails)
    assert answer.is_error
    assert re.fullmatch(
        r"\| a bug of moe-diag \(RuntimeError at test_mcp.py:\d+\). Please report it.", answer.text
    )


def test_a_disk_that_is_full_is_no_bug() -> None:
    def fails() -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "there")

    assert answered(fails).text.startswith("| there cannot be read or written (No space left on device). ")


def test_several_recordings_are_one_side_or_further_ones_of_the_base(tmp_path: Path, recording: Path) -> None:
    unpack(tmp_path / "ranks", "ranks")
    ranks = [str(path) for path in sorted((tmp_path / "ranks").iterdir())]
    tools = Tools(tmp_path / "kept")
    assert "8 ranks" in tools.compare(ranks, str(tmp_path / "ranks"))
    again = tools.compare(str(recording), [str(recording)], more_base=[str(recording)])
    assert json.loads(kept(again).read_text(encoding="utf-8"))["command"].count("--more-base") == 1


def test_a_call_is_bounded_without_any_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = tmp_path.stat().st_dev, tmp_path.stat().st_ino
    assert bounds_of(None) == Bounds(tmp_path, *here, TIME.value, int(MEMORY.value))
    (tmp_path / "link").symlink_to(tmp_path)
    assert bounds_of(Path("link")) == bounds_of(None)
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="Type moe-diag mcp --root FOLDER"):
        bounds_of(None)
    assert bounds_of(Path("/")).root == Path("/")


def test_another_folder_in_the_place_of_the_root_is_not_read(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
        shutil.copy(BRIDGE, folder / "run.yaml")

    async def talk(client: Any) -> Any:
        before = await client.call_tool("check_config", {"path": "run.yaml"})
        root.rename(tmp_path / "away")
        root.symlink_to(other, target_is_directory=True)
        exchanged = await client.call_tool("check_config", {"path": "run.yaml"})
        root.unlink()
        return before, exchanged, await client.call_tool("check_config", {"path": "run.yaml"})

    before, exchanged, gone = talked(tmp_path, talk, "--root", str(root))
    assert not before.is_error
    assert exchanged.content[0].text == f"| {root} is another folder than before. Start moe-diag mcp again."
    assert f"{root} cannot be read (No such file or directory)" in gone.content[0].text


@pytest.mark.parametrize("words", [["--root", "none"], ["--keep", "none/there"]])
def test_what_is_no_bound_of_a_call_is_refused_before_anything_is_served(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["mcp", *words]) in (2, 3)
    assert words[0] in capsys.readouterr().err


def test_the_skill_file_names_every_tool_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(f"`{tool.__name__}`" in skill() for tool in Tools().all())
    assert run(["mcp", "--skill"]) == 0
    assert capsys.readouterr().out == SKILL.read_text(encoding="utf-8")


def test_without_the_package_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert run(["mcp"]) == 3
    assert capsys.readouterr().err.endswith("Type pip install 'moe-diag[agent]'\n")


def talked(folder: Path, talk: Callable[[Any], Any], *words: str, **environment: str) -> Any:
    """What a talk with the server gives, which is started as a client starts it."""
    pytest.importorskip("mcp", reason="no mcp here: would have shown what a client gets")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def whole() -> Any:
        line = ["-m", "diagnoser", "mcp", "--keep", str(folder / "kept"), *words]
        given = {"PYTHONPATH": str(ROOT), **environment}
        started = StdioServerParameters(command=sys.executable, args=line, cwd=folder, env=given)
        async with stdio_client(started) as streams, ClientSession(*streams) as client:
            await client.initialize()
            return await asyncio.wait_for(talk(client), 120)

    return asyncio.run(whole())


def test_a_root_bounds_what_is_read_and_kept_results_are_read_all_the_same(
    tmp_path: Path, recording: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    recording.rename(root / "run.sqlite")
    unpack(tmp_path / "other.sqlite", "healthy")

    async def talk(client: Any) -> Any:
        diagnosed = await client.call_tool("analyze", {"paths": ["run.sqlite"]})
        names = {"base": str(kept(diagnosed.content[0].text)), "new": "run.sqlite"}
        outside = await client.call_tool("analyze", {"paths": ["../other.sqlite"]})
        return await client.call_tool("compare", names), outside

    compared, outside = talked(tmp_path, talk, "--root", str(root))
    assert not compared.is_error
    assert outside.content[0].text == (
        f"| ../other.sqlite leads out of {root}, the folder that may be read. "
        "Give a path inside it, or start moe-diag mcp --root FOLDER."
    )


@pytest.mark.parametrize("line", [
    '{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"id": 8, "a": "\\ud800"}}',
    '{"method": "x", "params": {"id": 8, "a": "\\ud800"}, "jsonrpc": "2.0", "id": 7}\n',
    '{"method":"x","id":7,"params":[]',
])  # fmt: skip
def test_the_number_of_a_request_is_found_where_clients_write_it(line: str) -> None:
    assert number_of(line) == 7
