"""Two runs without a trace: what differs in effect, what the logs decide, and what explains it."""

from __future__ import annotations

from pathlib import Path

import pytest

from heuristics.comparison.files.comparison import compare_files
from tests.configurations.logs import out_of_memory
from tests.configurations.pairs import logged, said
from traces.missing import known

MODEL = "model:\n  num_layers: 8\n  hidden_size: 64\n  num_moe_experts: 8\n  expert_model_parallel_size: 4\n"
BATCH = "train:\n  global_batch_size: 8\n"


def changed(base: str, new: str, **about: str) -> dict[str, tuple[object, object, str]]:
    compared = compare_files(said(MODEL + base + BATCH, **about), said(MODEL + new + BATCH, **about))
    return {one.what: (one.base, one.new, one.effect) for one in compared.changed}


def test_a_default_that_is_written_out_is_no_difference() -> None:
    assert changed("  moe_router_load_balancing_type: aux_loss\n", "", core_version="0.16.1") == {}


def test_lists_in_another_order_are_no_difference() -> None:
    kind = "  recompute_granularity: selective\n  recompute_modules: "
    assert changed(f"{kind}[moe_act, layernorm]\n", f"{kind}[layernorm, moe_act]\n") == {}


def test_what_the_framework_fills_in_differs() -> None:
    kind = "  recompute_granularity: selective\n"
    found = changed(f"{kind}  recompute_modules: []\n", kind)
    assert found == {"recompute_modules": ([], ["core_attn"], "may")}


def test_a_backend_that_no_dispatcher_reads_has_no_effect() -> None:
    kind = "  moe_token_dispatcher_type: alltoall\n  moe_flex_dispatcher_backend: "
    found = changed(f"{kind}deepep\n", f"{kind}hybridep\n")
    assert found == {"moe_flex_dispatcher_backend": ("deepep", "hybridep", "none")}


def test_a_default_is_said_to_be_one() -> None:
    (one,) = compare_files(
        said(MODEL, core_version="0.16.1"), said(MODEL + "  mtp_num_layers: 1\n", core_version="0.16.1")
    ).changed
    assert (one.what, one.base, one.base_said, one.new) == ("mtp_num_layers", None, "default", 1)
    assert one.new_said == "run.yaml:6"


def test_defaults_are_those_of_the_release() -> None:
    text = "  moe_token_dispatcher_type: flex\n  moe_deepep_num_sms: 20\n"
    bare = "  moe_token_dispatcher_type: flex\n"
    assert "moe_deepep_num_sms" not in changed(text, bare, core_version="0.16.1")
    assert "moe_deepep_num_sms" in changed(text, bare, core_version="0.19.0")


def test_logs_alone_decide_the_size(tmp_path: Path) -> None:
    base = logged(tmp_path, [2.0, 2.02] * 10, name="base.log")
    new = logged(tmp_path, [2.2, 2.22] * 10, name="new.log")
    compared = compare_files(base, new)
    assert compared.verdict == "regression"
    assert known(compared.step_delta_frac) == pytest.approx(0.0995, abs=0.002)
    assert (compared.changed, compared.explanations) == ((), ())


def test_one_log_decides_nothing_and_says_so(tmp_path: Path) -> None:
    compared = compare_files(said(MODEL), logged(tmp_path, [2.0] * 20))
    assert compared.verdict == "undecided"
    assert compared.because[0].startswith("only the new log")
    assert "--base-log" in compared.record


def test_equal_configurations_say_that_the_difference_lies_outside() -> None:
    compared = compare_files(said(MODEL), said(MODEL))
    assert compared.verdict == "undecided"
    assert any("outside" in one for one in compared.because)


def test_a_log_that_climbs_is_compared_over_the_iterations_that_both_hold(tmp_path: Path) -> None:
    base = logged(tmp_path, [20.0, 20.02] * 25, name="base.log")
    new = logged(tmp_path, [20.0 + 0.1 * place for place in range(100)], name="new.log")
    compared = compare_files(base, new)
    size = known(compared.size)
    assert size is not None
    assert (size.base_count, size.new_count) == (47, 47)  # the first three of each are left out
    assert any("new drifts" in one for one in compared.because)


def test_a_climb_that_both_logs_share_hides_no_difference(tmp_path: Path) -> None:
    climb = [20.0 + 0.1 * place + 0.05 * (place % 2) for place in range(100)]
    base = logged(tmp_path, climb, name="base.log")
    new = logged(tmp_path, [one + 0.3 for one in climb], name="new.log")
    compared = compare_files(base, new)
    assert compared.verdict == "regression"
    assert known(compared.step_delta_ns) == pytest.approx(300_000_000, abs=1)
    assert compare_files(base, base).verdict == "no_change"


def test_another_model_is_not_compared_and_mtp_is_a_known_change(tmp_path: Path) -> None:
    other = MODEL.replace("num_layers: 8", "num_layers: 12")
    assert compare_files(said(MODEL), said(other)).verdict == "not_comparable"
    more = MODEL + "  mtp_num_layers: 1\n"
    compared = compare_files(said(MODEL, core_version="0.16.1"), said(more, core_version="0.16.1"))
    assert compared.comparable.state != "no"
    assert [one.id for one in compared.explanations] == ["mtp"]


def test_batches_that_only_the_logs_print_forbid_too(tmp_path: Path) -> None:
    base = logged(tmp_path, [2.0] * 20, name="base.log")
    new = logged(tmp_path, [2.0] * 20, name="new.log")
    text = (tmp_path / "new.log").read_text(encoding="utf-8").replace("size:     8", "size:    16")
    (tmp_path / "new.log").write_text(text, encoding="utf-8")
    from heuristics.rules.rules import known_lines
    from traces.training_log.read import read_log

    new = type(new)("new.log", log=read_log(tmp_path / "new.log", known_lines()))
    compared = compare_files(base, new)
    assert compared.verdict == "not_comparable"
    assert compared.comparable.differences[0].what == "global batch size"


def test_memory_that_ran_out_is_explained_before_the_step(tmp_path: Path) -> None:
    base = logged(tmp_path, [2.0] * 20, name="base.log")
    new = logged(tmp_path, [2.0] * 5, out_of_memory(), name="new.log")
    full = "  recompute_granularity: full\n  recompute_method: uniform\n  recompute_num_layers: 1\n"
    one, other = said(MODEL + full), said(MODEL + "  mtp_num_layers: 1\n")
    compared = compare_files(
        type(base)("base", "base", one.settings, base.log), type(base)("new", "new", other.settings, new.log)
    )
    assert compared.verdict == "undecided"
    assert compared.explanations[0].id == "full_recompute"
    assert "out_of_memory" in compared.explanations[0].explains
