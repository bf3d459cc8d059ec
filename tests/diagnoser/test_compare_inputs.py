"""Every bad side of a comparison once, as a user meets it: one line that names it, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import structs

import diagnoser
from bench.simulate.export import write_export
from diagnoser.cli import run
from diagnoser.options.requests import Comparison, Source
from diagnoser.running.comparison import read_sides
from heuristics.result.result import Result
from reports.result.codec import encode
from reports.result.read import typed
from tests.configurations.check import log, script
from tests.doubles.comparison import configuration
from tests.doubles.document import DISPATCH, exposed
from tests.doubles.sides import as_json, result_of_run, run_of
from traces.errors import InputError, NothingToDiagnose, UsageError

SIDES: tuple[Literal["base", "new"], ...] = ("base", "new")
GIVEN = {"gpu": "H100", "core_version": "0.16.1"}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """A result of three steps."""
    return result_of_run(tmp_path_factory.mktemp("earlier") / "earlier.sqlite")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        *(("log", None, "does not exist"), ("log", "hello\n", "holds no line that we know")),
        *(("config", None, "does not exist"), ("config", "\0\1\2", "given")),
    ],
)
@pytest.mark.parametrize("kind", ["trace", "result"])
def test_a_wrong_file_beside_a_side_names_the_side(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    earlier: Json,
    side: str,
    option: str,
    content: str | None,
    said: str,
    kind: str,
) -> None:
    path = tmp_path / "given"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    one = run_of(tmp_path / "run.sqlite") if kind == "trace" else as_json(tmp_path / "run.json", earlier)
    assert run(["compare", str(one), str(one), f"--{side}-{option}", str(path)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"moe-diag: {side}: ")
    assert said in err


@pytest.mark.parametrize("side", SIDES)
def test_a_gpu_that_a_side_lacks_is_told_with_those_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str
) -> None:
    path = str(run_of(tmp_path / "run.sqlite", gpus=2))
    assert run(["compare", path, path, f"--{side}-gpu", "5"]) == 2
    assert capsys.readouterr().err == f"moe-diag: {side} has no GPU 5; it has 0, 1. Give --{side}-gpu 0\n"


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("words", [["--steps", "1:2"], ["--nvtx", "iteration"]])
def test_steps_are_not_chosen_in_an_earlier_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], earlier: Json, side: str, words: list[str]
) -> None:
    trace, result = run_of(tmp_path / "run.sqlite"), as_json(tmp_path / "run.json", earlier)
    runs = [result, trace] if side == "base" else [trace, result]
    assert run(["compare", *map(str, runs), *words]) == 2
    assert f"moe-diag: {side}: steps can be chosen in a trace only" in capsys.readouterr().err


def results(base: Source, new: Source | None = None, **given: Any) -> tuple[Result, ...]:
    return read_sides(Comparison(base, base if new is None else new, **given))


def test_errors_stay_of_their_class(tmp_path: Path, earlier: Json) -> None:
    with pytest.raises(InputError, match=r"^new: its schema_version is no number"):
        results(earlier, {**earlier, "schema_version": None})
    with pytest.raises(NothingToDiagnose, match=r"^new: this result has no trace in it"):
        results(earlier, {**earlier, "ranks": []})
    held = structs.replace(typed(earlier), configuration=configuration())
    with pytest.raises(UsageError, match=r"^base: this earlier result already holds a configuration"):
        results(encode(held), earlier, base_config=script(tmp_path))


def facts(document: Json) -> Json:
    """All but what to try and the line that was typed, which a comparison does not read."""
    advice = ("fixes", "refused", "levers", "choices", "command")
    gaps = [one for one in document["missing"] if not one["path"].startswith(advice)]
    gaps.sort(key=lambda one: one["path"])
    return {key: one for key, one in document.items() if key not in advice} | {"missing": gaps}


@pytest.mark.parametrize(("configured", "log_ms"), [(False, 8.0), (True, None), (True, 8.0)])
def test_files_laid_into_a_result_give_what_analyze_makes_of_them(
    tmp_path: Path, configured: bool, log_ms: float | None
) -> None:
    trace = tmp_path / "run.sqlite"
    write_export(trace, exposed(comm=DISPATCH))
    config = script(tmp_path) if configured else None
    logged = log(tmp_path, log_ms) if log_ms else None
    whole = diagnoser.analyze(trace, config=config, log=logged, about=GIVEN, ask_megatron=False).to_dict()
    plain = diagnoser.analyze(trace, about=GIVEN, ask_megatron=False).to_dict()
    earlier = as_json(tmp_path / "run.json", plain)
    laid, _ = results(earlier, base_config=config, base_log=logged)
    assert facts(encode(laid)) == facts(json.loads(json.dumps(whole)))


def test_a_log_replaces_the_one_a_result_holds_and_leaves_its_configuration(tmp_path: Path) -> None:
    trace = tmp_path / "run.sqlite"
    write_export(trace, exposed(comm=DISPATCH))
    eight, settings = log(tmp_path, 8.0), script(tmp_path)
    held = diagnoser.analyze(trace, config=settings, log=eight, about=GIVEN, ask_megatron=False).to_dict()
    result, _ = results(held, base_log=log(tmp_path, 5.0))
    laid = encode(result)
    assert laid["log"]["steady_step_ns"] == 5_000_000
    assert laid["traces"][0]["capture"]["perturbation_frac"] == pytest.approx(1.0)  # 10 ms against 5
    assert laid["configuration"] == held["configuration"]
    assert held["log"]["steady_step_ns"] == 8_000_000


def test_what_is_said_of_the_run_is_said_of_both_sides(tmp_path: Path, earlier: Json) -> None:
    before = {**earlier, "given": {"ep": 8, "tp": 2}}
    base, new = results(before, run_of(tmp_path / "run.sqlite"), about={"ep": 16, "precision": "bf16"})
    assert base.given == {"ep": 16, "tp": 2, "precision": "bf16"}
    assert new.given == {"ep": 16, "precision": "bf16"}
