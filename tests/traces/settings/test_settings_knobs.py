"""The table of knobs: what is in it, by release."""

from __future__ import annotations

import tomllib

import pytest

from tests.places import DATA
from traces.settings.knobs import by_flag, by_path, knobs, known_in, release
from traces.settings.names import lm_flags, nearest, shown

CASES = tomllib.loads((DATA / "megatron_cases.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("knob", "version", "known"),
    [
        ("overlap_moe_expert_parallel_comm", "0.13.0", False),
        ("overlap_moe_expert_parallel_comm", "0.14.0", True),
        ("cuda_graph_impl", "0.14.0", False),
        ("moe_flex_dispatcher_backend", "0.15.3", False),
        ("moe_flex_dispatcher_backend", "core_v0.16.0", True),
        ("moe_use_legacy_grouped_gemm", "0.16.1", True),
        ("moe_use_legacy_grouped_gemm", "0.17.0", False),
        ("moe_permute_fusion_into_hybridep", "0.17.0", False),
        ("moe_permute_fusion_into_hybridep", "0.17.1", True),
        ("moe_flex_dispatcher_num_sms", "0.18.2", False),
        ("moe_flex_dispatcher_num_sms", "main", True),
        ("moe_flex_dispatcher_num_sms", None, None),
        ("no_such_knob", "0.16.1", None),
    ],
)
def test_a_knob_is_known_from_its_release_on(knob: str, version: str | None, known: bool | None) -> None:
    assert known_in(knob, version) is known


def test_a_renamed_knob_has_its_name_by_release() -> None:
    modules = knobs()["cuda_graph_modules"]
    assert modules.name_in(release("0.17.1")) == "cuda_graph_scope"
    assert modules.name_in(release("0.18.0")) == modules.name_in(None) == "cuda_graph_modules"
    assert by_flag()["--cuda-graph-scope"][0][0] is by_path()["model.cuda_graph_scope"] is modules


def test_a_default_that_moved_is_told_only_where_the_release_is() -> None:
    sms = knobs()["moe_deepep_num_sms"]
    assert sms.default_in(release("0.16.1")) == (20,)
    assert sms.default_in(release("0.19.0")) == (None,)
    assert sms.default_in(None) is None
    assert knobs()["moe_router_topk"].default_in(None) == (2,)


def test_the_nearest_name_is_found_and_a_far_one_is_not() -> None:
    assert nearest("--moe-router-topkk", lm_flags()) == "--moe-router-topk"
    assert nearest("--moe_grouped_gemm", lm_flags()) == "--moe-grouped-gemm"
    assert nearest("--xyzzy-plugh", lm_flags()) == ""


def test_a_shown_name_has_no_word_that_we_do_not_know() -> None:
    assert shown("--moe-router-s3cr3t") == "--moe-router-..."
    assert shown("--num-layers") == "--num-layers"
    assert shown("x" * 1000) == "..."
