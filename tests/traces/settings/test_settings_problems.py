"""What a configuration has wrong, and files that are none. No value of the file is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.errors import MoeDiagError
from traces.settings.read import configuration_of, read_configuration
from traces.settings.settings import FileProblem, NotAConfiguration


def problems(text: str, name: str, core: str | None = None) -> tuple[FileProblem, ...]:
    return configuration_of(text, name, core).problems


SPELLED = (
    ("p.py --cuda-graph-scope attn", "a.sh", "0.18.0", "--cuda-graph-modules", "0.17.0"),
    ("p.py --moe-enable-deepep", "a.sh", "0.16.1", "--moe-flex-dispatcher-backend deepep", "0.15.3"),
    ("model.moe_deepep_num_sms=24", "a.txt", "0.19.0", "model.moe_flex_dispatcher_num_sms", "0.16.1"),
)
LACKED = (
    ("model.moe_combine_bwd_dtype=mxfp8", "a.txt", "0.19.2", "on Megatron-Core's main alone", "main"),
    ("p.py --moe-combine-bwd-dtype mxfp8", "a.sh", "0.19.2", "on Megatron-Core's main alone", "main"),
    ("model.moe_paged_stash=true", "a.txt", "0.17.1", "came with Megatron-Core 0.18", "main"),
    (
        "model.moe_router_score_function=sqrtsoftplus",
        "a.txt",
        "0.17.1",
        "came with Megatron-Core 0.18",
        "main",
    ),
    ("model.moe_use_legacy_grouped_gemm=true", "a.txt", "0.18.0", "left with Megatron-Core 0.17", "0.16.1"),
    ("p.py --moe-use-legacy-grouped-gemm", "a.sh", "0.18.0", "left with Megatron-Core 0.17", "0.16.1"),
)


@pytest.mark.parametrize(("text", "name", "core", "said", "other"), [*SPELLED, *LACKED])
def test_a_name_that_a_release_spells_otherwise_or_lacks_is_said_of_that_release_alone(
    text: str, name: str, core: str, said: str, other: str
) -> None:
    (found,) = problems(text, name, core)
    assert said in f"{found.instead}; {found.text}"
    assert problems(text, name, other) == ()
    assert problems(text, name) == ()


def test_a_name_is_a_slip_of_one_whose_own_name_is_near_and_that_takes_the_value() -> None:
    meant = {
        "recipe=llama3_70b": "",
        "recipe=mxfp8": "model.fp8_recipe",
        "hidden_sizes=8": "model.hidden_size",
    }
    for line, near in meant.items():
        assert [one.instead for one in problems(f"model.num_layers=4\nmodel.{line}", "a.txt")] == [near]


@pytest.mark.parametrize("core", ["0.18.0", "0.19.2", None])
@pytest.mark.parametrize(
    "text",
    [
        "model.cuda_graph_scope=[attn]\nmodel.cuda_graph_modules=[moe_router]",
        "model.cuda_graph_modules=[moe_router]\nmodel.cuda_graph_scope=[attn]",
        "python pretrain_gpt.py --cuda-graph-scope attn --cuda-graph-modules moe_router",
    ],
)
def test_two_names_of_one_setting_are_refused_in_either_order(text: str, core: str | None) -> None:
    stops = [one for one in problems(text, "a.txt", core) if one.effect == "stops"]
    assert ["refuses both together" in one.text for one in stops] == [True]
    alone = text.replace("[moe_router]", "[]").replace(" --cuda-graph-modules moe_router", "")
    assert [one for one in problems(alone, "a.txt", core) if one.effect == "stops"] == []


@pytest.mark.parametrize(
    "text",
    [
        "model.num_layers=s3cr3t-many", "model.moe_grouped_gemm=s3cr3t", "model.moe_aux_loss_coeff=s3cr3t",
        "model.moe_token_dispatcher_type=s3cr3t", "model.recompute_modules=[moe_act,s3cr3t]",
        "model.moe_layer_freq=[s3cr3t]", "model.pipeline_model_parallel_layout=s3cr3t",
        "model.num_layers={a: 1}",
    ],
)  # fmt: skip
def test_a_wrong_type_leaves_the_knob_unknown_and_is_not_repeated(text: str) -> None:
    found = configuration_of(text, "a.txt")
    assert found.settings.by_knob == {}
    assert len(found.problems) == 1
    assert "s3cr3t" not in str(found.problems)


def test_layers_of_a_layout_that_are_of_no_kind_give_no_layout() -> None:
    (found,) = problems(
        "model:\n  pipeline_model_parallel_layout: [[embedding, nothing], [loss]]\n", "a.yaml"
    )
    assert found.text.startswith("model.pipeline_model_parallel_layout takes ")


@pytest.mark.parametrize(("text", "line"), [
    ("model:\n  x: !!python/object/apply:os.system ['true']\n", 2),
    ("model:\n  num_layers: 4\n  y: !!python/name:os.system\n", 3), ("model: !include other.yaml\n", 1),
    ("model:\n  num_layers: [4\n", 3), ("model:\n\t- a: b: c\n", 2),
])  # fmt: skip
def test_yaml_that_is_broken_or_asks_for_code_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(NotAConfiguration, match=rf"^a\.yaml:{line}: "):
        configuration_of(text, "a.yaml")


@pytest.mark.parametrize(
    "raw", [b"", b"  \n\n", b"\x00\x01\x02", b"\x7fELF" + bytes(range(256)), b"just words"]
)
def test_a_file_that_is_no_configuration_is_refused_in_one_line(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_bytes(raw)
    with pytest.raises(NotAConfiguration, match=r"^some\.txt: .*give ") as caught:
        read_configuration(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(NotAConfiguration, match="cannot be read"):
        read_configuration(tmp_path / "none.yaml")


FILES = st.sampled_from(["a.yaml", "a.json", "a.sh", "a.txt"])
SHELL = st.text(st.sampled_from("ab$#{}()[]'\"\\ \n=;|&<>`-+*:!,.~%@\t0"), max_size=60)


def error_of(text: str, name: str) -> str:
    """One line of ours, or nothing; anything else ends the test."""
    try:
        configuration_of(text, name)
    except MoeDiagError as error:
        return str(error)
    return ""


@given(text=st.one_of(st.text(max_size=80), SHELL), name=FILES)
def test_no_text_raises_anything_but_our_errors(text: str, name: str) -> None:
    assert "\n" not in error_of(text, name)
    assert "\n" not in error_of(f"A={text}\npython pretrain_gpt.py --bf16 {text}\n", "a.sh")


def test_brackets_without_end_are_no_error_but_ours() -> None:
    for text in ("A=(\n" * 2000, "[" * 2000, '("${' * 2000, "model: " + "{a: " * 2000, "run $((((" * 2000):
        for name in ("a.sh", "a.yaml"):
            assert error_of(text, name)


LM_COMMAND = "torchrun pretrain_gpt.py --num-layers 4 --bf16"
BRIDGE_COMMAND = "python scripts/performance/run_script.py -m qwen -g gb300"


@pytest.mark.parametrize(("command", "core"), [
    (f"{LM_COMMAND} --moe-token-dispatcher-type deepep", "0.18.2"),
    (f"{LM_COMMAND} --moe-router-score-function sqrtsoftplus", "0.17.1"),
    (f"{LM_COMMAND} --moe-router-load-balancing-type aux_loss quantile_balancing", "0.18.2"),
    (f"{BRIDGE_COMMAND} --cuda_graph_impl full_iteration", "0.18.2"),
    (f"{BRIDGE_COMMAND} --compute_dtype fp8", "0.18.2"), (f"{BRIDGE_COMMAND} -g h200", "0.18.2"),
])  # fmt: skip
def test_a_word_at_which_the_parser_stops_is_told_so(command: str, core: str) -> None:
    assert [one.effect for one in problems(command, "run.sh", core)] == ["stops"]


def test_a_value_from_outside_a_script_is_a_note_and_of_a_path_enough() -> None:
    read = configuration_of(
        "torchrun pretrain_gpt.py --micro-batch-size ${MBS} --data-path ${DATA} --save ${CKPT}"
        " --num-layers-per-virtual-pipeline-stage ${EACH} --num-query-groups ${GROUPS}",
        "run.sh",
        "0.18.2",
    )
    flags = ["--micro-batch-size", "--num-layers-per-virtual-pipeline-stage", "--num-query-groups"]
    assert [one.text.partition(":")[0] for one in read.problems if not one.instead] == flags
    assert read.settings.value("checkpoint.save") == read.settings.value("data.path") == "given"
    unknown = {"train.micro_batch_size", "virtual_pipeline_model_parallel_size", "num_query_groups"}
    assert unknown.isdisjoint(read.settings.by_knob)
