"""At names that Megatron-LM does not know it stops; own scripts are free."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser.cli import run

BASE = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1"


@pytest.mark.parametrize(("program", "code"), [("pretrain_gpt.py", 1), ("my_train.py", 0)])
def test_check_config_ends_with_1_at_a_name_that_stops_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, code: int
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"torchrun {program} {BASE} --overlap-grad-reduc\n", encoding="utf-8")
    assert run(["check-config", str(path), "--no-megatron"]) == code
    assert "--overlap-grad-reduc: no flag of Megatron-LM" in " ".join(capsys.readouterr().out.split())
