"""`check-config` as a user meets it: exit codes, bad files, and reviewed reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import diagnoser
from diagnoser.cli import run
from diagnoser.options.requests import Check
from diagnoser.running.configuration import check_config
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from reports.content.analysis.check import page
from reports.content.check_defects import Weight, defects
from reports.content.page import Detail
from tests.configurations.check import ABOUT, BRIDGE, ILLEGAL, log, log_lines, script, written
from tests.places import GOLDEN, Reviewed
from tests.read_back.plain_page import plain

SECRET = "hunter2_sesame"


def checked(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = run(["check-config", str(path), *ABOUT, *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def words(text: str) -> str:
    return " ".join(text.split())


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


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "is a folder. Name the file in it."), ("none.yaml", "does not exist. Check the path.")],
)
def test_what_is_no_file_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    code, out, err = checked(tmp_path / name, capsys)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert said in err


def test_a_text_that_is_no_configuration_is_named_and_the_log_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, "notes.txt", "we started it as always\n")
    log = written(tmp_path, "train.log", "\n".join(log_lines()))
    assert checked(config, capsys)[0] == 3
    code, out, _ = checked(config, capsys, "--log", str(log))
    assert code == 0
    assert "not read as a configuration" in " ".join(out.split())


def test_symptoms_that_cannot_be_read_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("", "{", '["a"]', '{"budget_frac": "' + SECRET + '"}'):
        path = written(tmp_path, "s.json", text)
        code, out, err = checked(script(tmp_path), capsys, "--symptoms", str(path))
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert SECRET not in err
    assert checked(script(tmp_path), capsys, "--symptoms", str(tmp_path / "none"))[0] == 3


@pytest.mark.parametrize("name", ["illegal", "log"])
def test_a_report_reads_as_reviewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reviewed: Reviewed
) -> None:
    good, options = script(tmp_path), ("--log", str(log(tmp_path)))
    path = good if name == "log" else written(tmp_path, "illegal.yaml", ILLEGAL)
    _, text, _ = checked(path, capsys, *(options if name == "log" else ()))
    assert text == reviewed(GOLDEN / f"check_config_{name}.txt", text)


def test_a_text_that_may_be_a_path_is_withheld(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "run.yaml", BRIDGE + f"checkpoint:\n  save: /home/{SECRET}\n")
    out = words(checked(path, capsys, "--full")[1])
    assert "withheld: it may hold a path or a name" in out
    assert SECRET not in out


@pytest.mark.parametrize(("variables", "cure"), [
    (["NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAINS=8"], "Give NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN"),
    (["USE_MNNVL"], "NAME=VALUE"), ({"A": "1"}, "There are"),
])  # fmt: skip
def test_w17_a_variable_that_nothing_reads_is_refused_with_what_to_type(
    tmp_path: Path, variables: object, cure: str
) -> None:
    with pytest.raises(diagnoser.UsageError, match=cure):
        diagnoser.check_config(script(tmp_path), about={"env": variables})
