"""`moe-diag plan`: models by name or from a configuration, what is asked for and missing, every format."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import diagnoser
from diagnoser.cli import run

YAML = """
model:
  num_layers: 48
  hidden_size: 2048
  ffn_hidden_size: 6144
  num_attention_heads: 32
  num_query_groups: 4
  kv_channels: 128
  vocab_size: 151936
  gated_linear_unit: true
  share_embeddings_and_output_weights: false
  num_moe_experts: 128
  moe_router_topk: 8
  moe_ffn_hidden_size: 768
  seq_length: 4096
  tensor_model_parallel_size: 4
  sequence_parallel: true
  pipeline_model_parallel_size: 2
  expert_model_parallel_size: 4
  expert_tensor_parallel_size: 1
  moe_token_dispatcher_type: alltoall
train:
  global_batch_size: 512
  micro_batch_size: 1
"""


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_the_own_layout_of_a_configuration_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(YAML)
    assert run(["plan", str(path), "--gpu-model", "H100", "--gpus", "16"]) == 0
    assert "yours" in said(capsys)
    found = diagnoser.plan(str(path), gpus=16, about={"gpu": "H100"})
    own = [one for one in found.result.layouts if one.own]
    assert [(one.tp, one.pp, one.ep, one.etp, one.dispatcher) for one in own] == [(4, 2, 4, 1, "alltoall")]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["Qwen3-30B-A4B", "--gpu-model", "H100", "--gpus", "16"], "Did you mean Qwen3-30B-A3B"),
        (["Nemotron-3-Nano", "--gpu-model", "H100", "--gpus", "16"], "Mamba layers are not counted"),
        (["Qwen3-30B-A3B", "--gpus", "16"], "--gpu-model"),
        (["Qwen3-30B-A3B", "--gpu-model", "H100"], "--gpus"),
        (["Qwen3-30B-A3B", "--gpu-model", "H1000", "--gpus", "8"], "no GPU that we know"),
        (
            ["Qwen3-30B-A3B", "--gpu-model", "H100", "--gpus", "53", "--global-batch", "64"],
            "no layout divides 53 GPUs",
        ),
        (["Qwen3-30B-A3B", "--gpu-model", "H100", "--gpus", "0"], "--gpus 0 is no size"),
    ],
)
def test_what_is_missing_or_wrong_is_named_with_what_to_type(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *words]) == 2
    assert part in capsys.readouterr().err


def test_nothing_that_fits_ends_with_1_and_the_least_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "DeepSeek-V3", "--gpu-model", "H100", "--gpus", "8"]) == 1
    assert "NO LAYOUT FITS" in said(capsys)


NEMO_RL = """
policy:
  model_name: Qwen/Qwen3-30B-A3B
  train_global_batch_size: 512
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  megatron_cfg: {tensor_model_parallel_size: 2, moe_token_dispatcher_type: alltoall, moe_enable_deepep: true}
"""


@pytest.mark.parametrize(
    ("config", "starts"),
    [("", ("--", "model.")), (YAML, ("model.",)), (NEMO_RL, ("policy.",))],
)
def test_what_is_printed_is_pasted_as_the_words_of_its_lines_in_the_dialect_of_the_file(
    config: str, starts: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(config)
    words = ["plan", str(path) if config else "DeepSeek-V3", "--gpu-model", "B300", "--gpus", "64"]
    assert run([*words, "-f", "json"]) == 0
    counted, layouts = map(json.loads(said(capsys)).get, ("counted", "layouts"))
    assert counted["fit"] >= len(layouts) - 1 > 0  # but for the own one, which deepep beside alltoall refuses
    assert run([*words, "--full"]) == 0
    lines = said(capsys).replace("\\\n", " ").splitlines()
    pasted = [shlex.split(line) for line in lines if line.startswith(tuple(map("  {}".format, starts)))]
    for layout in layouts:
        spelled = filter(None, (layout["knobs"]["megatron_lm"], layout["knobs"]["megatron_bridge"]))
        wanted = [shlex.split(" ".join(line for line in one if line[0] != "(")) for one in spelled]
        assert len(wanted) == len(starts)
        assert all(one in pasted for one in wanted if one)
