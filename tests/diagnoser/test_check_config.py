"""`check-config` as a user meets it: exit codes, bad files, and a report that reads in one go."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

import diagnoser
from diagnoser.cli import run
from diagnoser.options.requests import Check
from diagnoser.running.configuration import check_config
from heuristics.result.judged import Choice
from heuristics.result.result import Result
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from reports.content.analysis.check import page
from reports.content.blocks import Block, Detail, Fold, Items, Part, View
from reports.content.check_defects import Weight, defects, first_errors
from reports.content.judged_settings import values_of
from reports.write.github import write_github
from reports.write.text import write_text
from tests.configurations.check import (
    ABOUT,
    BRIDGE,
    CONTRADICTS,
    ILLEGAL,
    cases,
    log,
    log_lines,
    script,
    symptoms,
    written,
)
from tests.configurations.logs import crash, out_of_memory
from tests.hostile.planted import planted
from tests.places import GOLDEN, ROOT, Reviewed
from tests.read_back.plain_page import plain, said
from tests.recordings.inputs import simple
from traces.errors import InputError
from traces.missing import known
from traces.sizes.memory import MemoryEstimate

SECRET = "hunter2_sesame"
HUGE = 100_000_000


def checked(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = run(["check-config", str(path), *ABOUT, *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(("text", "code"), [(BRIDGE, 0), (CONTRADICTS, 0), (ILLEGAL, 1)])
def test_the_exit_code_says_whether_it_is_legal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    path = written(tmp_path, "run.yaml", text)
    assert checked(path, capsys)[0] == code
    found = json.loads(checked(path, capsys, "-f", "json")[1])
    assert found["configuration"]["legal"] == (code == 0)


def test_what_megatron_core_itself_rejects_is_illegal(tmp_path: Path) -> None:
    def ask(requests: Sequence[Request]) -> list[tuple[Answer, ...]]:
        return [(Answer("config", "rejected", "not so", "0.16.1"),) for _ in requests]

    path = script(tmp_path)
    found = check_config(Check(path, about={"core_version": "0.16.1"}), ask)
    assert not found.to_dict()["configuration"]["legal"]
    said = words(plain(page(found.result, Detail.FIRST)))
    assert "NOT LEGAL 1 error for Megatron-Core 0.16.1" in said
    assert "Megatron-Core rejects it: not so." in said
    assert "Megatron-Core's configuration: rejected: not so." in said


def test_the_count_of_errors_and_what_is_listed_to_fix_first_agree(tmp_path: Path) -> None:
    both = ILLEGAL.replace("comm_overlap:", "  moe_flex_dispatcher_backend: deepep\ncomm_overlap:", 1)
    found = check_config(Check(written(tmp_path, "run.yaml", both))).result
    heavy = [one.weight for one in defects(found) if one.weight <= Weight.NOT_AS_WRITTEN]
    assert heavy == [Weight.REJECTED, Weight.REJECTED, Weight.NOT_AS_WRITTEN]
    said = words(plain(page(found, Detail.FIRST)))
    assert "2 errors for" in said
    assert "Fix first has 1 more entry, which Megatron does not reject." in said
    only = check_config(Check(written(tmp_path, "run.yaml", ILLEGAL))).result
    assert "does not reject" not in words(plain(page(only, Detail.FIRST)))


def folder(where: Path) -> Path:
    path = where / "configs"
    path.mkdir()
    return path


def nothing(where: Path) -> Path:
    return where / "none.yaml"


def empty(where: Path) -> Path:
    return written(where, "run.yaml", "")


def binary(where: Path) -> Path:
    path = where / "run.yaml"
    path.write_bytes(bytes(range(256)) * 8)
    return path


def large(where: Path) -> Path:
    """A hundred megabytes, most of it a hole."""
    path = written(where, "run.yaml", BRIDGE)
    with path.open("r+b") as file:
        file.truncate(HUGE)
    return path


def running(where: Path) -> Path:
    tag = "!!python/object/apply:os.system"
    return written(where, "run.yaml", f"model:\n  num_layers: {tag} ['touch {where}/{SECRET}']\n")


def broken(where: Path) -> Path:
    return written(where, "run.yaml", f"model:\n  num_layers: [{SECRET}\n")


def bomb(where: Path) -> Path:
    """Ten times ten times ten ... words, by aliases."""
    levels = ["  a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for one, after in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")):
        levels.append(f"  {after}: &{after} [{', '.join([f'*{one}'] * 10)}]")
    return written(where, "run.yaml", "\n".join(["model:", *levels]))


def trace(where: Path) -> Path:
    return simple(where / "run.sqlite")


def notes(where: Path) -> Path:
    return written(where, "run.sh", f"echo {SECRET}\nls -l\n")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (folder, "is a folder. Name the file in it."),
        (nothing, "does not exist. Check the path."),
        (empty, "run.yaml: empty"),
        (binary, "run.yaml: binary"),
        (large, "too large for a configuration"),
        (running, "run.yaml:2: a YAML tag that would run code"),
        (broken, "run.yaml:3: broken YAML"),
        (bomb, "more entries than a configuration has"),
        (trace, "run.sqlite: binary"),
        (notes, "no training command in it that we know"),
    ],
)
def test_a_file_that_is_no_configuration_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], said: str
) -> None:
    code, out, err = checked(make(tmp_path), capsys)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert said in err
    assert SECRET not in err
    assert not (tmp_path / SECRET).exists()


def config_as_log(where: Path) -> Path:
    return written(where, "other.yaml", BRIDGE)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (folder, "is a folder. Name the file in it."),
        (nothing, "does not exist. Check the path."),
        (empty, "is empty"),
        (binary, "is binary"),
        (trace, "is binary"),
    ],
)
def test_a_file_that_is_no_log_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], said: str
) -> None:
    code, out, err = checked(script(tmp_path), capsys, "--log", str(make(tmp_path)))
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert said in err


def test_a_text_that_is_no_log_is_named_and_the_configuration_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = checked(script(tmp_path), capsys, "--log", str(config_as_log(tmp_path)))
    assert code == 0
    assert "other.yaml holds no line that we know of a training run; everything else is judged" in " ".join(
        out.split()
    )


def test_a_text_that_is_no_configuration_is_named_and_the_log_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, "notes.txt", "we started it as always\n")
    log = written(tmp_path, "train.log", "\n".join(log_lines()))
    assert checked(config, capsys)[0] == 3
    code, out, _ = checked(config, capsys, "--log", str(log))
    assert code == 0
    assert "not read as a configuration" in " ".join(out.split())


def test_a_log_of_a_hundred_megabytes_is_read_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.log"
    long_line = b"x" * 1_000_000 + b"\n"
    with path.open("wb") as file:
        for _ in range(HUGE // 1_000_000):
            file.write(long_line)
        file.write("\n".join(log_lines()).encode())
    code, out, _ = checked(script(tmp_path), capsys, "--log", str(path))
    assert code == 0
    assert "4.00 s a step in the log (17 steady of 20 iterations)" in words(out)


def test_symptoms_that_cannot_be_read_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", "{", '["a"]', '{"budget_frac": "' + SECRET + '"}'):
        path = written(tmp_path, "s.json", text)
        code, out, err = checked(script(tmp_path), capsys, "--symptoms", str(path))
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert SECRET not in err
    assert checked(script(tmp_path), capsys, "--symptoms", str(tmp_path / "none"))[0] == 3


def test_what_is_wrong_in_a_file_is_listed_with_its_line_and_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BRIDGE.replace("  num_layers: 48", f"  num_layerz: {SECRET}\n  num_layers: {SECRET}")
    code, out, _ = checked(written(tmp_path, "run.yaml", text), capsys)
    assert code == 0
    said = words(out)
    assert "Cure: model.num_layers. Seen: in run.yaml:2." in said
    assert "- model.num_layers takes a whole number. Seen: run.yaml:3." in said
    assert SECRET not in out


def test_an_unknown_option_and_an_unknown_format_are_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script(tmp_path)
    for options in (["--nope"], ["-f", "csv"], ["--core-version", "new"], ["--ep", "0"]):
        code, out, err = checked(path, capsys, *options)
        assert (code, out) == (2, "")
        assert "Type moe-diag check-config --help." in err or "Give" in err


def test_an_input_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = script(tmp_path), log(tmp_path)
    for one in (path, said):
        before = one.read_bytes()
        code, _, _ = checked(path, capsys, "--log", str(said), "-o", str(one), "--force-overwrite")
        assert (code, one.read_bytes()) == (2, before)


def test_a_first_screen_has_forty_lines_and_eighty_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (path, options) in cases(tmp_path).items():
        _, short, _ = checked(path, capsys, *options)
        _, whole, _ = checked(path, capsys, *options, "--full")
        assert max(map(len, short.splitlines())) <= 80, name
        assert len(short.splitlines()) <= 40, name
        assert len(short) < len(whole), name
        assert any(one.startswith(("LEGAL", "NOT LEGAL")) for one in short.splitlines()[1:3]), name


def result_of(path: Path, *options: str) -> Result:
    files = dict(zip(options[::2], map(Path, options[1::2]), strict=True))
    return diagnoser.check_config(
        path,
        log=files.get("--log"),
        symptoms=files.get("--symptoms"),
        about={"gpu": "H100", "core_version": "0.16.1"},
        ask_megatron=False,
    ).result


def items(blocks: Sequence[Block]) -> Iterator[Items]:
    """Every list of a page, those in folds too."""
    for block in blocks:
        if isinstance(block, Items):
            yield block
        elif isinstance(block, Part | Fold):
            yield from items(block.blocks)


def test_one_defect_is_one_entry(tmp_path: Path) -> None:
    for name, (path, options) in cases(tmp_path).items():
        result = result_of(path, *options)
        ids = [one.id for one in defects(result) if one.id]
        assert len(ids) == len(set(ids)), name
        told = {*ids, *(one.id for one in result.workflow if not one.same_as)}
        assert {one.same_as for one in result.workflow if one.same_as} <= told, name
        text = plain(page(result, Detail.FIRST))
        assert all(text.count(f"{one}: ") == 1 for one in ids), name


def test_what_is_refused_comes_before_what_does_not_run_as_written_and_that_before_warnings(
    tmp_path: Path,
) -> None:
    text = ILLEGAL.replace(
        "  moe_token_dispatcher_type: alltoall",
        "  moe_token_dispatcher_type: alltoall\n  moe_flex_dispatcher_backend: hybridep",
    )
    result = result_of(written(tmp_path, "run.yaml", text))
    weights = [one.weight for one in defects(result)]
    assert weights == sorted(weights)
    assert {Weight.REJECTED, Weight.NOT_AS_WRITTEN} <= set(weights)
    assert len(first_errors(result)) == sum(one <= Weight.NOT_AS_WRITTEN for one in weights)


def test_every_rule_that_is_broken_says_which_values_it_judges_and_where_they_stand(tmp_path: Path) -> None:
    result = result_of(written(tmp_path, "run.yaml", ILLEGAL))
    said = words(plain(page(result, Detail.FULL)))
    assert "overlap_moe_expert_parallel_comm on (run.yaml:13)" in said
    assert "recompute_granularity full (run.yaml:14)" in said


def test_a_text_that_may_be_a_path_or_a_name_is_no_value_to_judge_by(tmp_path: Path) -> None:
    result = result_of(written(tmp_path, "run.yaml", ILLEGAL + "  save: /home/somebody/run\n"))
    configuration = known(result.configuration)
    assert configuration is not None
    hidden = {one.knob for one in configuration.settings if one.withheld}
    assert hidden
    assert not hidden & values_of(result).keys()


def test_a_legal_configuration_without_defects_has_nothing_to_fix_first(tmp_path: Path) -> None:
    result = result_of(script(tmp_path))
    assert (defects(result), first_errors(result)) == ((), ())


def test_memory_by_part_adds_up_to_its_total(tmp_path: Path) -> None:
    path, options = cases(tmp_path)["log"]
    result = result_of(path, *options)
    found = result.memory_estimate
    assert isinstance(found, MemoryEstimate)
    parts = (found.parameters_bytes, found.gradients_bytes, found.optimizer_bytes)
    rest = known(found.rest_bytes)
    assert rest is not None
    assert sum(parts) + found.activations_bytes + found.logits_bytes + rest == found.total_bytes
    said = words(plain(page(result, Detail.FULL)))
    assert f"total | {found.total_bytes / 1e9:.1f} | 100 %" in said


@pytest.mark.parametrize("name", ["illegal", "log"])
def test_a_report_reads_as_reviewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reviewed: Reviewed
) -> None:
    path, options = cases(tmp_path)[name]
    _, text, _ = checked(path, capsys, *options)
    assert text == reviewed(GOLDEN / f"check_config_{name}.txt", text)


def test_what_contradicts_is_named_once_and_no_plan_stands_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = cases(tmp_path)["contradicts"]
    text = words(checked(path, capsys, "--symptoms", str(symptoms(tmp_path)))[1])
    assert text.count("deepep is set as backend") == 1
    assert text.count("comm_overlap's own value") == 0
    assert "LEGAL, BUT DOES NOT RUN AS WRITTEN" in text
    assert "Fix first 1. CFG-flex-type:" in text
    assert "DO THIS" not in text


def test_the_numbers_are_those_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, options = cases(tmp_path)["log"]
    text = words(checked(path, capsys, *options)[1])
    assert "4.00 s a step in the log (17 steady of 20 iterations); peak memory 62.9 GB." in text
    assert "Throughput 8,190 tokens/s" in text  # 256 x 4096 tokens in 4 s on 32 GPUs
    assert "of 990 TFLOP/s (H100, bf16)" in text
    assert "Other shapes are no target for it." in words(checked(path, capsys, *options, "--full")[1])


def test_a_log_that_ran_out_of_memory_is_a_wall_with_a_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*log_lines()[:9], *crash("forward", last=out_of_memory())]
    full = written(tmp_path, "full.log", "\n".join(lines) + "\n")
    text = words(checked(script(tmp_path), capsys, "--log", str(full))[1])
    assert "Wall memory: the log reports that memory ran out in forward." in text
    assert "DO THIS" in text
    assert "[MEM-" in text


def test_the_whole_page_has_every_rule_once_unless_a_defect_tells_it(tmp_path: Path) -> None:
    path, options = cases(tmp_path)["judged"]
    result = result_of(path, *options)
    listed = [said(one) for block in items(page(result, Detail.FULL).blocks) for one in block.items]
    assert len(result.workflow) > 50
    for rule in result.workflow:
        told = sum(one.startswith(f"{rule.id}: {rule.title}:") for one in listed)
        assert told == (0 if rule.same_as else 1)


def test_the_api_gives_the_same_as_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, said = script(tmp_path), log(tmp_path)
    about = {"gpu": "H100", "core_version": "0.16.1"}
    for _ in range(2):  # a module of the same name would take the function's place at its first call
        found = diagnoser.check_config(path, log=said, about=about, ask_megatron=False).to_dict()
    assert found == json.loads(checked(path, capsys, "--log", str(said), "-f", "json")[1])
    judged = diagnoser.check_config(str(path), symptoms=symptoms(tmp_path), about=about, ask_megatron=False)
    assert judged.to_dict()["verdict"]["wall"] == "communication"
    with pytest.raises(InputError, match="does not exist"):
        diagnoser.check_config(tmp_path / "none.yaml")
    with pytest.raises(diagnoser.UsageError, match="nothing is known of 'gpus'"):
        diagnoser.check_config(path, about={"gpus": 8})


@pytest.mark.parametrize("command", [(), ("analyze",), ("check-config",)])
def test_help_teaches_by_examples_within_a_hundred_columns(command: tuple[str, ...]) -> None:
    wide = {**os.environ, "COLUMNS": "200"}
    line = [sys.executable, "-m", "diagnoser", *command, "--help"]
    shown = subprocess.run(line, capture_output=True, text=True, env=wide, cwd=ROOT, check=True)
    assert max(map(len, shown.stdout.splitlines())) <= 100
    assert shown.stdout.count("\n  moe-diag ") >= 4


def test_a_choice_of_the_guides_names_its_rule_why_and_the_other_edition(tmp_path: Path) -> None:
    chosen = Choice(
        "dispatcher",
        "deepep",
        "nvl8",
        "alltoall",
        ("--n 20",),
        ("--ep",),
        ("hybridep: too old",),
        reason="it is near",
        source="a guide",
        other_rule="small-ep",
        other_reason="it is small",
        before=("HST-1",),
        then=("attn",),
        never=("moe",),
    )
    result = replace(result_of(script(tmp_path)), choices=(chosen,))
    assert "dispatcher deepep. Why deepep, by nvl8: it is near." in words(plain(page(result, Detail.FIRST)))
    whole = words(plain(page(result, Detail.FULL)))
    for line in (
        "deepep. Rule nvl8: it is near. Could",
        "Its other edition chooses alltoall (rule small-ep: it is small).",
        "First: HST-1.",
        "Settings: --n 20.",
        "Then, one at a time after a test: attn.",
        "Never: moe.",
        "nvl8: it is near. Could change with: --ep.",
        "Ruled out: hybridep: too old.",
        "Source: a guide.",
    ):
        assert line in whole


@pytest.mark.parametrize("detail", Detail)
def test_no_string_of_a_configuration_moves_the_cursor_or_opens_markup(
    tmp_path: Path, detail: Detail
) -> None:
    for name, (path, options) in cases(tmp_path).items():
        hostile = planted(result_of(path, *options), "\x1b[31m<script>|*a*")
        text = write_text(page(hostile, detail), View())
        assert "\x1b" not in text, name
        assert "<script>" in text, name
        ticket = write_github(page(hostile, detail), View())
        assert not {"\x1b", "<script"} & {*re.findall(r"\x1b|<script", ticket)}, name


@pytest.mark.parametrize(
    ("variables", "cure"),
    [
        (["NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAINS=8"], "Give NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"),
        (["USE_MNNVL"], "NAME=VALUE"),
        ({"A": "1"}, "There are"),
    ],
)
def test_w17_a_variable_that_nothing_reads_is_refused_with_what_to_type(
    tmp_path: Path, variables: object, cure: str
) -> None:
    with pytest.raises(diagnoser.UsageError, match=cure):
        diagnoser.check_config(script(tmp_path), about={"env": variables})


def test_w17_a_variable_is_part_of_the_line_that_makes_the_result_again(tmp_path: Path) -> None:
    about = {"env": ["USE_MNNVL=1", "NVLINK_DOMAIN_SIZE=72"]}
    made = diagnoser.check_config(script(tmp_path), about=about, ask_megatron=False)
    assert made.result.given["env"] == ["USE_MNNVL=1", "NVLINK_DOMAIN_SIZE=72"]
    assert "--env USE_MNNVL=1 --env NVLINK_DOMAIN_SIZE=72" in str(made.result.command)
