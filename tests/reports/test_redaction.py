"""What a report says of people, machines and folders: nothing, unless it is asked to; then it says so."""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import diagnoser
from bench.simulate.export import write_export
from diagnoser.cli import run
from diagnoser.options.requests import command_line
from reports.formats import Kind, named
from reports.redaction import redaction_words
from tests.configurations.check import SCRIPT, log, written
from tests.doubles.sides import as_json, run_of
from tests.hostile.secrets import SECRET, plant
from tests.recordings.moe_pattern import moe_recording

Json = dict[str, Any]
FORMS = [form for form in named(Kind.ANALYSIS) if form != "png"]
EVERY = [word for form in FORMS for word in ("-f", form)]
ABOUT = ["--gpu-model", "H100", "--core-version", "0.16.1", "--container", f"{SECRET}/box", "--no-megatron"]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files in a folder of a secret name, with the secret in every text that is no kernel or NVTX name."""
    folder = tmp_path_factory.mktemp("redaction") / SECRET
    folder.mkdir()
    for name in ("run.sqlite", "new.sqlite"):
        write_export(folder / name, moe_recording(steps=2, layers=1), lazy=False)
        assert plant(folder / name) >= 10
    script = SCRIPT.replace(
        "--bf16", f'--bf16 --tp-comm-overlap-cfg {SECRET} --save "/home/{SECRET}/x" --data-path {SECRET}'
    )
    script = script.replace("CONNECTIONS=1", f"CONNECTIONS={SECRET}\nexport WANDB_API_KEY={SECRET}")
    said = log(folder, 8.0)
    said.write_text(f"{SECRET}: host\n" + said.read_text(encoding="utf-8"), encoding="utf-8")
    return {
        "trace": folder / "run.sqlite",
        "new": folder / "new.sqlite",
        "config": written(folder, "run.sh", script),
        "log": said,
    }


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """The text of every file; of a PDF what its packed parts hold as well."""
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        yield path.name, data.decode("utf-8", "replace")
        for packed in re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
            try:
                yield path.name, zlib.decompress(packed).decode("latin-1")
            except zlib.error:
                continue


def told(folder: Path, secret: str = SECRET) -> list[str]:
    return sorted({name for name, text in contents(folder) if secret in text})


def given_words(planted: dict[str, Path]) -> list[str]:
    return ["--config", str(planted["config"]), "--log", str(planted["log"]), *ABOUT]


def test_no_secret_is_in_any_output_of_any_format(
    tmp_path: Path, planted: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = [str(planted["trace"]), *given_words(planted), "--full"]
    assert run(["analyze", *words, *EVERY, "-o", str(out)]) == 0
    jira = ["-f", "markdown", "--flavor", "jira", "-o", str(out)]
    assert run(["report", str(out / "run_moe-diag.json"), *jira]) == 0
    assert run(["report", str(out / "run_moe-diag.json"), "--ticket", str(tmp_path / "t")]) == 0
    assert len(list(out.iterdir())) == len(FORMS) + 1
    assert len(list((tmp_path / "t").iterdir())) == 5
    assert told(out) + told(tmp_path / "t") == []
    assert told(out, str(tmp_path)) == []
    assert SECRET not in "".join(capsys.readouterr())


def test_no_secret_is_in_any_output_of_a_comparison(
    tmp_path: Path, planted: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = [str(planted["trace"]), str(planted["new"]), *ABOUT[:-1], "--new-log", str(planted["log"])]
    words += ["--base-config", str(planted["config"]), "--new-config", str(planted["config"])]
    assert run(["compare", *words, *EVERY, "--full", "-o", str(out)]) == 0
    jira = ["-f", "markdown", "--flavor", "jira", "-o", str(out)]
    assert run(["report", str(out / "new_compared.json"), *jira]) == 0
    assert len(list(out.iterdir())) == len(FORMS) + 1
    assert told(out) == []
    assert SECRET not in "".join(capsys.readouterr())


def test_no_secret_is_in_any_output_of_a_judged_configuration(
    tmp_path: Path, planted: dict[str, Path]
) -> None:
    words = [str(planted["config"]), "--log", str(planted["log"]), *ABOUT, "--full", "-o", str(tmp_path)]
    assert run(["check-config", *words, "-f", "text", "-f", "markdown", "-f", "json"]) in (0, 1)
    assert len(list(tmp_path.iterdir())) == 3
    assert told(tmp_path) == []


def test_without_redaction_paths_and_texts_of_the_configuration_are_told(
    tmp_path: Path, planted: dict[str, Path]
) -> None:
    out = tmp_path / "x.json"
    words = [str(planted["trace"]), *given_words(planted), "--no-redact"]
    assert run(["analyze", *words, "-o", str(out)]) == 0
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["redacted"] is False
    assert document["traces"][0]["path"] == str(planted["trace"])
    assert document["traces"][0]["name"] == "run.sqlite"
    settings = {one["knob"]: one for one in document["configuration"]["settings"]}
    assert settings["tp_comm_overlap_cfg"]["value"] == SECRET
    assert not any(one["withheld"] for one in settings.values())
    assert document["given"]["container"] == f"{SECRET}/box"
    assert shlex.split(document["command"])[:3] == ["moe-diag", "analyze", str(planted["trace"])]
    assert redaction_words(document["redacted"]).startswith("Not redacted: ")
    assert "/home/" not in json.dumps(document)  # what is no knob of ours is told in no case
    assert "WANDB" not in json.dumps(document)


def test_a_redacted_document_says_what_it_withholds(planted: dict[str, Path]) -> None:
    document = diagnoser.analyze(
        planted["trace"], config=planted["config"], about={"ep": 8}, ask_megatron=False
    ).to_dict()
    assert document["redacted"] is True
    assert "path" not in document["traces"][0]
    withheld = [one["knob"] for one in document["configuration"]["settings"] if one["withheld"]]
    assert {"tp_comm_overlap_cfg", "env.CUDA_DEVICE_MAX_CONNECTIONS"} <= set(withheld)
    assert document["command"] == "moe-diag analyze run.sqlite --config run.sh --no-megatron --ep 8"
    assert redaction_words(document["redacted"]).startswith("Redacted: ")


@pytest.fixture(scope="module")
def unredacted(planted: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    document = diagnoser.analyze(planted["trace"], ask_megatron=False, redact=False).to_dict()
    return as_json(tmp_path_factory.mktemp("unredacted") / "open.json", document)


def test_an_open_result_is_shown_only_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unredacted: Path
) -> None:
    for words in (["report", str(unredacted)], ["report", str(unredacted), "--ticket", str(tmp_path / "t")]):
        assert run(words) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "was made with --no-redact and holds paths. Give --no-redact to show them" in err
    assert list(tmp_path.iterdir()) == []
    assert run(["report", str(unredacted), "--no-redact", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(unredacted.read_text(encoding="utf-8"))


@pytest.mark.parametrize("side", ["base", "new"])
def test_an_open_side_makes_no_redacted_comparison(
    capsys: pytest.CaptureFixture[str], planted: dict[str, Path], unredacted: Path, side: str
) -> None:
    trace = str(planted["new"])
    runs = [str(unredacted), trace] if side == "base" else [trace, str(unredacted)]
    assert run(["compare", *runs]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"moe-diag: {side}: this earlier result was made with --no-redact")
    assert run(["compare", *runs, "--no-redact", "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["redacted"] is False
    assert trace in shlex.split(document["command"])


def test_changed_texts_of_two_configurations_are_told_without_redaction_only(
    tmp_path: Path, planted: dict[str, Path]
) -> None:
    other = written(
        tmp_path, "other.sh", planted["config"].read_text(encoding="utf-8").replace(SECRET, "other")
    )
    for redact in (True, False):
        document = diagnoser.compare(
            planted["trace"],
            planted["new"],
            base_config=planted["config"],
            new_config=other,
            redact=redact,
        ).to_dict()
        rows = [one for one in document["changed"] if one["what"] == "tp_comm_overlap_cfg"]
        told = [(one["base"], one["new"], one["withheld"]) for one in rows]
        assert told == ([] if redact else [(SECRET, "other", False)])


@pytest.mark.parametrize("redact", [True, False])
def test_the_command_holds_what_was_given_and_makes_the_result_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, redact: bool
) -> None:
    run_of(tmp_path / "a run.sqlite")
    monkeypatch.chdir(tmp_path)
    words = ["--steps", "1:3", "--gpu", "0", "--ep", "16", "--memory-tight", "--guidance", "seed", "--full"]
    words += [] if redact else ["--no-redact"]
    assert run(["analyze", str(tmp_path / "a run.sqlite"), *words, "-f", "json"]) == 0
    first = json.loads(capsys.readouterr().out)
    name = "'a run.sqlite'" if redact else f"'{tmp_path}/a run.sqlite'"
    said = f"moe-diag analyze {name} --steps 1:3 --gpu 0 --ep 16 --memory-tight --guidance seed"
    said += "" if redact else " --no-redact"
    assert first["command"] == said
    assert run([*shlex.split(said)[1:], "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_python_tells_the_line_that_does_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = run_of(tmp_path / "run.sqlite", steps=9)
    by_python = diagnoser.analyze(trace, nvtx=r"iteration \d", about={"pp": 2, "ep": 8}, ask_megatron=False)
    assert (
        run(
            [
                "analyze",
                str(trace),
                "--nvtx",
                r"iteration \d",
                "--ep",
                "8",
                "--pp",
                "2",
                "--no-megatron",
                "-f",
                "json",
            ]
        )
        == 0
    )
    assert by_python.to_dict() == json.loads(capsys.readouterr().out)
    both = diagnoser.compare(by_python, trace, gate="3%", base_gpu=0).to_dict()
    assert both["command"] == "moe-diag compare run.sqlite run.sqlite --gate 3% --base-gpu 0"
    symptoms = as_json(tmp_path / "s.json", {"budget_frac": {"compute": 0.7, "exposed_comm": 0.3}})
    script = written(tmp_path, "run.sh", SCRIPT)
    checked = diagnoser.check_config(script, symptoms=symptoms, about={"core_version": "0.16.1"}).to_dict()
    assert checked["command"] == "moe-diag check-config run.sh --symptoms s.json --core-version 0.16.1"


def test_the_demo_is_made_again_by_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "memory", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["command"] == "moe-diag demo memory"


def test_a_baseline_stays_a_baseline(tmp_path: Path) -> None:
    from diagnoser.options.requests import Comparison
    from diagnoser.running.comparison import compare_sides

    document = diagnoser.analyze(run_of(tmp_path / "run.sqlite"), ask_megatron=False).to_dict()
    asked = Comparison(document, tmp_path / "run.sqlite")
    assert compare_sides(asked, "main").to_dict()["command"] == "moe-diag compare run.sqlite --baseline main"


@given(
    folder=some.text(min_size=1).filter(lambda text: not {"/", "\0"} & set(text)),
    name=some.text(min_size=1).filter(lambda text: not {"/", "\0"} & set(text) and text not in (".", "..")),
    pattern=some.text(),
)
def test_a_command_is_one_line_of_a_shell_without_folders(folder: str, name: str, pattern: str) -> None:
    path = Path("/home/hunter2_sesame") / folder / name
    said = command_line("analyze", [path], {"--nvtx": pattern, "--config": path, "--rank": None, "--x": True})
    words = shlex.split(said)
    assert said.isprintable()
    assert "hunter2_sesame" not in said
    assert words[:2] == ["moe-diag", "analyze"]
    assert [words[3], words[5], words[7:]] == ["--nvtx", "--config", ["--x"]]
    assert words[2] == words[6]
    assert len(words) == 8


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"container": "/home/me/box"}, "--container NAME"),
        ({"gpu": "NVIDIA H100 80GB HBM3"}, "--gpu-model H100"),
        ({"gpu": "H100 of db01.example"}, "--gpu-model H100"),
        ({"pp_layout": "me@host"}, "--pp-layout TEXT"),
        ({"graph_modules": "attn,moe_router"}, "--graph-modules attn,moe_router"),
        ({"packed_sequences": False}, "--no-packed-sequences"),
        ({"tp": 2, "ep": 8}, "--ep 8 --tp 2"),
    ],
)
def test_what_is_said_of_a_run_is_told_in_known_words_only(about: Json, said: str) -> None:
    assert (
        command_line("analyze", [Path("/x/run.sqlite")], {}, about) == f"moe-diag analyze run.sqlite {said}"
    )


def test_a_name_that_looks_like_an_option_stays_a_file() -> None:
    assert command_line("analyze", [Path("/x/--full")], {}) == "moe-diag analyze ./--full"
