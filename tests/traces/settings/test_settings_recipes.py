"""What Bridge's performance scripts make of a recipe and its flags, by release."""

from __future__ import annotations

import pytest

from traces.settings.knobs import data, knobs
from traces.settings.read import configuration_of
from traces.settings.settings import Settings, Value

QWEN = "python run_script.py -m qwen -mr qwen3_235b_a22b -g gb300 -c bf16 -ng 256"
DISPATCHER, BACKEND = "moe_token_dispatcher_type", "moe_flex_dispatcher_backend"


def _read(text: str, core: str | None = None) -> Settings:
    return configuration_of(text, "run.sh", core).settings


def test_what_a_recipe_sets_is_configured_and_a_flag_wins_over_it() -> None:
    settings = _read(QWEN)
    assert (settings.value(DISPATCHER), settings.value(BACKEND)) == ("flex", "hybridep")
    assert settings.value("cuda_graph_modules") == ("attn", "moe_router", "moe_preprocess")
    assert settings.value("comm_overlap.overlap_moe_expert_parallel_comm") is False
    without = _read(QWEN + " --moe_flex_dispatcher_backend None --cuda_graph_impl none")
    assert (without.value(DISPATCHER), without.value(BACKEND)) == ("alltoall", None)
    assert without.value("cuda_graph_impl") == "none"
    assert "cuda_graph_modules" not in without


def test_what_older_recipes_set_beyond_their_layout_is_unknown() -> None:
    settings = _read(QWEN, "0.18.2")
    assert settings.value("pipeline_model_parallel_size") == 4
    assert DISPATCHER not in settings
    assert "comm_overlap.overlap_moe_expert_parallel_comm" not in settings


@pytest.mark.parametrize(
    ("gpu", "core", "dispatcher", "backend"),
    [
        ("h100", "0.19.0", "flex", "deepep"),
        ("gb300", "0.19.0", "alltoall", None),
        ("gb300", None, "alltoall", None),
        ("gb300", "0.18.2", None, None),
        ("h100", "0.18.2", "flex", "deepep"),
    ],
)
def test_the_scripts_fall_back_from_deepep_by_gpu_and_release(
    gpu: str, core: str | None, dispatcher: Value, backend: Value
) -> None:
    settings = _read(QWEN.replace("gb300", gpu) + " --moe_flex_dispatcher_backend deepep", core)
    assert (settings.value(DISPATCHER), settings.value(BACKEND)) == (dispatcher, backend)
    assert ("launcher.flex_backend" in settings) == (gpu == "gb300")


def test_every_recipe_that_sets_more_has_a_layout() -> None:
    tables = data("harness_recipes.toml")
    layouts, own = tables["layouts"], tables["own"]
    assert isinstance(layouts, list)
    assert isinstance(own, list)
    there = {
        (name, gpu, str(ranks), one) for name, gpu, ranks, several, *_ in layouts for one in several.split()
    }
    rows = [
        (name, gpu, count, one)
        for name, gpu, counts, several, *_ in own
        for count in counts.split()
        for one in several.split()
    ]
    assert len(rows) == len({*rows})
    assert {*rows} <= there
    assert {module for *_, recompute in own for module in recompute.split()} <= {
        *knobs()["recompute_modules"].choices
    }


@pytest.mark.parametrize(
    ("task", "core", "stops"),
    [
        ("lora", "0.19.0", 1),
        ("peft", "0.19.0", 0),
        ("lora", "0.18.2", 0),
        ("peft", "0.18.2", 1),
        ("lora", None, 0),
    ],
)
def test_a_task_is_one_of_its_release(task: str, core: str | None, stops: int) -> None:
    command = (
        f"python scripts/performance/run_script.py -m qwen -mr qwen3_30b_a3b --task {task} -g h100 -ng 16"
    )
    read = configuration_of(command, "run.sh", core)
    assert sum(one.effect == "stops" for one in read.problems) == stops


@pytest.mark.parametrize(
    ("flags", "length"), [("", None), ("--data rp2", 2048), ("--data rp2 --seq_length 8192", None)]
)
def test_the_scripts_give_a_dataset_the_length_of_the_model_unless_its_data_have_one(
    flags: str, length: int | None
) -> None:
    settings = _read(f"{QWEN} {flags} model.seq_length=4096 dataset.sequence_length=2048")
    assert settings.value("dataset.sequence_length") == length
