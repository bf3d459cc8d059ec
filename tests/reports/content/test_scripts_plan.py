"""The plan of a run of Megatron-Bridge's performance scripts: their flags, and what these replace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diagnoser.cli import run

_COMMAND = (
    "python scripts/performance/setup_experiment.py -m deepseek -mr deepseek_v3 -g gb200 -c bf16 -ng 256"
    " -gn 4 --cuda_graph_impl none\n"
)
_IDLE = {"budget_frac": {"compute": 0.6, "exposed_comm": 0.05, "exposed_copy": 0.0, "idle": 0.35}}
_SPLIT = {"exposed_comm_by_kind_frac": {"tp": 0.05}, "absent_frac": {"launch_starved": 0.3}}


def test_flags_of_the_scripts_are_printed_with_the_flag_that_they_replace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, figures = tmp_path / "run.sh", tmp_path / "symptoms.json"
    command.write_text(_COMMAND, encoding="utf-8")
    figures.write_text(json.dumps(_IDLE | _SPLIT), encoding="utf-8")
    about = ["--core-version", "0.18.2", "--gpu-model", "GB200", "--no-megatron", "--full"]
    assert run(["check-config", str(command), "--symptoms", str(figures), *about]) == 0
    text = capsys.readouterr().out
    plan = text[text.index("in this order") : text.index("WHAT THE GUIDES")]
    assert "--cuda_graph_impl transformer_engine" in plan
    assert "model.cuda_graph_impl" not in plan
    assert "In place of: --cuda_graph_impl none (run.sh:1)" in plan
