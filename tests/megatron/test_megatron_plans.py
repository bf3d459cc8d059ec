"""Plans of random runs, asked of megatron-core: it takes every change set, and confirms what it can refuse.

What is asked goes to one process a core of two, each different request once.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from random import Random
from typing import Final

import pytest

from heuristics.judging.judgement import Judgement, judge_observed
from heuristics.plan.allowed import changed
from heuristics.plan.planned import Refused
from heuristics.plan.variants import upgraded
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request, request_of
from heuristics.rules.rules import rules
from heuristics.run.run import Run
from tests.megatron.conftest import Release
from tests.megatron.random_runs import planned_runs, random_run
from traces.limits import Limit
from traces.settings.knobs import knobs
from traces.settings.knobs import release as release_of
from traces.settings.settings import settings

pytestmark = pytest.mark.megatron

RUNS: Final = Limit(300, "runs", "ours: about a minute on two cores, most of it megatron-core's")
OTHERS: Final = Limit(60, "runs", "ours: a fifth of them, of each release that is asked beside it")
DRAWN: Final = (0, 16, 1)
"""The newest release whose fields runs are drawn from."""
BRIDGES: Final = {"0.16.1": "0.3.1", "0.17.0": "0.4.1", "0.18.0": "0.5.0", "0.19.2": "0.6.2"}
"""By the core that is asked a Megatron-Bridge with it; runs of Megatron-LM are drawn as often."""
PROCESSES: Final = 2
FORBIDDEN: Final = "the configuration forbids it: "
BESIDE: Final = re.compile(r"not in one plan with ([A-Z]+-\d+), which comes first: ")
SAYS: Final = {
    rule.text: rule.by
    for rule in rules().values()
    if rule.level == "error"
    and not any(part and "torch" in part.names for part in (rule.needs, rule.forbids))
}
"""By the sentence of a rule who refuses; the PyTorch of the run is none that is asked about."""


Answers = dict[str, tuple[Answer, Answer]]


def count(release: Release) -> int:
    return int((RUNS if release.python == sys.executable else OTHERS).value)


@dataclass(frozen=True, slots=True)
class Case:
    """Something that was asked: what of which run, and the key of the request."""

    name: str
    seed: int
    key: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The configurations, the change sets and the refusals of all runs; and what megatron-core says."""

    bases: tuple[Case, ...]
    changes: tuple[Case, ...]
    refusals: tuple[Case, ...]
    answers: Answers


@cache
def judgement(seed: int, core: str) -> Judgement:
    """With the defaults of what came after 0.16 said, as whole configurations have them."""
    one = random_run(Random(seed), ((core, None), (core, BRIDGES[core])))
    at = release_of(core)
    rows = [
        row for row in knobs().values() if row.is_core and at and row.is_known_in(at) and row.since > DRAWN
    ]
    later = {row.id: default[0] for row in rows if (default := row.default_in(at))}
    whole = settings(later, "defaults").under(one.configured.settings)
    return judge_observed(one.evidence, one.given, replace(one.configured, settings=whole))


def refused_runs(found: Judgement) -> Iterator[tuple[Refused, Run]]:
    """Refusals by a rule that megatron-core's own configuration or layer has, with the run they are about."""
    now = upgraded(found.run, found.plan.releases)
    made = {one.fix.id: one.change.in_run(now) for one in found.plan.fixes}
    for refused in found.plan.refused:
        beside = BESIDE.match(refused.because)
        text = BESIDE.sub("", refused.because).removeprefix(FORBIDDEN).removeprefix("needs: ")
        if SAYS.get(text) == "core":
            steps = [made[beside[1]]] if beside else []
            yield refused, changed(now, (*steps, refused.fix.change(now).in_run(now)))


@pytest.fixture(scope="module")
def asked(release: Release) -> Asked:
    requests: dict[str, Request] = {}

    def case(name: str, seed: int, run: Run) -> Case:
        request = request_of(run)
        assert isinstance(request, Request), request
        key = json.dumps(asdict(request), sort_keys=True)
        requests.setdefault(key, request)
        return Case(name, seed, key)

    bases, changes, refusals = [], [], []
    for seed in range(count(release)):
        found = judgement(seed, release.version)
        if any(one.package == "core" for one in found.plan.releases):
            continue  # its plan is for another release than the one that is asked
        if found.run.config.refuted:
            continue  # the trace is of another run than the file, which is corrected first
        bases.append(case("the configuration", seed, found.run))
        changes += [case(one.fix.id, seed, run) for one, run in planned_runs(found)]
        refusals += [case(f"{one.fix.id}: {one.because}", seed, run) for one, run in refused_runs(found)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = [list(requests)[part::PROCESSES] for part in range(PROCESSES)]
        told = pool.map(lambda keys: release.ask([requests[key] for key in keys]), parts)
        answers = {
            key: answer
            for keys, found in zip(parts, told, strict=True)
            for key, answer in zip(keys, found, strict=True)
        }
    return Asked(tuple(bases), tuple(changes), tuple(refusals), answers)


def not_taken(cases: tuple[Case, ...], answers: Answers) -> list[str]:
    """What is rejected, set by a knob that megatron-core does not have, or could not be asked."""
    return [
        f"seed {one.seed}, {one.name}: {answer.text}"
        for one in cases
        for answer in answers[one.key]
        if answer.answer not in ("ok", "needs")
    ]


def test_what_is_drawn_megatron_core_takes_as_well(asked: Asked) -> None:
    assert not_taken(asked.bases, asked.answers) == []


def test_every_change_set_that_is_recommended_is_taken(asked: Asked) -> None:
    assert not_taken(asked.changes, asked.answers) == []


def test_every_refusal_that_megatron_core_can_know_is_confirmed_by_it(asked: Asked) -> None:
    unconfirmed = [
        f"seed {one.seed}, {one.name}: {[answer.text for answer in asked.answers[one.key]]}"
        for one in asked.refusals
        if not {answer.answer for answer in asked.answers[one.key]} & {"rejected", "needs"}
    ]
    assert unconfirmed == []


def test_enough_was_asked(release: Release, asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(asked.changes) >= 4 * count(release)
    assert len(asked.refusals) >= count(release) / 20
    with capsys.disabled():
        counts = f"{len(asked.changes):,} change sets and {len(asked.refusals)} refusals"
        runs = f"{count(release)} random runs of megatron-core {release.version}"
        print(f"\n{runs}, {counts}, {len(asked.answers):,} requests")
