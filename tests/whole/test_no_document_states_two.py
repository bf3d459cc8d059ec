"""No document states two values of one setting: every place that names one agrees with the one reader.

Documents of drawn runs, whole and in part, with options and with a log, and of the golden cases.
What names a setting, and where, is the table of `tests/agreement/setting_claims.py`.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from heuristics.judging.judgement import FilesRead, Judgement, judge_observed
from heuristics.result.result import Result
from reports.result.codec import encode
from reports.result.fill.result import result_of_run
from tests.agreement.setting_claims import claims, unread
from tests.configurations.check import log_lines
from tests.configurations.golden import Case, cases, judgement_of
from tests.configurations.logs import log_of
from tests.megatron.random_runs import random_run, seeds
from traces.settings.settings import Setting, Settings
from traces.training_log.log import TrainingLog

KEPT: Final = st.sampled_from((1.0, 1.0, 0.7, 0.3))
"""Whole configurations, and such of which a part of the knobs is unknown."""
OPTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "tp": (1, 2),
    "cp": (1, 2),
    "pp": (1, 2, 4),
    "ep": (1, 8, 16),
    "etp": (1, 2),
    "vpp": (1, 2, 3),
    "world_size": (16, 64),
    "precision": ("bf16", "fp16", "fp32", "mxfp8", "fp8_blockwise", "fp8_delayed", "fp8_current", "nvfp4"),
    "routing": ("dropless", "force_balance", "drop_pad"),
    "graph_impl": ("none", "local", "transformer_engine"),
    "graph_modules": (("attn",), ("moe_router", "moe_preprocess")),
}
GOLDEN: Final = [case for case in cases() if "error" not in case.expected]


def judged(seed: int, kept: float, given: float, log: TrainingLog | None) -> Judgement:
    """A drawn run of which `kept` of the knobs are known; each option is `given` as often."""
    draw = Random(seed)
    one = random_run(draw)
    settings = one.configured.settings
    known = {knob: one for knob, one in settings.by_knob.items() if draw.random() <= kept}
    known["vocab_size"] = Setting(32_000, "drawn")
    options = {name: draw.choice(values) for name, values in OPTIONS.items() if draw.random() < given}
    configured = FilesRead(Settings(known, settings.framework), log)
    return judge_observed(one.evidence, replace(one.given, **options), configured)


def result_of(judgement: Judgement) -> Result:
    return result_of_run("0", judgement, about="run", judged=True, redact=False)


def disagreements(judgement: Judgement) -> list[object]:
    """What the document states otherwise than the reader, and what no row of the table reads."""
    document = encode(result_of(judgement))
    wrong = [one for one in claims(document, judgement.run) if not one.agrees]
    return [*wrong, *unread(document, judgement.run)]


@pytest.fixture(scope="module")
def steady_log(tmp_path_factory: pytest.TempPathFactory) -> TrainingLog:
    return log_of(tmp_path_factory.mktemp("log"), *log_lines())


@trials(max_examples=60)
@drawn(seeds(), KEPT)
def test_a_document_states_what_the_one_reader_answers(seed: int, kept: float) -> None:
    assert disagreements(judged(seed, kept, 0.0, None)) == []


@trials(max_examples=40)
@drawn(seeds(), KEPT)
def test_an_option_is_stated_alike_everywhere(steady_log: TrainingLog, seed: int, kept: float) -> None:
    assert disagreements(judged(seed, kept, 0.3, steady_log)) == []


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case.number}")
def test_a_golden_case_states_one_value(case: Case) -> None:
    assert disagreements(judgement_of(case)) == []


def test_a_document_that_states_two_is_found() -> None:
    judgement = judged(0, 1.0, 0.0, None)
    document = encode(result_of(judgement))
    document["given"]["tp"] = 77
    document["workflow"][0]["because"] = "PP77, moe_router_dtype int8"
    document["verdict"]["moe_router_topk"] = 77
    wrong = {one.setting for one in claims(document, judgement.run) if not one.agrees}
    assert wrong == {"tp", "PP", "moe_router_dtype"}
    assert list(unread(document, judgement.run)) == ["verdict.moe_router_topk"]
