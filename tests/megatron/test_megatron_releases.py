"""Every release is asked as it answers: held against its own classes, called by hand in another process."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import asdict, replace
from random import Random
from typing import Final

import pytest

from diagnoser.megatron import worker_environment
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request, request_of
from tests.configurations.megatron_cases import CASES, request_for
from tests.configurations.megatron_layouts import FITS
from tests.configurations.megatron_layouts import request_for as laid_out
from tests.megatron.conftest import Release
from tests.megatron.random_runs import drawn_run
from tests.places import ROOT
from traces.limits import Limit

pytestmark = pytest.mark.megatron

NOT_HERE: Final = {64, 66, 87}
"""What Transformer Engine's own functions decide, and a knob that no release has."""
RUNS: Final = Limit(60, "runs", "ours: as many again as are listed; of most, a rule refuses something")
PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); import tests.megatron.core_itself"
REFUSALS: Final = ("AssertionError", "ValueError")
Both = tuple[Answer, Answer]
Raised = tuple[str, str] | None


def requests() -> list[Request]:
    """The ninety configurations without and with a Transformer Engine, layouts that fit, and random ones."""
    listed = [
        request_for(case, te) for case in CASES if case["number"] not in NOT_HERE for te in (None, "2.14.0")
    ]
    runs = [request_of(drawn_run(Random(seed)).run) for seed in range(int(RUNS.value))]
    drawn = [replace(one, core_version=None) for one in runs if isinstance(one, Request)]
    return [*listed, *map(laid_out, FITS.values()), *drawn]


def itself(release: Release, asked: list[Request]) -> list[tuple[Raised, Raised]]:
    """What its own classes raise."""
    done = subprocess.run(
        [release.python, "-P", "-c", PROGRAM, str(ROOT)],
        env=worker_environment(),
        input=json.dumps([asdict(one) for one in asked]),
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def answered(release: Release) -> list[tuple[Request, Both, tuple[Raised, Raised]]]:
    asked = requests()
    return list(zip(asked, release.ask(asked), itself(release, asked), strict=True))


def agrees(answer: Answer, raised: Raised) -> bool:
    """`needs` is of what raises here and would not where something is installed."""
    if raised is None:
        return answer.answer == "ok"
    error, module = raised
    if error in REFUSALS and module.startswith("megatron."):
        return answer.answer in ("rejected", "needs")
    return answer.answer in ("not_checked", "needs")


def test_an_answer_is_what_core_itself_does(
    release: Release,
    answered: list[tuple[Request, Both, tuple[Raised, Raised]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong, counts = [], Counter[str]()
    for request, (config, layer), (of_config, of_layer) in answered:
        counts[config.answer if config.answer != "ok" else layer.answer] += 1
        if config.answer == "no_such_knob":
            continue
        if not agrees(config, of_config) or (config.answer == "ok" and not agrees(layer, of_layer)):
            wrong.append((request.fields, config.text, layer.text, of_config, of_layer))
    assert wrong == []
    with capsys.disabled():
        print(f"\nmegatron-core {release.version}: {dict(counts)}")
