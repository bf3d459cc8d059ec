"""Spellings that people paste beside the usual ones: lists of overrides, groups of flags, shell scripts."""

from __future__ import annotations

import pytest

from traces.settings.read import configuration_of
from traces.settings.settings import NotAConfiguration, Settings

RECIPE = "python run_script.py -m qwen -mr qwen3_235b_a22b -g gb300 -c bf16"
OUTSIDE = "its value comes from outside the file, so that it stays unknown"


def read(text: str, name: str = "run.sh") -> tuple[Settings, list[tuple[str, str]]]:
    """A file's settings, and its problems with what to write instead."""
    found = configuration_of(text, name)
    return found.settings, [(one.text, one.instead) for one in found.problems]


def test_a_list_of_overrides_is_read_and_what_is_none_is_named() -> None:
    settings, problems = read("- model.num_moe_experts=8\n- something else\n", "a.yaml")
    assert settings.value("num_moe_experts") == 8
    assert problems == [("no override of Megatron-Bridge", "group.name=value")]


def test_a_functional_test_sets_flags_and_its_environment() -> None:
    groups = "MODEL_ARGS:\n  --bf16: true\n  --num-experts: false\nENV_VARS:\n  {}: 1\n  OTHER: 2\n"
    settings, problems = read(groups.format("CUDA_DEVICE_MAX_CONNECTIONS"), "a.yaml")
    assert settings.value("bf16") is True
    assert settings.value("env.CUDA_DEVICE_MAX_CONNECTIONS") == "1"
    assert settings.value("num_moe_experts") is None
    assert problems == []


def test_a_whole_number_may_be_a_list_of_one_and_no_dumped_object() -> None:
    settings, problems = read("model:\n  num_layers: {_target_: x.y}\n  num_moe_experts: [8]\n", "a.yaml")
    assert settings.value("num_moe_experts") == 8
    assert problems == [("model.num_layers takes a plain value", "")]


def test_flags_of_bridges_scripts_with_dashes_are_none() -> None:
    _, problems = read(f"{RECIPE} -ng 256 --moe-a2a-overlap true")
    assert problems == [("--moe-a2a-overlap: no flag of Bridge's scripts that we know", "--moe_a2a_overlap")]


def test_what_a_variable_from_outside_sets_is_unknown() -> None:
    settings, problems = read(
        f"{RECIPE} -ng $N -mb=2 model.num_layers=$Y --custom_env_vars A,NCCL_NVLS_ENABLE=1"
    )
    assert settings.value("train.micro_batch_size") == 2
    assert settings.value("env.NCCL_NVLS_ENABLE") == "1"
    assert problems == [(f"model.num_layers: {OUTSIDE}", ""), (f"--num_gpus: {OUTSIDE}", "")]
    assert "world_size" not in settings
    assert "num_layers" not in settings


def test_tasks_and_flags_without_a_value_are_read_for_what_they_say() -> None:
    settings, problems = read(
        "srun -N4 -n32 python pretrain_gpt.py --bf16 --num-layers 4 --recompute-modules --num-experts\n"
    )
    assert settings.value("world_size") == 32
    assert settings.value("recompute_modules") == ()
    assert problems == [("--num-experts has no value", "the value behind it")]


@pytest.mark.parametrize(
    "text",
    [
        'eval "python pretrain_gpt.py --bf16 --num-layers 4"',
        "FLAGS='--num-layers 4'\nexport FLAGS\npython pretrain_gpt.py --bf16 ${FLAGS}",
        "FLAGS='--num-layers 4'\ndeclare -x FLAGS\nA=(--bf16)\npython pretrain_gpt.py ${A[@]} ${FLAGS[@]}",
    ],
)
def test_a_shell_says_the_same_in_several_ways(text: str) -> None:
    settings, problems = read(text)
    assert (settings.value("bf16"), settings.value("num_layers")) == (True, 4)
    assert problems == []


def test_only_one_training_command_of_a_file_is_read_and_the_other_named() -> None:
    command = "python pretrain_gpt.py --bf16 --num-layers {} --hidden-size 64 --num-attention-heads 4\n"
    settings, problems = read(command.format(4) + command.format(8))
    assert settings.value("num_layers") in (4, 8)
    assert problems == [("another training command, which was not read", "one a file")]


def test_layers_of_a_layout_that_are_of_no_kind_give_no_layout() -> None:
    _, problems = read("model:\n  pipeline_model_parallel_layout: [[embedding, nothing], [loss]]\n", "a.yaml")
    assert [text.startswith("model.pipeline_model_parallel_layout takes ") for text, _ in problems] == [True]


def test_a_yaml_of_a_trainer_that_does_not_use_megatron_is_no_configuration() -> None:
    with pytest.raises(NotAConfiguration):
        read("policy:\n  dtensor_cfg:\n    enabled: true\ngrpo:\n  steps: 3\n", "a.yaml")
