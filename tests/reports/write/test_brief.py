"""The short result: below 4 kB however long texts are, and keeping its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import diagnoser
from diagnoser.cli import run
from diagnoser.demo import unpack
from heuristics.result.brief import Brief
from heuristics.result.result import Result
from reports.result.codec import Document
from reports.result.json_text import render_json
from reports.write.brief import NAME, _cut, write_brief
from tests.agreement.schema import schema


def brief_of(result: Result) -> Document:
    """The short document, held against its schema and its size."""
    text = write_brief(result)
    document: Document = json.loads(text)
    jsonschema.Draft202012Validator(schema(Brief)).validate(document)
    assert len(text.encode()) < 4096
    return document


@pytest.fixture(scope="module")
def communication(tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("brief") / "communication.sqlite"
    unpack(path, "communication")
    return diagnoser.analyze(path, ask_megatron=False).result


def test_texts_of_any_length_leave_it_short(communication: Result) -> None:
    long = "\x1b←" * 5000
    changed = msgspec.structs.replace(
        communication,
        warnings=(long,) * 50,
        traces=tuple(msgspec.structs.replace(one, name=long) for one in communication.traces) * 9,
        fixes=tuple(
            msgspec.structs.replace(
                one, title=long, knobs=msgspec.structs.replace(one.knobs, megatron_lm=(long,))
            )
            for one in communication.fixes
        ),
    )
    brief = brief_of(changed)
    assert brief["faults"]
    assert brief["fixes"][0]["knobs"] == []
    assert brief["fixes"][0]["title"].endswith("…")


@given(st.text())
def test_a_cut_text_is_the_text_or_its_beginning(text: str) -> None:
    cut = _cut(text, NAME)
    assert len(render_json({"": cut}).encode()) - len(render_json({"": ""}).encode()) <= NAME.value
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_brief_is_an_option_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "-f", "json", "--brief"]) == 0
    brief = json.loads(capsys.readouterr().out)
    assert brief["kind"] == "brief"
    assert run(["demo", "--brief"]) == 2
    assert "-f json --brief" in capsys.readouterr().err
    kept = tmp_path / "brief.json"
    kept.write_text(json.dumps(brief), encoding="utf-8")
    assert run(["report", str(kept)]) == 3
    assert "short result of --brief. Keep the whole one: moe-diag analyze" in capsys.readouterr().err


def test_a_comparison_has_no_short_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_ = tmp_path / "run.sqlite"
    unpack(run_, "communication")
    kept = tmp_path / "kept.json"
    assert run(["compare", str(run_), str(run_), "-f", "json", "-o", str(kept)]) == 0
    assert run(["report", str(kept), "-f", "json", "--brief"]) == 2
    assert "--brief is of one run" in capsys.readouterr().err
