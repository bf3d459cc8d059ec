"""What is advised holds once it is done: cures and steps of a few random runs, applied and judged again.

`python -m bench.closure` asks the same of thousands.
"""

from __future__ import annotations

from random import Random

import pytest

from heuristics.config.about import Given
from heuristics.findings.defects import defects_of
from heuristics.judging.judgement import judge_observed
from heuristics.rules.check import check_rules
from heuristics.run.run import Run
from tests.configurations.closure import cures, steps, taken_back, waiting
from tests.megatron.random_runs import drawn_run, random_run
from traces.settings.read import configuration_of

CURED, PLANNED = range(6), range(4)


@pytest.mark.parametrize("seed", CURED)
def test_no_cure_breaks_anything_and_all_come_to_an_end(seed: int) -> None:
    assert list(cures(drawn_run(Random(seed)).run)) == []


@pytest.mark.parametrize("seed", PLANNED)
def test_no_step_breaks_anything_takes_another_back_or_waits_in_vain(seed: int) -> None:
    one = random_run(Random(seed))
    found = judge_observed(one.evidence, one.given, one.configured)
    assert [*steps(found), *waiting(found.plan), *taken_back(one, found)] == []


LOCAL = (
    "--num-experts 8 --expert-model-parallel-size 8 --cuda-graph-impl local --cuda-graph-scope full_iteration"
)


def test_local_graphs_and_those_of_transformer_engine_do_not_send_each_other_back() -> None:
    run = written(f"pretrain_gpt.py {LOCAL}")
    assert list(cures(run)) == []
    (found,) = [one for one in defects_of(run, check_rules(run), (), ()) if one.id == "graphs-local-ep"]
    assert found.set == {"moe_pad_experts_for_cuda_graph_inference": True}


FAKE = (
    "pretrain_gpt.py --num-experts 8 --expert-model-parallel-size 8 --fake-process-group "
    "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep --moe-router-dtype fp32"
)


def test_w20_a_wrong_domain_is_not_lost_under_the_cure_of_a_fake_group() -> None:
    found = written(f"NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN=4 {FAKE}", gpu="H100")
    ids = [one.id for one in defects_of(found, check_rules(found), (), ())]
    assert "fake-group-flex" in ids
    assert "hybridep-domain" in ids


def written(text: str, **about: str) -> Run:

    given = Given(core_version="0.16.1", **about)  # type: ignore[arg-type]
    return Run(given=given, settings=configuration_of(text, "run.sh").settings)
