"""compare without a trace: exit codes, what it withholds, and the document that it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser.cli import run
from tests.configurations.logs import iteration
from tests.configurations.pairs import PAIRS, config_of
from tests.hostile.secrets import SECRET

PAIR = next(pair for pair in PAIRS if pair.name == "mtp_qwen35")
CONFIGS = [str(config_of(PAIR, side)) for side in ("base", "new")]
ABOUT = ["--gpu-model", "H100", "--core-version", "0.17.0"]


def log(folder: Path, name: str, seconds: float, *more: str) -> Path:
    path = folder / name
    lines = [iteration(place, 1000 * seconds + place % 3) for place in range(1, 21)]
    path.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    return path


def test_the_gate_trips_by_the_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = str(log(tmp_path, "base.log", 2.0)), str(log(tmp_path, "new.log", 2.2))
    assert run(["compare", "--base-log", base, "--new-log", new, "--gate", "3%"]) == 1
    assert "tripped" in capsys.readouterr().err
    assert run(["compare", "--base-log", new, "--new-log", base, "--gate", "3%"]) == 0


@pytest.mark.parametrize(
    ("words", "code"), [((), 5), (("--gate", "3%"), 1), (("--gate", "3%", "--undecided", "pass"), 0)]
)
def test_configurations_alone_are_undecided_and_a_gate_answers_as_it_was_asked_to(
    words: tuple[str, ...], code: int
) -> None:
    assert run(["compare", *CONFIGS, *ABOUT, *words]) == code


@pytest.mark.parametrize(("words", "code", "named"), [
    *(([], 2, "nothing to compare"), ([CONFIGS[0]], 2, "new has neither")),
    *(([CONFIGS[0], "missing.yaml"], 3, "missing.yaml"), ([*CONFIGS, "-f", "png"], 2, "has no png")),
    ([*CONFIGS, "--steps", "2:5"], 2, "--steps is of recordings"),
    ([*CONFIGS, "--brief", "-f", "json"], 2, "--brief"),
])  # fmt: skip
def test_what_cannot_be_compared_ends_in_one_line(
    words: list[str], code: int, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *words]) == code
    said = capsys.readouterr().err
    assert named in said
    assert len(said.strip().splitlines()) == 1


def test_a_configuration_beside_a_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "graphs", "--keep", str(tmp_path / "run.sqlite")]) == 0
    capsys.readouterr()
    assert run(["compare", CONFIGS[0], str(tmp_path / "run.sqlite")]) == 2
    assert "--base-config" in capsys.readouterr().err


def test_paths_and_secrets_stay_out_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    files = []
    for side in ("base", "new"):
        text = Path(config_of(PAIR, side)).read_text(encoding="utf-8")
        path = folder / f"{side}.yaml"
        path.write_text(f"{text}checkpoint:\n  save: /home/{SECRET}/{side}\n", encoding="utf-8")
        files.append(str(path))
    logs = [str(log(folder, f"{side}.log", 2.0, f"{SECRET}: a host")) for side in ("base", "new")]
    given = [*files, "--base-log", logs[0], "--new-log", logs[1], "--container", f"{SECRET}/box"]
    for form in ("text", "markdown", "html", "json"):
        assert run(["compare", *given, "-f", form, "--full"]) == 0
        assert SECRET not in capsys.readouterr().out
    assert run(["compare", *given, "-f", "json", "--no-redact"]) == 0
    assert SECRET in capsys.readouterr().out
