"""What a recipe of Bridge's scripts may have already is no first step, and asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from heuristics.config.about import Given
from heuristics.evidence.symptoms import observed_from, read_symptoms
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.judging.judgement import Configured, Judgement, judge_observed
from tests.doubles.fixes import configured
from traces.settings.read import read_configuration

COM_6 = CATALOGUE["COM-6"]

LINE = "python scripts/performance/run_script.py -m deepseek -mr deepseek_v3 -g gb200 -c fp8_mx -ng 256"
SYMPTOMS = """{"budget_frac": {"compute": 0.58, "exposed_comm": 0.34, "idle": 0.08},
"exposed_comm_by_kind_frac": {"pp_p2p": 0.04, "ep_a2a": 0.24, "dp_reduce_scatter": 0.06}}"""


def _judged(folder: Path, core: str, variant: str = "v2") -> Judgement:
    path = folder / "run.sh"
    path.write_text(f"{LINE} -cv {variant}", encoding="utf-8")
    read, symptoms = read_configuration(path, core), read_symptoms(SYMPTOMS, "symptoms.json")
    given = Given(core_version=core)
    return judge_observed(observed_from(symptoms, read.settings), given, Configured(read.settings, None))


@pytest.mark.parametrize("core", ["0.18.2", "0.19.0"])
def test_overlap_dispatcher_and_layout_of_a_known_recipe_are_not_planned_again(
    tmp_path: Path, core: str
) -> None:
    planned = [one.fix.id for one in _judged(tmp_path, core).plan.fixes]
    assert not {"COM-1", "COM-2", "COM-4", "COM-6"} & {*planned}


def test_what_a_recipe_may_have_is_asked_about_and_comes_last(tmp_path: Path) -> None:
    planned = _judged(tmp_path, "0.18.2", "large_scale").plan.fixes
    asked = [any(need.late for need in one.preconditions) for one in planned]
    assert {"COM-1", "COM-2"} <= {one.fix.id for one in planned}
    assert any(asked)
    assert asked == sorted(asked)


@pytest.mark.parametrize(
    ("layout", "planned"),
    [("Ettt|tt|tt|tL", False), ("Ett|tt|tt|ttL", False), ("Ett|ttt|tt|tL", False), ("Etttt|t|t|ttL", True)],
)
def test_a_layout_as_even_as_can_be_is_not_balanced_again(layout: str, planned: bool) -> None:
    sizes = {"num_layers": 8, "pipeline_model_parallel_size": 4}
    run = configured({**sizes, "pipeline_model_parallel_layout": layout})
    assert (not any(one.stops for one in COM_6.preconditions(run))) == planned
