"""What is asked of megatron-core, what its words mean, and workers that do not answer; none needs it here."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from diagnoser import megatron as check
from heuristics.config.about import Given
from heuristics.rules.megatron.answer import (
    LONGEST,
    accepted,
    failure,
    needs,
    no_such_knob,
    refusal,
    rejected,
)
from heuristics.rules.megatron.request import NotAsked, Request, request_of
from heuristics.run.run import Run
from traces.limits import Limit
from traces.settings.settings import Framework, Value, settings
from traces.training_log.log import TrainingLog

ODD = "Invalid choices: {'mla', 'sk-Live0123456789'}"
PLAIN = Request({"num_layers": 2}, world_size=8)


def asked(
    values: Mapping[str, Value], framework: Framework | None = None, about: Given | None = None
) -> Request:
    request = request_of(Run(given=about or Given(), settings=settings(values, "test", framework)))
    assert isinstance(request, Request)
    return request


def test_only_fields_of_core_are_asked() -> None:
    others: dict[str, Value] = {"seq_length": 4096, "ddp.bucket_size": 1, "env.NCCL_DEBUG": "INFO"}
    request = asked({"mixed_precision": "bf16_mixed", **others})
    assert {*others, "ddp.grad_reduce_in_fp32"} & set(request.fields) == set()
    assert request.fields["bf16"] is True


def test_sizes_nobody_said_are_legal_and_named() -> None:
    request = asked(
        {
            "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 2,
            "virtual_pipeline_model_parallel_size": 3, "expert_model_parallel_size": 8,
            "expert_tensor_parallel_size": 1, "moe_router_topk": 10,
        }
    )  # fmt: skip
    sizes = {name: request.fields[name] for name in request.assumed_sizes if name != "world_size"}
    assert sizes == {"num_attention_heads": 4, "hidden_size": 512, "num_layers": 6, "num_moe_experts": 16}
    assert request.world_size == 16  # TP4 beside ETP1 x EP8: 8 ranks, on 2 stages
    assert "world_size" in request.assumed_sizes
    said = asked({"bf16": True, "world_size": 8})
    assert said.world_size == 8
    assert "world_size" not in said.assumed_sizes


def test_options_are_assumed_only_where_a_file_may_leave_them_out() -> None:
    moe: dict[str, Value] = {"expert_model_parallel_size": 8}
    assert asked(moe).fields["moe_token_dispatcher_type"] == "alltoall"
    assert "bf16" in asked(moe, "megatron_bridge").assumed_options
    assert asked(moe, "megatron_lm").assumed_options == ()
    assert "add_bias_linear" not in asked({"tensor_model_parallel_size": 2}).assumed_options


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"mixed_precision": "bf16_with_mxfp8_mixed"}, "fp8_recipe", "mxfp8"),
        ({"mixed_precision": "fp16_mixed", "bf16": True}, "bf16", False),
        ({"mixed_precision": "bf16_with_fp8_current_scaling_mixed", "mixed_precision.fp8_recipe": "b"},
         "fp8_recipe", "b"),
        ({"comm_overlap.delay_wgrad_compute": True}, "delay_wgrad_compute", True),
        ({"comm_overlap.tp_comm_overlap": True, "overlap_moe_expert_parallel_comm": True},
         "overlap_moe_expert_parallel_comm", False),
        ({"comm_overlap.tp_comm_overlap": None, "tp_comm_overlap": True}, "tp_comm_overlap", True),
    ],
)  # fmt: skip
def test_sections_of_bridge_win_over_the_model(said: dict[str, Value], field: str, value: Value) -> None:
    assert asked(said, "megatron_bridge").fields[field] == value


def test_a_list_that_is_written_as_one_text_is_asked_by_its_names() -> None:
    for text in ("moe_act layernorm", "moe_act,layernorm"):
        assert asked({"recompute_modules": text}).fields["recompute_modules"] == ("moe_act", "layernorm")


def test_virtual_stages_are_counted_from_the_layers_in_each() -> None:
    stages, layers_of_each = "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage"
    for count, virtual in ((2, 2), (4, None)):
        said = {"num_layers": 16, "pipeline_model_parallel_size": 4, layers_of_each: count}
        assert asked(said).fields[stages] == virtual
        assert asked({**said, stages: 3}).fields[stages] == 3
    assert stages not in asked({"bf16": True, layers_of_each: 2}).fields


def test_what_the_runs_release_does_not_have_is_not_passed_to_another() -> None:
    said: dict[str, Value] = {"bf16": True, "moe_paged_stash": True}
    older, newer = (asked(said, about=Given(core_version=core)).fields for core in ("0.16.1", "0.19.2"))
    later = {"gtp_weight_remat_size", "moe_combine_bwd_dtype", "high_priority_a2a_comm_stream"}
    assert (later & set(older), older["moe_paged_stash"]) == (set(), True)
    assert later & set(newer) == set()


def test_latent_attention_shows_in_its_ranks_and_brings_its_fields() -> None:
    latent = asked({"kv_lora_rank": 512, "rotary_base": 10000}).fields
    assert (latent["multi_latent_attention"], latent["rotary_base"]) == (True, 10000)
    assert "rotary_base" not in asked({"rotary_base": 10000, "bf16": True}).fields


def test_packages_are_those_that_were_given_then_of_the_log_and_their_versions_are_numbers() -> None:
    log = TrainingLog("log", 1, versions={"te": "2.9.0+abc", "core": "core_v0.16.1rc0"})
    run = Run(settings=settings({"bf16": True}, "log"), log=log)
    request = request_of(run)
    assert isinstance(request, Request)
    assert (request.te_version, request.core_version, request.flex_package) == ("2.9.0", "0.16.1", False)
    about = Given(te_version="2.12", bridge_version="0.4.1", flex_package=True)
    given = request_of(replace(run, given=about))
    assert isinstance(given, Request)
    assert (given.te_version, given.core_version, given.flex_package) == ("2.12.0", "0.17.0", True)
    assert asked({"bf16": True}, about=Given(te_version="no number")).te_version is None


@pytest.mark.parametrize(("said", "named"), [
    ({}, "--config"), ({"tensor_model_parallel_size": "two"}, "tensor_model_parallel_size"),
    ({"tensor_model_parallel_size": True}, "tensor_model_parallel_size"),
    ({"pipeline_model_parallel_size": 0}, "pipeline_model_parallel_size"),
    ({"context_parallel_size": None}, "context_parallel_size"),
    ({"bf16": True, "world_size": -8}, "world_size"),
    ({"pipeline_model_parallel_layout": "Et|tL"}, "num_layers"),
])  # fmt: skip
def test_what_cannot_be_laid_out_is_not_asked(said: dict[str, Value], named: str) -> None:
    refused = request_of(Run(settings=settings(said, "test")))
    assert isinstance(refused, NotAsked)
    assert refused.cure == named


def test_a_size_that_may_be_null_or_nothing_is_asked_so() -> None:
    said: dict[str, Value] = {"kv_channels": None, "num_moe_experts": 0, "cpu_offloading_num_layers": 0}
    assert said.items() <= asked(said).fields.items()


def test_words_are_one_short_line_without_paths() -> None:
    assert refusal("ValueError", "a\n   b", "", {}) == "a b"
    assert refusal("AssertionError", "", "assert  self.x > 0", {}) == "AssertionError at assert self.x > 0"
    assert refusal("AssertionError", " when instantiating MoELayer", "assert x", {}).endswith("at assert x")
    assert refusal("ValueError", "no name in (/home/me/lib/site-packages/m.py)", "", {}) == "no name in"
    assert failure("KeyError", "'mla'", "here line 1", {}) == "could not ask: KeyError: 'mla', at here line 1"
    assert failure("OSError", "", "here line 1", {}) == "could not ask: OSError, at here line 1"
    longest = "word " * 47 + "ab cd"
    assert (len(longest), refusal("ValueError", longest, "", {})) == (LONGEST.value, longest)
    assert refusal("ValueError", f"{longest}e", "", {}) == f"{longest[:-1]}…"
    assert refusal("ValueError", "word " * 100, "", {}) == f"{'word ' * 47}word…"


def test_odd_values_of_the_configuration_are_not_repeated() -> None:
    fields: dict[str, Value] = {"num_layers": 2, "recompute_modules": ("mla", "sk-Live0123456789")}
    for said in (refusal("AssertionError", ODD, "", fields), failure("KeyError", ODD, "", fields)):
        assert "Invalid choices: {'mla', '<recompute_modules>'}" in said
        assert "sk-Live" not in said


def test_a_plain_word_of_a_configuration_is_said() -> None:
    words = {"S#1": True, "S#12": False, "a" * 24: True, "a" * 25: False, "e4m3": True, "fp12345": False}
    for word, is_plain in words.items():
        said = refusal("ValueError", f"not {word}", "", {"fp8": word})
        assert said == (f"not {word}" if is_plain else "not <fp8>")


def test_an_answer_says_what_was_assumed_and_which_version_was_asked() -> None:
    request = replace(PLAIN, assumed_sizes=("num_layers", "world_size"), core_version="0.18.0")
    other = "; asked was megatron-core 0.16.1, the run has 0.18.0"
    assert accepted(request, "config", "0.16.1").text == (
        f"the configuration is accepted, with 2 sizes assumed{other}"
    )
    assert "with 1 option a" in accepted(replace(PLAIN, assumed_options=("bf16",)), "config", "1").text
    assert rejected(request, "config", "0.16.1", "no").text == f"no{other}"
    assert rejected(request, "config", "0.18.0", "no").text == "no"
    assert accepted(PLAIN, "layer", "0.16.1", ("fp8",)).text == "8 ranks are built, without fp8"
    of_experts = replace(PLAIN, fields={"num_moe_experts": 4}, te_version="2.9")
    assert accepted(of_experts, "layer", "1").text == "8 ranks and an MoE layer are built"
    assert accepted(of_experts, "config", "1").text == (
        "the configuration is accepted, with Transformer Engine 2.9 taken as given"
    )
    assert needs(PLAIN, "config", "1", ["PyTorch", "Transformer Engine"]).text == (
        "accepted where there is PyTorch and Transformer Engine, new enough: give --te-version"
    )
    assert no_such_knob(PLAIN, "0.16.1", ["moe_extended_tp", "odd"]).text == (
        "megatron-core 0.16.1 has no moe_extended_tp (from 0.12 to 0.16), odd"
    )


HELLO = '{"version": "0.16.1"}'
CONFIG = '{"tier": "config", "answer": "ok", "text": "accepted", "version": "0.16.1"}'


def stub(folder: Path, *lines: str) -> str:
    """A program in the interpreter's place."""
    program = folder / "python"
    program.write_text("\n".join(("#!/bin/sh", *lines)), encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(("lines", "said"), [
    *((("sleep 60",), "did not start"), (("exit 1",), "ended early")), (("echo Traceback",), "ended early"),
    (('echo \'{"absent": "no module x"}\'',), "does not start here: no module x"),
    *((("echo '{}'",), "ended early"), ((f"echo '{HELLO}'", "kill -9 $$"), "ended early")),
    *(((f"echo '{HELLO}'", "sleep 60"), "in time"), ((f"echo '{HELLO}'", "echo '{}'"), "ended early")),
])  # fmt: skip
def test_a_worker_that_gives_no_answer_is_not_checked_and_no_error(
    lines: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "START_S", Limit(0.5, "seconds", "ours: a test"))
    monkeypatch.setattr(check, "REQUEST_S", Limit(0.5, "seconds", "ours: a test"))
    (config, layer), other = check.check_with_megatron([PLAIN, PLAIN], python=stub(tmp_path, *lines))
    assert (config.tier, layer.tier) == ("config", "layer")
    assert {config.answer, layer.answer, other[0].answer} == {"not_checked"}
    assert said in config.text


def test_what_a_worker_said_before_it_died_counts(tmp_path: Path) -> None:
    python = stub(tmp_path, f"echo '{HELLO}'", f"echo '{CONFIG}'")
    ((config, layer),) = check.check_with_megatron([PLAIN], python=python)
    assert (config.answer, layer.answer) == ("ok", "not_checked")


def test_the_time_for_all_ends_a_worker_too(tmp_path: Path) -> None:
    python = stub(tmp_path, f"echo '{HELLO}'", "sleep 60")
    ((config, _),) = check.check_with_megatron([PLAIN], timeout_s=0.3, python=python)
    assert config.answer == "not_checked"


def test_a_python_that_is_none_is_not_checked(tmp_path: Path) -> None:
    ((config, _),) = check.check_with_megatron([PLAIN], python=str(tmp_path / "none"))
    assert "does not start" in config.text


def test_without_the_package_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    ((config, layer),) = check.check_with_megatron([PLAIN])
    assert (config.answer, layer.answer) == ("not_checked", "not_checked")
    assert "pip install 'moe-diag[megatron]'" in config.text


def test_an_interrupt_takes_the_worker_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **how: object) -> None:
            super().__init__(*args, **how)  # type: ignore[call-overload]
            started.append(self)

    def interrupted(*given: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Watched)
    monkeypatch.setattr(check, "_collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check.check_with_megatron([PLAIN], python=stub(tmp_path, "sleep 60"))
    assert started[0].poll() == -9
    assert threading.active_count() == 1
