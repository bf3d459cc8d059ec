"""The tools as a program gets them: by a client of the official package, and each answer by itself."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diagnoser.agent.answers import SIZE, Tools, answer_of, said_as
from diagnoser.agent.server import SKILL, skill
from diagnoser.cli import run
from diagnoser.demo import unpack
from tests.places import ROOT

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
        assert len(answer.encode()) < SIZE.value, name
        assert json.loads(kept(answer).read_text(encoding="utf-8"))["schema_version"] == "1.0", name
        assert run(["report", str(kept(answer))]) == 0, name
    assert "SLOWED BY  expert all-to-all (50 %)" in diagnosed
    assert "NO CHANGE" in answers["compare"].upper()


def test_the_same_answer_is_kept_once(tmp_path: Path, recording: Path) -> None:
    tools = Tools(tmp_path / "kept")
    assert kept(tools.analyze([str(recording)])) == kept(tools.analyze([str(recording)]))
    assert len([*(tmp_path / "kept").iterdir()]) == 1


def test_two_configurations_are_compared_without_a_recording(tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(BRIDGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert "new.yaml" in Tools(tmp_path / "kept").compare(str(BRIDGE), str(new))


def test_a_long_text_loses_its_last_lines_and_says_how_many() -> None:
    answer = answer_of("ü" * 99 + "\n" + "line\n" * 2_000, ("Whole: there",))
    assert len(answer.encode()) < SIZE.value
    *lines, cut, pointer = answer.splitlines()
    assert cut == f"({2_001 - len(lines):,} more lines left out)"
    assert pointer == "Whole: there"
    assert answer_of("short\n", ("Whole: there",)) == "short\nWhole: there"


def test_explain_of_everything_stays_short() -> None:
    assert len(Tools().explain("").encode()) < SIZE.value
    assert "COM-2" in Tools().explain("com-2")


def test_a_bug_says_where_and_not_what_it_held() -> None:
    with pytest.raises(ValueError, match=r"a bug of moe-diag \(RuntimeError at test_mcp.py:\d+\)") as caught:  # noqa: SIM117
        with said_as(ValueError):
            raise RuntimeError("a secret from the trace")
    assert "secret" not in str(caught.value)


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


def talked(folder: Path, talk: Callable[[Any], Any]) -> Any:
    """What a talk with the server gives, which is started as a client starts it."""
    pytest.importorskip("mcp", reason="no mcp here: would have shown what a client gets")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def whole() -> Any:
        line = ["-m", "diagnoser", "mcp", "--keep", str(folder / "kept")]
        started = StdioServerParameters(command=sys.executable, args=line, cwd=ROOT)
        async with stdio_client(started) as streams, ClientSession(*streams) as client:
            await client.initialize()
            return await asyncio.wait_for(talk(client), 120)

    return asyncio.run(whole())


def test_a_client_finds_the_tools_and_gets_their_answers(tmp_path: Path, recording: Path) -> None:
    async def talk(client: Any) -> Any:
        offered = await client.list_tools()
        diagnosed = await client.call_tool("analyze", {"paths": [str(recording)]})
        plan = await client.call_tool(
            "plan", {"model": "Qwen3-30B-A3B", "gpus": 16, "about": {"gpu": "H100"}}
        )
        return offered, diagnosed, plan, await client.call_tool("explain", {"word": "COM-2"})

    offered, *answers = talked(tmp_path, talk)
    assert [one.name for one in offered.tools] == ["analyze", "compare", "check_config", "plan", "explain"]
    assert all(len(one.description) > 60 for one in offered.tools)
    for one in answers:
        assert not one.is_error
        assert len(one.content[0].text.encode()) < SIZE.value
    assert "SLOWED BY  expert all-to-all" in answers[0].content[0].text
    assert kept(answers[0].content[0].text).parent == tmp_path / "kept"


def test_a_client_is_told_of_a_mistake_in_one_line(tmp_path: Path) -> None:
    async def talk(client: Any) -> Any:
        missing = await client.call_tool("analyze", {"paths": [str(tmp_path / "none.sqlite")]})
        return missing, await client.call_tool("explain", {"word": "com-two"})

    for answer in talked(tmp_path, talk):
        assert answer.is_error
        assert "Traceback" not in answer.content[0].text
        assert "\n" not in answer.content[0].text.strip()
