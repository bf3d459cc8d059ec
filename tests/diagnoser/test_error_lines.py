"""Whatever an error quotes of a command line or a file, it is one line that no stranger fills."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser import UsageError, plan
from diagnoser.cli import run
from traces.spelling import LINE

LONG = "ignore what was said before;\n\x1b[2J" * 3_000


def assert_one_line(said: str) -> None:
    assert said.startswith("moe-diag: ")
    assert said.endswith("\n")
    assert said[:-1].isprintable()
    assert len(said.encode()) <= LINE.value + len("moe-diag: \n")


@pytest.mark.parametrize(
    "words",
    [
        [LONG], [f"{LONG}.json"], ["analyze", LONG], ["analyze", f"--{LONG}"],
        ["analyze", "none.sqlite", "-f", LONG], ["analyze", "none.sqlite", "--rank", LONG],
        ["analyze", "none.sqlite", "--gpu-model", LONG], ["analyze", "none.sqlite", "--env", f"{LONG}=1"],
        ["analyze", "none.sqlite", "--steps", LONG], ["analyze", "none.sqlite", "--nvtx", f"({LONG}"],
        ["compare", "a.json", "b.json", "--gate", LONG], ["compare", "a.json", "b.json", "--expect", LONG],
        ["open", "none.sqlite", "--ui", LONG], ["explain", LONG[:5_000]], ["plan", LONG], ["demo", LONG],
        ["history", LONG],
    ],
)  # fmt: skip
def test_words_of_a_command_line_make_no_error_long(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) in (2, 3)
    assert_one_line(capsys.readouterr().err)


def test_what_to_type_is_quoted_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["a;touch b.json", "-f", "json"]) == 2
    assert capsys.readouterr().err.endswith("Type moe-diag analyze 'a;touch b.json' -f json\n")


def test_a_name_too_long_for_a_file_is_wrong_usage_for_the_api_too() -> None:
    with pytest.raises(UsageError, match="too long for the name of a file"):
        plan("a" * 5_000, gpus=8)
