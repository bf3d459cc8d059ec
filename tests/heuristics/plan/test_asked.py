"""A plan asked of Megatron-Core: what its answers do to it. The one that answers here is a double."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from heuristics.config.about import Given
from heuristics.fixes.change import NO_LINES, Change
from heuristics.plan.allowed import OWN, Ask, CheckedPlan, plan_asked
from heuristics.plan.plan import make_plan
from heuristics.plan.planned import Plan, Planned, Rejection
from heuristics.result.judged import AnswerKind
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.megatron.request import Request
from heuristics.run.run import Run
from tests.doubles.opinions import a_fix, catalogue_of, paying
from traces.settings.settings import Value, settings

TOPK = Change({"moe_router_topk": 4})
GC = Change({"train.manual_gc": True})
OVERLAP = Change({"overlap_moe_expert_parallel_comm": True})
DELAY = Change({"delay_wgrad_compute": True})
SIZED = Change({"expert_model_parallel_size": "N"})
WORDS = "top-k of four is not to our taste"
Say = Callable[[Request], tuple[AnswerKind, str]]


def run_of(core: str | None = "0.16.1", **knobs: Value) -> Run:
    said: dict[str, Value] = {
        "num_moe_experts": 64,
        "moe_router_topk": 2,
        "expert_model_parallel_size": 8,
        "overlap_moe_expert_parallel_comm": False,
        **knobs,
    }
    plain = paying("communication", {"all": 100})
    return Run(
        plain.observed,
        Given(core_version=core),
        plain.cost_by_kind_ns,
        1000,
        plain.total_ns,
        settings=settings(said, "run.sh", "megatron_lm"),
    )


class Double:
    """Answers each request by one sentence, and keeps what it was asked."""

    def __init__(self, say: Say, version: str = "0.16.1") -> None:
        self.say, self.version = say, version
        self.rounds: list[Sequence[Request]] = []

    def __call__(self, requests: Sequence[Request]) -> list[tuple[Answer, ...]]:
        self.rounds.append(requests)
        return [(Answer("config", *self.say(one), self.version),) for one in requests]


def against_topk(request: Request) -> tuple[AnswerKind, str]:
    return ("rejected", WORDS) if request.fields.get("moe_router_topk") == 4 else ("ok", "")


def asked(run: Run, ask: Ask | None, **knobs: Change) -> CheckedPlan:
    made = [
        a_fix(number.replace("_", "-"), "communication", change=lambda run, one=one: one)
        for number, one in knobs.items()
    ]

    def make(rejected: Mapping[str, Rejection]) -> Plan:
        return make_plan(run, ["communication"], catalogue_of(*made), rejected=rejected)

    return plan_asked(run, make, ask)


def ids(found: CheckedPlan) -> list[str]:
    return [one.fix.id for one in found.plan.fixes]


def test_the_configuration_is_asked_first_and_then_every_fix_at_once() -> None:
    double = Double(against_topk)
    found = asked(run_of(), double, COM_2=GC, COM_1=OVERLAP)
    assert [len(one) for one in double.rounds] == [1, 2]
    assert set(found.answers) == {OWN, "COM-2", "COM-1"}


def test_what_is_rejected_is_refused_in_megatron_cores_words_and_planned_around() -> None:
    found = asked(run_of(), Double(against_topk), COM_2=TOPK, COM_1=OVERLAP)
    (refused,) = found.plan.refused
    assert ids(found) == ["COM-1"]
    assert refused.because == f"the framework rejects it here: {WORDS}"
    assert refused.source == "megatron-core 0.16.1"


def test_a_fix_is_asked_about_with_the_steps_it_stands_on() -> None:
    double = Double(against_topk)
    asked(run_of(delay_wgrad_compute=False), double, COM_1=OVERLAP, COM_9=DELAY)
    last = double.rounds[1][-1].fields
    assert last["overlap_moe_expert_parallel_comm"] is True
    assert last["delay_wgrad_compute"] is True


def test_what_is_said_of_the_configuration_itself_is_not_held_against_a_fix() -> None:
    found = asked(run_of(), Double(lambda request: ("rejected", "18 layers")), COM_2=GC)
    assert ids(found) == ["COM-2"]


@pytest.mark.parametrize("answer", ["rejected", "no_such_knob"])
def test_another_release_has_no_say(answer: AnswerKind) -> None:
    double = Double(lambda request: (answer, WORDS) if request.fields["moe_router_topk"] == 4 else ("ok", ""))
    assert ids(asked(run_of(core="0.18.0"), double, COM_2=TOPK)) == ["COM-2"]
    assert ids(asked(run_of(core="0.16.0"), double, COM_2=TOPK)) == []


@pytest.mark.parametrize(("answer", "kept"), [("rejected", []), ("no_such_knob", ["COM-2"])])
def test_where_the_release_is_unknown_it_may_reject_but_a_knob_may_be_newer(
    answer: AnswerKind, kept: list[str]
) -> None:
    double = Double(lambda request: (answer, WORDS) if request.fields["moe_router_topk"] == 4 else ("ok", ""))
    assert ids(asked(run_of(core=None), double, COM_2=TOPK)) == kept


@pytest.mark.parametrize("answer", ["needs", "not_checked"])
def test_what_this_host_lacks_refuses_nothing(answer: AnswerKind) -> None:
    double = Double(lambda request: (answer, "no Transformer Engine here"))
    assert ids(asked(run_of(), double, COM_2=TOPK)) == ["COM-2"]


def test_what_cannot_be_asked_says_why() -> None:
    found = asked(run_of(expert_model_parallel_size=0), Double(against_topk), COM_2=GC)
    (answer,) = found.answers[OWN]
    assert answer.answer == "not_checked"
    assert "expert_model_parallel_size" in answer.text


def test_a_change_with_a_size_to_fill_in_is_not_passed_off_as_checked() -> None:
    double = Double(against_topk)
    found = asked(run_of(), double, COM_2=SIZED)
    assert [one.answer for one in found.answers["COM-2"]] == ["not_checked"]
    assert "to fill in" in found.answers["COM-2"][0].text
    assert ids(found) == ["COM-2"]


def test_a_plan_is_made_again_until_each_of_its_fixes_was_asked_about() -> None:
    names = [f"COM-{at}" for at in range(1, 10)]
    fixes = {
        name: a_fix(name, "communication", change=lambda run: TOPK, excludes=tuple({*names} - {name}))
        for name in names
    }
    double, run = Double(against_topk), run_of()

    def make(rejected: Mapping[str, Rejection]) -> Plan:
        return make_plan(run, ["communication"], fixes, rejected=rejected)

    plan_asked(run, make, double)
    assert [len(one) for one in double.rounds] == [1] + [1] * len(names)  # the run itself first


def test_what_is_for_another_release_is_not_asked_about() -> None:
    first, second = (a_fix(name, "communication", change=lambda run: TOPK) for name in ("ENV-1", "COM-1"))
    fixes = (Planned(first, NO_LINES, (), None), Planned(second, NO_LINES, (), None, after=("ENV-1",)))
    found = plan_asked(run_of(), lambda rejected: Plan(fixes, (), ()), Double(against_topk))
    assert {name: several[0].answer for name, several in found.answers.items()} == {
        OWN: "ok", "ENV-1": "not_checked", "COM-1": "not_checked",
    }  # fmt: skip
