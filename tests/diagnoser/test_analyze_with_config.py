"""A trace beside its configuration and log: what each format adds, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import diagnoser
from bench.simulate.export import write_export
from diagnoser.cli import run
from heuristics.result.result import Result
from reports.content.analysis import page
from reports.content.blocks import Detail, View
from reports.result.codec import decode
from reports.write.github import write_github
from tests.configurations.check import ABOUT, CONTRADICTS, SCRIPT, log, script, written
from tests.doubles.document import DISPATCH, HOSTILE, exposed
from tests.doubles.pages import first_screen, whole_text
from tests.hostile.planted import planted
from tests.read_back.markdown import is_ours_alone
from tests.recordings.launches import GATHER, GROUPED
from traces.errors import InputError

GIVEN = {"gpu": "H100", "core_version": "0.16.1"}


def trace(folder: Path) -> Path:
    """Four steps of 10 ms, of which 3 are exposed expert dispatch."""
    path = folder / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH))
    return path


def analyzed(folder: Path, config: Path | None = None, log: Path | None = None) -> dict[str, Any]:
    path = trace(folder)
    return diagnoser.analyze(path, config=config, log=log, about=GIVEN, ask_megatron=False).to_dict()


def ticket(document: Mapping[str, Any], detail: Detail = Detail.FULL) -> str:
    return write_github(page(decode(document, Result), detail), View())


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_log_says_how_much_the_profiler_added(tmp_path: Path) -> None:
    document = analyzed(tmp_path, log=log(tmp_path, step_ms=8.0))
    assert document["traces"][0]["capture"]["perturbation_frac"] == pytest.approx(0.25)  # 10 ms against 8
    assert "The recorded step is 25 % longer than one without the profiler" in words(whole_text(document))
    assert [one["id"] for one in document["config_findings"]] == ["CAP-1"]


def test_a_log_alone_is_not_called_a_configuration(tmp_path: Path) -> None:
    said = log(tmp_path, step_ms=10.0)
    assert "legal" not in words(first_screen(analyzed(tmp_path, log=said)))
    ranks = "using world size: 8, data-parallel size: 8, context-parallel size: 1, "
    said.write_text(ranks + "\n" + said.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "run.sqlite").unlink()
    assert "legal" not in words(first_screen(analyzed(tmp_path, log=said)))


def test_throughput_is_of_the_steady_step_or_else_of_the_profiled_one(tmp_path: Path) -> None:
    text = SCRIPT.replace("--seq-length 4096", "--seq-length 128").replace("-size 256", "-size 32")
    config = written(tmp_path, "small.sh", text)  # so little work that a GPU does it within 8 ms
    whole = analyzed(tmp_path, config=config, log=log(tmp_path, step_ms=8.0, batch=32))
    assert whole["throughput"]["step_ns"] == 8_000_000
    (tmp_path / "run.sqlite").unlink()
    profiled = analyzed(tmp_path, config=config)
    assert profiled["throughput"]["step_ns"] == 10_000_000
    ratio = whole["throughput"]["tokens_per_s_per_gpu"] / profiled["throughput"]["tokens_per_s_per_gpu"]
    assert ratio == pytest.approx(10 / 8)


@pytest.mark.parametrize(("seq_length", "shown"), [(64, True), (128, False)])
def test_grouped_products_are_as_fast_as_the_configuration_says_unless_no_gpu_is(
    tmp_path: Path, seq_length: int, shown: bool
) -> None:
    """1 ms a step; of a token 3 x 8 matrices of 2048 by 768 in each of 48 layers, three passes."""
    text = SCRIPT.replace("--seq-length 4096", f"--seq-length {seq_length}").replace("-size 256", "-size 32")
    path = tmp_path / "run.sqlite"
    write_export(path, exposed(comm=DISPATCH, kernel=GROUPED))
    config = written(tmp_path, "small.sh", text)
    result = diagnoser.analyze(path, config=config, about=GIVEN, ask_megatron=False)
    document = result.to_dict()
    flop = 3 * seq_length * 48 * 2 * 3 * 8 * 2048 * 768
    assert flop / 1e9 == pytest.approx(696 if shown else 1392, rel=0.01)  # TFLOP/s, of 990 that an H100 has
    if not shown:
        assert "grouped_gemm" not in document["throughput"]
        return
    found = document["throughput"]["grouped_gemm"]
    assert (found["flop"], found["work_ns"]) == (flop, 1_000_000)
    assert found["tflops_per_s"] == pytest.approx(flop / 1e9)
    assert found["peak_frac"] == pytest.approx(flop / 1e9 / 989.5)
    said = "Grouped GEMMs run at 696 TFLOP/s, 1.00 ms of a step and 70 % of the peak, by the configuration"
    assert said in words(whole_text(document))


def test_without_a_configuration_nothing_is_said_of_one(tmp_path: Path) -> None:
    document = analyzed(tmp_path)
    assert "\nCONFIGURATION" not in whole_text(document)
    assert "## Configuration" not in ticket(document)
    assert "--config FILE checks flags" in words(first_screen(document))


def test_every_fix_says_in_each_format_what_was_checked(tmp_path: Path) -> None:
    document = analyzed(tmp_path, config=script(tmp_path))
    assert document["fixes"]
    for fix in document["fixes"]:
        assert [one["tier"] for one in fix["checked"]][:1] == ["rules"]
    shown = min(3, len(document["fixes"]))
    assert words(whole_text(document)).count("Rules of moe-diag: merged into") >= shown
    assert ticket(document).count("Rules of moe-diag: merged into") >= shown


def test_whether_a_change_fits_is_said_with_its_figures(tmp_path: Path) -> None:
    document = analyzed(tmp_path, config=script(tmp_path), log=log(tmp_path, step_ms=10.0))
    rooms = [fix["room"] for fix in document["fixes"] if fix["room"]]
    for text in (words(whole_text(document)), words(ticket(document))):
        assert [room for room in rooms if f"memory: {room['because']}" not in text.lower()] == []


def test_the_whole_ticket_holds_the_configuration_and_folds_its_rules(tmp_path: Path) -> None:
    path = written(tmp_path, "run_[moe]_(gpt).yaml", CONTRADICTS)
    document = analyzed(tmp_path, config=path)
    text = ticket(document)
    assert "ep-overlap-overwritten" in text
    assert text.index("Configuration") < text.index("rules not applicable")
    assert "not applicable" not in ticket(document, Detail.FIRST)
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert "run_[moe]_(gpt).yaml" in html
    assert html.count("<details>") == html.count("</details>") == text.count("<details>")


@pytest.mark.parametrize("detail", Detail)
def test_no_string_of_a_configuration_can_harm_the_ticket(tmp_path: Path, detail: Detail) -> None:
    document = analyzed(tmp_path, config=script(tmp_path), log=log(tmp_path, step_ms=8.0))
    hostile = planted(decode(document, Result), HOSTILE)
    assert is_ours_alone(write_github(page(hostile, detail), View()))


def test_what_does_not_run_as_written_is_the_first_step_of_the_screen(tmp_path: Path) -> None:
    document = analyzed(tmp_path, config=written(tmp_path, "run.yaml", CONTRADICTS))
    first, second = first_screen(document).partition("\n  1  ")[2].split("\n  2  ")[:2]
    assert "[CFG-dispatcher-not-active]" in first
    assert "saves" in second or "Correct the configuration" in second


def test_a_fix_that_the_configuration_forbids_is_refused_with_the_reason(tmp_path: Path) -> None:
    full = SCRIPT.replace(
        "--bf16", "--bf16 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    )
    free = analyzed(tmp_path, config=script(tmp_path))
    (tmp_path / "run.sqlite").unlink()
    bound = analyzed(tmp_path, config=written(tmp_path, "full.sh", full))
    assert "COM-1" in [fix["id"] for fix in free["fixes"]]
    assert "COM-1" not in [fix["id"] for fix in bound["fixes"]]
    (refused,) = [one for one in bound["refused"] if one["id"] == "COM-1"]
    assert "recompute" in refused["because"]
    assert refused["unlocked_by"]


def test_a_patch_goes_to_a_file_and_inputs_are_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, config, out = str(trace(tmp_path)), script(tmp_path), tmp_path / "patch.sh"
    options = ["--config", str(config), *ABOUT, "--emit-config", "megatron-lm"]
    assert run(["analyze", path, *options, "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("# moe-diag ")
    assert run(["analyze", path, *options, "-o", str(out)]) == 2
    before = config.read_bytes()
    assert run(["analyze", path, *options, "-o", str(config), "--force-overwrite"]) == 2
    assert config.read_bytes() == before
    assert capsys.readouterr().err.count("\n") == 2


def test_the_api_takes_the_files_as_the_command_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, said = script(tmp_path), log(tmp_path, step_ms=10.0)
    found = analyzed(tmp_path, config=config, log=said)
    options = ["--config", str(config), "--log", str(said), *ABOUT, "-f", "json"]
    assert run(["analyze", str(tmp_path / "run.sqlite"), *options]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize("option", ["--config", "--log"])
def test_a_trace_given_as_another_file_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    path = str(trace(tmp_path))
    assert run(["analyze", path, option, path]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "run.sqlite" in err
    assert "binary" in err
    with pytest.raises(InputError, match="binary"):
        diagnoser.analyze(path, **{option.removeprefix("--"): path})  # type: ignore[arg-type]


def test_a_gather_is_data_parallel_where_the_configuration_leaves_it_no_other_use(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    write_export(path, exposed(comm=GATHER))
    alone = {**GIVEN, "tp": 1, "ep": 1, "pp": 1, "cp": 1}
    found = {
        name: diagnoser.analyze(path, about=about, ask_megatron=False).to_dict()
        for name, about in (("unknown", GIVEN), ("alone", alone))
    }
    kinds = {name: one["ranks"][0]["exposed_comm_by_kind_ns"] for name, one in found.items()}
    assert kinds == {"unknown": {"other_comm": 12_000_000}, "alone": {"dp_all_gather": 12_000_000}}
    planned = {name: next(fix for fix in one["fixes"] if fix["id"] == "COM-4") for name, one in found.items()}
    asked = {name: {one["text"] for one in fix["preconditions"]} for name, fix in planned.items()}
    unresolved = "the unresolved gathers and scatters are data parallelism's"
    assert (unresolved in asked["unknown"], unresolved in asked["alone"]) == (True, False)
    assert "data-parallel collectives run" in asked["alone"]
    gaps = {name: {gap["path"] for gap in one["missing"]} for name, one in found.items()}
    path_of_gathers = "ranks[0].exposed_comm_by_kind_ns.other_comm"
    assert (path_of_gathers in gaps["unknown"], path_of_gathers in gaps["alone"]) == (True, False)
    assert "with TP, EP, PP and CP at 1 they are data parallelism" in words(whole_text(found["unknown"]))
