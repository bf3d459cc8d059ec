"""At names that Megatron-LM does not know it stops; older names are no defect; own scripts are free."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser.cli import run
from heuristics.findings.contradictions import misspelled
from traces.settings.names import shown
from traces.settings.read import configuration_of

BASE = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1"


@pytest.mark.parametrize(
    ("program", "flags", "core", "states"),
    [
        ("pretrain_gpt.py", "--num-experts 8 --moe-grouped-gem", "0.18.2", ["illegal"]),
        ("my_train.py", "--num-experts 8 --moe-grouped-gem", "0.18.2", ["misspelled"]),
        ("pretrain_gpt.py", "--tensor_model_parallel_size 2", "0.18.2", ["illegal"]),
        ("pretrain_gpt.py", "--our-own-switch", "0.18.2", []),
        ("pretrain_gpt.py", "--moe-flex-dispatcher-backend deepep", "0.14.0", ["illegal"]),
        ("pretrain_gpt.py", "--cuda-graph-scope attn", "0.18.2", []),
        ("pretrain_gpt.py", "--cuda-graph-scope attn", "0.16.1", []),
        ("pretrain_gpt.py", "--use-custom-fsdp", "0.18.2", ["illegal"]),
    ],
)
def test_megatron_lms_own_programs_stop_at_names_they_do_not_know(
    program: str, flags: str, core: str, states: list[str]
) -> None:
    read = configuration_of(f"torchrun {program} {BASE} {flags}\n", "run.sh", core)
    assert [one.state for one in misspelled(read.problems)] == states


@pytest.mark.parametrize(
    ("flag", "core", "newer"),
    [
        ("--cuda-graph-scope attn", "0.18.2", "--cuda-graph-modules since Megatron-Core 0.18"),
        ("--moe-enable-deepep", "0.16.1", "--moe-flex-dispatcher-backend deepep since Megatron-Core 0.16"),
        ("--enable-cuda-graph", "0.15.0", "--cuda-graph-impl local since Megatron-Core 0.15"),
    ],
)
def test_an_older_name_that_is_taken_still_names_the_newer_one(flag: str, core: str, newer: str) -> None:
    (problem,) = configuration_of(f"torchrun pretrain_gpt.py {BASE} {flag}\n", "run.sh", core).problems
    assert problem.effect == "older_name"
    assert f"older name of {newer}" in problem.text


def test_a_slip_of_a_known_word_is_printed_whole_and_other_words_are_not() -> None:
    assert shown("--moe-grouped-gem", "--moe-grouped-gemm") == "--moe-grouped-gem"
    assert shown("--moe-grouped-hunter2", "--moe-grouped-gemm") == "--moe-grouped-..."


@pytest.mark.parametrize(("program", "code"), [("pretrain_gpt.py", 1), ("my_train.py", 0)])
def test_check_config_ends_with_1_at_a_name_that_stops_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, code: int
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"torchrun {program} {BASE} --overlap-grad-reduc\n", encoding="utf-8")
    assert run(["check-config", str(path), "--no-megatron"]) == code
    assert "--overlap-grad-reduc: no flag of Megatron-LM" in " ".join(capsys.readouterr().out.split())
