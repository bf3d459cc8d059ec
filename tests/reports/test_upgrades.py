"""An upgrade in a plan, as it is shown and as a patch has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import diagnoser
from heuristics.result.result import Result
from reports.content.analysis.plan import plan
from reports.emit import emit_config
from tests.configurations.check import symptoms, written

CONFIGURATION = """\
model:
  num_moe_experts: 128
  moe_grouped_gemm: true
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 1
  expert_model_parallel_size: 8
  expert_tensor_parallel_size: 1
  moe_token_dispatcher_type: alltoall
  moe_shared_expert_overlap: false
  mtp_num_layers: null
  recompute_granularity: null
  bf16: true
"""


@pytest.fixture
def upgrading(tmp_path: Path) -> Result:
    """A run whose exchanges cost 26 %, and whose PyTorch is too old to hide them."""
    return diagnoser.check_config(
        written(tmp_path, "bridge.yaml", CONFIGURATION),
        symptoms=symptoms(tmp_path),
        about={"gpu": "H100", "core_version": "0.17.0", "torch_version": "2.5.1", "te_version": "2.14"},
        ask_megatron=False,
    ).result


def test_an_upgrade_is_shown_with_the_fix_that_stands_on_it(upgrading: Result) -> None:
    shown = plan(upgrading, 1).steps
    assert [one.id for one in shown] == ["ENV-1", "COM-1"]
    assert shown[1].after == ("ENV-1",)


def test_the_patch_of_a_plan_that_an_upgrade_leads_is_that_of_the_fix(upgrading: Result) -> None:
    text = emit_config("bridge", upgrading)
    assert "# First: ENV-1 Upgrade to PyTorch 2.6.0 or later" in text
    assert "overlap_moe_expert_parallel_comm: true" in text
