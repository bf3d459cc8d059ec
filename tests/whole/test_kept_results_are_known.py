"""What this release says of demos and of other people's configurations is known again, all of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.demo import RECORDINGS, unpack
from reports.result.read import kept_as_ours, read_document, typed
from tests.configurations.field_cases import ANSWERS, command
from tests.places import DATA

CASES = DATA / "field_cases"


def assert_known(path: Path) -> None:
    document = read_document(path)
    assert kept_as_ours(document) == typed(document)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_demo_is_known_again(name: str, tmp_path: Path) -> None:
    unpack(tmp_path / "run.sqlite", name)
    kept = tmp_path / "kept.json"
    diagnoser.analyze(tmp_path / "run.sqlite", ask_megatron=False).save(kept)
    assert_known(kept)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_public_thread_is_known_again(name: str, tmp_path: Path) -> None:
    words: Sequence[str] = command(CASES / name)
    assert run([*words, "-f", "json", "-o", str(tmp_path / "kept.json")]) == 0
    assert_known(tmp_path / "kept.json")
