"""What an export, a configuration and a log know of people and machines stays in them, in every format."""

from __future__ import annotations

import base64
import json
import shutil
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from bench.simulate.export import schema_versions, write_export
from diagnoser.cli import run
from tests.configurations.check import BRIDGE, COMMUNICATION
from tests.doubles.document import GEMM
from tests.hostile.secrets import (
    ADDRESS,
    OWN,
    PRIVATE,
    SECRET,
    keeping_secrets,
    knobs_in_script,
    knobs_in_yaml,
    plant,
    planted,
    profiled,
    secrets_in,
    spellings,
)
from tests.read_back.rendering import ANALYSIS, COMPARISON, PICTURES
from tests.recordings.moe_pattern import moe_recording
from traces.settings.knobs import Knob, knobs

PATCHES = ("megatron-lm", "bridge")
FORMS = [form for form in ANALYSIS if form not in ("jira", *PATCHES)]
COMPARED_FORMS = [form for form in COMPARISON if form != "jira"]


def printed(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    code = run(["analyze", str(path), *options])
    assert code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("schema", schema_versions())
def test_a_secret_in_any_text_or_folder_name_is_never_printed(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / SECRET
    folder.mkdir()
    path = folder / "run.sqlite"
    recording = moe_recording(steps=2, layers=1)
    recording.gpu()
    write_export(path, recording, schema, lazy=False)
    assert plant(path) >= 10
    for form, name in (("text", "grouped GEMMs"), ("json", "grouped_gemm")):
        out = printed(path, capsys, "-f", form, "--full")
        assert name in out
        assert SECRET not in out


def test_a_known_diagnostic_is_told_in_our_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = moe_recording(steps=2, layers=1)
    recording.diagnostic(f"CUPTI buffer overflow at /home/{SECRET}: 17 records were lost")
    path = tmp_path / "run.sqlite"
    write_export(path, recording)
    out = printed(path, capsys, "--full")
    assert "the profiler lost events" in out
    assert SECRET not in out


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder on a machine where all has the secret for its name: folders, user, host, variables."""
    folder = tmp_path / SECRET / "runs"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in (
        "USER",
        "LOGNAME",
        "HOSTNAME",
        "SLURM_NODELIST",
        "MASTER_ADDR",
        "WANDB_API_KEY",
        "NCCL_DEBUG",
    ):
        monkeypatch.setenv(name, f"{SECRET}.{ADDRESS}")
    monkeypatch.setattr("socket.gethostname", lambda: SECRET)
    monkeypatch.setattr("platform.node", lambda: SECRET)
    monkeypatch.setattr("getpass.getuser", lambda: SECRET)
    monkeypatch.setenv("MOE_DIAG_HISTORY", str(folder / "history.sqlite"))
    return folder


def assert_kept(folder: Path, said: pytest.CaptureFixture[str], least: int = 0) -> None:
    """Nothing said and no file of the folder has a secret; there are at least so many files."""
    out = said.readouterr()
    assert secrets_in(out.out.encode()) == []
    assert secrets_in(out.err.encode()) == []
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= least
    assert {path.name: found for path in files if (found := secrets_in(path.read_bytes()))} == {}
    assert SECRET not in " ".join(path.name for path in files)


def as_options(forms: list[str]) -> list[str]:
    return [word for form in forms for word in ("-f", form)]


def test_the_search_finds_a_secret_however_it_is_spelled() -> None:
    packed = b"stream\n" + zlib.compress(SECRET.encode() * 2)
    pieces = b"[(hunter2) 3 (_sesame)] TJ"
    private = [one.encode() for one in PRIVATE.values()]
    for hidden in (*spellings(SECRET), SECRET.upper().encode(), packed, pieces, ADDRESS.encode(), *private):
        assert secrets_in(b"x" + hidden + b"y"), hidden
    assert secrets_in(base64.b64encode(f"at /home/{SECRET}/x".encode()))
    assert not secrets_in(b"hunter2 and sesame")


def test_analyze_keeps_every_secret_in_every_format(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(place / "run.sqlite")
    files = keeping_secrets(place)
    for config, emit in zip(("script", "bridge"), PATCHES, strict=True):
        words = ["analyze", "run.sqlite", "--config", files[config].name, "--log", "train.log", "--full"]
        words.append("--no-megatron")
        texts = [form for form in FORMS if form not in PICTURES]
        for page, forms in (("github", texts), ("jira", ["markdown"])):
            out = place / f"{config}-{page}"
            out.mkdir()
            assert run([*words, "--flavor", page, *as_options(forms), "-o", f"{out}/"]) == 0
            assert_kept(out, capsys, least=len(forms))
        assert run([*words, "--emit-config", emit]) == 0
        assert_kept(place / "nothing", capsys)
    assert run(["analyze", "run.sqlite", *as_options([*PICTURES]), "-o", "."]) == 0
    pictures = place / "pictures"
    pictures.mkdir()
    for path in place.glob("run_moe-diag.*"):
        path.rename(pictures / path.name)
    assert_kept(pictures, capsys, least=len(PICTURES))


def test_compare_keeps_every_secret_in_every_format(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = planted(place / OWN[0]), planted(place / OWN[2], longer_us=50)
    keeping_secrets(place)
    words = ["compare", base.name, new.name, "--full", "--gate", "3%"]
    words += ["--base-config", "train.sh", "--new-config", "train.yaml"]
    words += ["--base-log", "train.log", "--new-log", "train.log"]
    for page, forms in (("github", COMPARED_FORMS), ("jira", ["markdown", "text"])):
        out = place / page
        out.mkdir()
        assert run([*words, "--flavor", page, *as_options(forms), "-o", f"{page}/"]) in (0, 1)
        assert_kept(out, capsys, least=len(forms))


def test_a_report_a_ticket_and_the_history_keep_every_secret(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(place / "run.sqlite")
    keeping_secrets(place)
    words = ["analyze", "run.sqlite", "--config", "train.yaml", "--log", "train.log", "--no-megatron"]
    assert run([*words, "-f", "json", "-o", "run.json"]) == 0
    for folder, page in (("first", []), ("second", ["--flavor", "jira"])):
        assert run(["report", "run.json", "--ticket", folder, *page]) == 0
        assert_kept(place / folder, capsys, least=5)
    Path("run.sqlite").rename(OWN[0])
    assert run(["analyze", OWN[0], "--ticket", "third"]) == 0
    assert_kept(place / "third", capsys, least=5)
    for words in (["add", "run.json"], ["add", OWN[0]], ["list"], ["baseline", "main", "1"]):
        assert run(["history", *words]) == 0
    out = place / "kept"
    out.mkdir()
    shutil.move(place / "history.sqlite", out / "history.sqlite")
    assert_kept(out, capsys, least=1)


def test_a_judged_configuration_and_the_doctor_keep_every_secret(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(place / "run.sqlite")
    keeping_secrets(place)
    symptoms = {**COMMUNICATION, "traces": [{"name": SECRET}]}
    (place / "symptoms.json").write_text(json.dumps(symptoms), encoding="utf-8")
    for config in ("train.sh", "train.yaml"):
        for form in ("text", "markdown", "html", "json"):
            words = ["check-config", config, "--log", "train.log", "--symptoms", "symptoms.json", "--full"]
            assert run([*words, "--no-megatron", "-f", form]) in (0, 1)
    assert run(["doctor", "run.sqlite"]) == 0
    assert_kept(place / "nothing", capsys)


def test_an_error_says_no_secret_of_a_file_or_folder(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = f"{SECRET} {ADDRESS} /home/{SECRET}\n" * 200
    for name in ("run.sqlite", "run.nsys-rep", "run.json", "train.yaml", "train.sh", "train.log"):
        (place / name).write_text(noise, encoding="utf-8")
    for name, said in (
        ("known.json", {"schema_version": SECRET, SECRET: SECRET}),
        ("events.json", {"traceEvents": [{SECRET: SECRET}]}),
        ("said.json", {SECRET: {"budget_frac": SECRET}}),
    ):
        (place / name).write_text(json.dumps(said), encoding="utf-8")
    broken = f"model:\n  num_moe_experts: {SECRET}\n  - {SECRET}: [\n"
    (place / "keyed.yaml").write_text(broken, encoding="utf-8")
    planted(place / "good.sqlite", names=["norm_kernel"])
    truncated = place / "cut.sqlite"
    truncated.write_bytes((place / "good.sqlite").read_bytes()[:-4096])
    refused = 0
    for words in (
        *(["analyze", name] for name in ("run.sqlite", "run.nsys-rep", "run.json", "events.json")),
        *(["analyze", name] for name in ("cut.sqlite", "none")),
        *(["doctor", name] for name in ("run.sqlite", "cut.sqlite")),
        *(["report", name] for name in ("run.json", "known.json", "events.json")),
        *(["check-config", name] for name in ("train.yaml", "train.sh", "keyed.yaml")),
        ["check-config", "keyed.yaml", "--symptoms", "said.json"],
        ["compare", "run.json", "good.sqlite"],
        ["compare", "known.json", "good.sqlite"],
        ["history", "add", "known.json"],
        ["analyze", "good.sqlite", "--config", "keyed.yaml"],
        ["analyze", "good.sqlite", "--log", "train.log"],
        ["analyze", "good.sqlite", "--nvtx", "no_such_range"],
        ["analyze", "good.sqlite", "--steps", "90:99"],
    ):  # fmt: skip
        code = run(words)
        out = capsys.readouterr()
        assert code != 70, (words, out.err)
        assert secrets_in((out.err + out.out).encode()) == [], (words, out.err)
        refused += code != 0
    assert refused >= 15


@pytest.mark.parametrize("name", OWN)
def test_no_name_or_variable_of_a_recording_is_in_any_file(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (profiled if name.endswith(".json") else planted)(place / name)
    words = ["analyze", name, "--full", "--no-megatron"]
    out = place / "out"
    out.mkdir()
    forms = [form for form in FORMS if form not in PICTURES]
    assert run([*words, *as_options(forms), "-o", "out/", "--ticket", "out/ticket", "--summary", "out"]) == 0
    assert run([*words, "--flavor", "jira", "-f", "markdown", "-o", "out/jira.txt"]) == 0
    for form in ("text", "json"):
        assert run(["merge", "out", "-f", form, "-o", f"out/merged.{form}"]) == 0
    assert run(["doctor", name]) == 0
    kept = next(path for path in out.glob("*.rank"))
    (out / "unpacked").write_bytes(zlib.decompress(kept.read_bytes()[len(b"moe-diag rank") + 2 :]))
    assert_kept(out, capsys, least=len(forms) + 8)


def test_without_redaction_only_paths_and_the_configuration_are_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = place.parents[1] / "told" / "home"
    told.mkdir(parents=True)
    shutil.move(planted(place / "run.sqlite", names=["norm_kernel"]), told / "run.sqlite")
    config = told / "train.yaml"
    config.write_text(BRIDGE.replace("dispatcher_type: alltoall", "dispatcher_type: alltoall_told"), "utf-8")
    out = told / "out"
    out.mkdir()
    words = ["analyze", f"{told}/run.sqlite", "--config", str(config), "--no-megatron", "--no-redact"]
    assert run([*words, *as_options([form for form in FORMS if form not in PICTURES]), "-o", f"{out}/"]) == 0
    assert_kept(out, capsys, least=5)
    (kept,) = (path for path in out.glob("*.json") if "perfetto" not in path.name)
    text = kept.read_text(encoding="utf-8")
    assert json.loads(text)["redacted"] is False
    assert f"{told}/run.sqlite" in text


@pytest.mark.parametrize("written", [knobs_in_yaml, knobs_in_script])
def test_no_knob_tells_what_it_was_given(
    written: Callable[[Iterable[Knob]], str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words and numbers are known or not told, whether they are read, refused or contradict each other."""
    texts = [knob for knob in knobs().values() if knob.bridge and "str" in knob.kind]
    numbers = [knob for knob in knobs().values() if knob.bridge and knob.kind in ("int", "float")]
    assert len(texts) > 20
    path = place / ("train.yaml" if written is knobs_in_yaml else "train.sh")
    codes = set()
    for group in (texts, numbers, *(texts[place::6] for place in range(6))):
        path.write_text(written(group), encoding="utf-8")
        words = ["check-config", path.name, "--no-megatron", "--full", "-o", ".", "--force-overwrite"]
        codes.add(run([*words, "-f", "json", "-f", "text"]))
        for name in ("train_moe-diag.json", "train_moe-diag.txt"):
            assert not (found := place / name).exists() or secrets_in(found.read_bytes()) == []
    assert codes <= {0, 1, 3}
    assert codes & {0, 1}
    assert_kept(place / "nothing", capsys)


def test_only_product_names_and_versions_pass() -> None:
    from traces.formats.known_texts import gpu_name, version

    known = (
        *("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "Tesla T4"),
        *("NVIDIA GB300", "NVIDIA B300 SXM6 AC", "NVIDIA GeForce RTX 3080 Laptop GPU", "NVIDIA H20"),
        *("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA A100-SXM4-40GB MIG 3g.20gb"),
    )
    assert [name for name in known if gpu_name(name) != name] == []
    strangers = (SECRET, f"NVIDIA {SECRET}", "1234", "NVIDIA", "root", 7, None)
    assert [name for name in strangers if gpu_name(name)] == []
    mixed = ("NVIDIA H100 on db01", "A100\n", "Tesla V100-FHHL-16GB", "AMD Instinct MI300X VF")
    assert [gpu_name(name) for name in mixed] == ["H100", "A100", "V100", "MI300X"]
    assert version("2026.2.1.210") == "2026.2.1.210"
    assert [version(text) for text in ("2026.2-rc", SECRET, "2026", "1.2.3.4.5.6.7", None)] == [None] * 5


def test_what_was_not_withheld_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --no-redact all is told but secrets, and ordinary names always are."""
    monkeypatch.chdir(tmp_path)
    planted(tmp_path / OWN[0])
    assert run(["analyze", OWN[0], "--full", "--no-redact", "-f", "json"]) == 0
    out = capsys.readouterr().out
    assert OWN[0] in out
    assert f"{GEMM}_{PRIVATE['home']}" in out
    assert PRIVATE["token of hf"] not in out
    assert GEMM in out
