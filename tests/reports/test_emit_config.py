"""A patch to paste says exactly the change of the plan's first step, and the shell and YAML take it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

import diagnoser
from diagnoser.cli import run
from heuristics.config.about import Given
from heuristics.config.observed import Observed
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.plan.planned import Planned
from heuristics.result.judged import Knobs
from heuristics.result.result import Result
from heuristics.run.run import Run
from reports.emit import emit_config, yaml_value
from reports.formats import FRAMEWORKS
from reports.result.fill.plan import fix as fix_of
from tests.configurations.check import ABOUT, CONTRADICTS, ILLEGAL, script, symptoms, written
from tests.configurations.spelling import read_back
from tests.doubles.fixes import spelled_as
from tests.places import GOLDEN, Reviewed
from traces.settings.read import configuration_of

RUNS = (
    Run(),
    Run(given=Given(gpu="H100", core_version="0.16.1", pp=4), observed=Observed(moe=True)),
    Run(given=Given(gpu="GB200", core_version="0.19.0", bridge_version="0.6.0"), observed=Observed(moe=True)),
    Run(given=Given(gpu="H100", core_version="0.12.0"), observed=Observed(moe=True)),
)
LAYOUT = "Et*3|(tt|)*29m|L"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A judged configuration, whose plan a test replaces."""
    folder = tmp_path_factory.mktemp("checked")
    return diagnoser.check_config(script(folder), symptoms=symptoms(folder), ask_megatron=False).result


def planning(checked: Result, *knobs: Knobs) -> Result:
    """The result with a plan that makes these changes."""
    fixes = tuple(fix_of(Planned(CATALOGUE["COM-2"], one, (), 0.2, 0.1), Run()) for one in knobs)
    return replace(checked, fixes=fixes)


def patches(checked: Result, framework: str) -> Iterator[tuple[Knobs, str]]:
    """Every fix of the catalogue for several runs, and one with all that is hard to write."""
    hard = spelled_as(
        megatron_lm=(f'--pipeline-model-parallel-layout "{LAYOUT}"', "(leave out --sequence-parallel)"),
        megatron_bridge=(
            f'model.pipeline_model_parallel_layout="{LAYOUT}"',
            "model.recompute_method=null",
            "model.recompute_modules=[moe_act,layernorm]",
            "model.moe_aux_loss_coeff=1e-2",
            "ddp.overlap_grad_reduce=false",
        ),
        environment=("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "(leave out NCCL_NVLS_ENABLE)"),
    )
    for knobs in (hard, *(fix.knobs(one) for fix in CATALOGUE.values() for one in RUNS)):
        yield knobs, emit_config(framework, planning(checked, knobs))


def test_a_bridge_patch_reads_back_to_exactly_the_change(checked: Result) -> None:
    for knobs, text in patches(checked, "bridge"):
        wanted = read_back(knobs.megatron_bridge)
        if not wanted:
            assert yaml.safe_load(text) is None
            continue
        read = configuration_of(text, "patch.yaml")
        assert {knob: one.value for knob, one in read.settings.by_knob.items()} == dict(wanted)
        assert read.problems == ()


def test_a_megatron_lm_patch_reads_back_to_the_change_once_its_flags_are_used(checked: Result) -> None:
    for knobs, text in patches(checked, "megatron-lm"):
        typed = (*knobs.megatron_lm, *knobs.environment)
        beside = ("(", "numactl ", "ncu ", "sudo ")
        lines = [line for line in typed if not line.startswith(beside)]
        wanted = read_back(lines)
        launched = text + 'python pretrain_gpt.py --seq-length 8 "${MOE_DIAG_ARGS[@]}"\n'
        read = configuration_of(launched, "patch.sh").settings
        assert {knob: read.value(knob) for knob in wanted} == dict(wanted)


def test_the_shell_takes_every_patch_and_gives_its_flags_as_an_array(tmp_path: Path, checked: Result) -> None:
    several = [text for _, text in patches(checked, "megatron-lm")]
    show = "printf '%s\\n' \"${MOE_DIAG_ARGS[@]}\"\n"
    whole = written(tmp_path, "all.sh", "set -eu\n" + "".join(text + show for text in several))
    subprocess.run(["bash", "-n", whole], check=True)
    first = written(tmp_path, "first.sh", several[0] + show)
    printed = subprocess.run(["bash", first], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == ["--pipeline-model-parallel-layout", LAYOUT]


def test_what_a_value_needs_is_written_for_every_edition_of_yaml() -> None:
    written_as = {
        "null": "null", "true": "true", "16": "16", "1e-2": "0.01", "1e-05": "1.0e-05",
        "[moe_act,layernorm]": "[moe_act, layernorm]", "[]": "[]", f'"{LAYOUT}"': f'"{LAYOUT}"', "on": '"on"',
        "a2a+p2p": '"a2a+p2p"', "bf16_mixed": "bf16_mixed",
    }  # fmt: skip
    assert {text: yaml_value(text) for text in written_as} == written_as


def test_a_placeholder_is_a_comment_and_not_a_value(checked: Result) -> None:
    knobs = spelled_as(
        megatron_lm=("--expert-model-parallel-size N",),
        megatron_bridge=(
            "model.expert_model_parallel_size=N",
            'model.pipeline_model_parallel_layout="LAYOUT"',
        ),
    )
    bridge, shell = (emit_config(framework, planning(checked, knobs)) for framework in FRAMEWORKS)
    assert yaml.safe_load(bridge) is None
    assert "# Choose the value yourself: model.expert_model_parallel_size=N" in bridge
    assert "MOE_DIAG_ARGS=(\n)" in shell


def test_the_environment_is_exported_in_a_script_and_said_in_a_yaml(checked: Result) -> None:
    knobs = spelled_as(
        megatron_bridge=("model.moe_grouped_gemm=true",),
        environment=("A=b c", "(leave out D)", "numactl --membind=0", "(ask the cluster)"),
    )
    bridge, shell = (emit_config(framework, planning(checked, knobs)) for framework in FRAMEWORKS)
    said = ["export A='b c'", "unset D", "# Beside the command: numactl --membind=0", "# Ask the cluster."]
    assert [line for line in said if f"\n{line}\n" not in shell] == []
    assert [line for line in said if f"\n# {line.removeprefix('# ')}\n" not in bridge] == []


def test_no_name_of_a_file_ends_a_comment(checked: Result) -> None:
    result = replace(planning(checked, spelled_as(megatron_lm=("--bf16",))), about="run\nrm -rf x.yaml")
    for framework in FRAMEWORKS:
        assert "\nrm" not in emit_config(framework, result)


@pytest.mark.parametrize(("framework", "ending"), [("bridge", "yaml"), ("megatron-lm", "sh")])
def test_a_patch_reads_as_reviewed(tmp_path: Path, framework: str, ending: str, reviewed: Reviewed) -> None:
    out = tmp_path / f"patch.{ending}"
    options = ["--symptoms", str(symptoms(tmp_path)), "--emit-config", framework, "-o", str(out)]
    assert run(["check-config", str(script(tmp_path)), *ABOUT, *options]) == 0
    text = out.read_text(encoding="utf-8")
    assert text == reviewed(GOLDEN / f"patch.{ending}", text)
    assert all(part in text for part in ("COM-1", "Evidence:", "Checked:", "Verify:"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("text", "code", "first"),
    [
        (CONTRADICTS, 0, "# Fix first: CFG-flex-type"),
        (ILLEGAL, 1, "# Fix first: ep-overlap-full-recompute: EP overlap cannot be combined with full"),
    ],
)
def test_without_a_plan_there_are_comments_only_and_first_what_is_to_be_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], framework: str, text: str, code: int, first: str
) -> None:
    path = written(tmp_path, "run.yaml", text)
    assert run(["check-config", str(path), *ABOUT, "--emit-config", framework]) == code
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("# ") for line in lines)
    assert lines[1].startswith(first)
    said = " ".join(line.removeprefix("#").strip() for line in lines)
    assert "No change is planned: nothing was measured. Give --symptoms S.json" in said


def test_a_patch_and_a_report_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(script(tmp_path))
    assert run(["check-config", path, "--emit-config", "bridge", "-f", "json"]) == 2
    assert run(["check-config", path, "--emit-config", "nemo"]) == 2
    assert "bridge or megatron-lm" in capsys.readouterr().err


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_w13_without_a_winner_no_arm_is_set_and_every_arm_is_there(checked: Result, framework: str) -> None:
    run = Run(
        given=Given(gpu="H100", ep=64, stage="tuned"), observed=Observed(moe=True, dispatcher="alltoall")
    )
    fix = CATALOGUE["COM-2"]
    step = fix_of(Planned(fix, fix.knobs(run), (), 0.2, 0.1), run)
    assert [arm.name for arm in step.arms] == ["deepep", "hybridep"]
    patch = emit_config(framework, replace(checked, fixes=(step,)))
    assert all(line.startswith("#") for line in patch.splitlines())
    for arm in step.arms:
        assert f"# Arm {arm.name}:" in patch
        assert re.search(rf"(backend: |backend ){arm.name}", patch)
