"""What `check-config` answers: a fact that it waits for is in the headline, and nothing unread is legal."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnoser import check_config
from diagnoser.cli import run
from diagnoser.diagnosis import Diagnosis
from tests.configurations.check import BRIDGE
from traces.missing import known
from traces.names.gpus import products

NCCLEP = BRIDGE.replace(
    "moe_token_dispatcher_type: alltoall",
    "moe_token_dispatcher_type: flex\n  moe_flex_dispatcher_backend: ncclep\n"
    "  moe_expert_rank_capacity_factor: 1.5\n  use_transformer_engine_op_fuser: true",
)
NEWEST = {
    "core_version": "0.19.2", "bridge_version": "0.6.2", "torch_version": "2.11.0", "te_version": "2.12",
}  # fmt: skip


def checked(folder: Path, text: str, **about: str) -> Diagnosis:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return check_config(path, about=about, ask_megatron=False)


def headline(diagnosis: Diagnosis) -> str:
    return diagnosis.text().splitlines()[2].partition("  ")[0]


@pytest.mark.parametrize(
    ("gpu", "label"), [(None, "LEGAL ONLY IF THE GPU ALLOWS IT"), ("A100", "NOT LEGAL"), ("H100", "LEGAL")]
)
def test_a_value_that_some_gpus_refuse_is_legal_only_once_the_gpu_is_said(
    tmp_path: Path, gpu: str | None, label: str
) -> None:
    diagnosis = checked(tmp_path, NCCLEP, **NEWEST, **({"gpu": gpu} if gpu else {}))
    assert headline(diagnosis) == label
    assert ("Waits for  --gpu-model: ncclep runs on" in diagnosis.text()) == (gpu is None)


@pytest.mark.parametrize("gpu", products())
def test_what_is_given_is_not_asked_for(tmp_path: Path, gpu: str) -> None:
    said = " ".join(checked(tmp_path, NCCLEP, **NEWEST, gpu=gpu).text(full=True).split())
    for asked in ("GPU is unknown", "Give: --gpu-model", "give --gpu-model", "Missing input: --gpu-model."):
        assert asked not in said


@pytest.mark.parametrize("text", [
    "hidden_size: 2048\nnum_hidden_layers: 48\nmodel_type: qwen3_moe\ntorch_dtype: bfloat16\n",
    "train:\n  epochs: 3\n  lr: 0.1\nmodel:\n  hidden_size: 128\n  backbone: resnet\n", "- 1\n- 2\n",
    "base_model: x\nsequence_len: 2048\nmicro_batch_size: 2\nnum_epochs: 3\nadapter: lora\n",
])  # fmt: skip
def test_a_file_of_which_most_is_unknown_is_not_called_legal(tmp_path: Path, text: str) -> None:
    diagnosis = checked(tmp_path, text)
    configuration = known(diagnosis.result.configuration)
    assert configuration is not None
    assert known(configuration.legal) is None
    assert headline(diagnosis) == "READ IN PART"
    assert diagnosis.to_dict()["configuration"]["legal"] is None
    assert run(["check-config", str(tmp_path / "run.yaml"), "--no-megatron"]) == 0
