"""The golden cases as data: what is said of a run, and what a plan for it has to hold and must not hold.

A case names its configuration by knobs, its symptoms by the contract's names, and what is expected. `like`:
another case that it changes. `bare`: the shares that it does not list are not below every limit but unknown.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from msgspec.structs import asdict

from heuristics.config.about import Given
from heuristics.evidence.evidence import with_fit
from heuristics.evidence.symptoms import Symptoms, observed_from, read_symptoms
from heuristics.findings.contradictions import find_contradictions
from heuristics.judging.judgement import FilesRead, Judgement, judge_observed
from heuristics.plan.planned import Planned
from heuristics.result.judged import Knobs
from heuristics.result.result import Result
from heuristics.rules.check import check_rules
from heuristics.rules.failures import explain_failures
from heuristics.rules.rules import known_lines
from reports.result.fill.result import result_of_run
from tests.places import DATA
from traces.missing import known
from traces.settings.settings import Settings, Value, settings
from traces.training_log.log import TrainingLog
from traces.training_log.read import read_log

FOLDER = DATA / "golden_cases"
Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One golden case; `expected` holds the row's last columns."""

    number: int
    title: str
    given: Table
    versions: Table
    settings: Table
    symptoms: Table
    log: str
    expected: Table


def cases() -> list[Case]:
    """All cases by number."""
    said = _said()
    return [_case(said, number) for number in sorted(said)]


@cache
def _said() -> dict[int, Table]:
    files = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))]
    listed = [case for file in files for case in file.get("case", [])]
    assert len({case["number"] for case in listed}) == len(listed), "a case is there twice"
    return {case["number"]: case for case in listed}


def _case(said: Mapping[int, Table], number: int) -> Case:
    case = said[number]
    whole = _over(said[case["like"]], case) if "like" in case else case
    symptoms = whole.get("symptoms", {})
    if not whole.get("bare") and "ranks" not in symptoms:
        symptoms = _over(_unlisted(), symptoms)
    elif not whole.get("bare"):
        symptoms = {**symptoms, "ranks": [_over(_unlisted(), rank) for rank in symptoms["ranks"]]}
    return Case(
        number,
        case["title"],
        whole.get("given", {}),
        whole.get("versions", {}),
        whole.get("settings", {}),
        symptoms,
        case.get("log", ""),
        case["expected"],
    )


@cache
def _unlisted() -> Table:
    return cast("Table", tomllib.loads((FOLDER / "unlisted.toml").read_text(encoding="utf-8"))["symptoms"])


def _over(base: Table, changes: Table) -> dict[str, Any]:
    """One table laid over another; shares and causes are replaced whole, for they add up."""
    merged = dict(base)
    for key, value in changes.items():
        whole = key.endswith("_frac") or not isinstance(value, dict)
        merged[key] = value if whole or not isinstance(base.get(key), dict) else _over(base[key], value)
    return merged


def symptoms_of(case: Case) -> Symptoms:
    """The case's symptoms as a file would say them; none where it says none."""
    return read_symptoms(json.dumps(case.symptoms), "symptoms.json") if case.symptoms else Symptoms()


def settings_of(case: Case) -> Settings:
    """The case's knobs; the text null is JSON's null."""
    told = {knob: _value(value) for knob, value in case.settings.items()}
    return settings(told, "config.yaml", "megatron_bridge")


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(value)
    return None if value == "null" else cast("Value", value)


def log_of(case: Case) -> TrainingLog | None:
    """The case's excerpt of a log, read."""
    if not case.log:
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_text(case.log, encoding="utf-8")
        return read_log(path, known_lines())


def given_of(case: Case) -> Given:
    """What options say of the case."""
    versions = {f"{name}_version": version for name, version in case.versions.items()}
    return Given(**case.given, **versions)


def judgement_of(case: Case) -> Judgement:
    """The case judged, as `check-config --symptoms` does it; once for all tests of a process."""
    if case.number not in _JUDGED:
        _JUDGED[case.number] = _judged(case)
    return _JUDGED[case.number]


_JUDGED: Final[dict[int, Judgement]] = {}


def _judged(case: Case) -> Judgement:
    symptoms, given, log = symptoms_of(case), given_of(case), log_of(case)
    observed = with_fit(observed_from(symptoms, settings_of(case)), given, log)
    return judge_observed(observed, given, FilesRead(settings_of(case), log))


def wrongs(case: Case, judgement: Judgement) -> list[str]:
    """What of the case's expectations does not hold, in words; empty where it passes."""
    return [
        *_wall_wrongs(case.expected, judgement),
        *_plan_wrongs(case.expected, judgement),
        *_forbidden(case, judgement),
    ]


def _wall_wrongs(expected: Table, judgement: Judgement) -> Iterator[str]:
    verdict, bound = judgement.verdict, known(judgement.verdict.bound)
    if not expected.get("config_error") and known(verdict.wall) != expected.get("wall"):
        yield f"wall is {verdict.wall}, not {expected.get('wall')}"
    if "kind" in expected and verdict.kind != expected["kind"]:
        yield f"kind is {verdict.kind}, not {expected['kind']}"
    if "bound" in expected and bound != expected["bound"]:
        yield f"bound is {bound}, not {expected['bound']}"
    if expected.get("undecided") and judgement.plan.fixes:
        yield "nothing is decided, and yet there are fixes"
    if expected.get("config_error") and not config_texts(judgement):
        yield "no finding says what is wrong with the configuration"


def _plan_wrongs(expected: Table, judgement: Judgement) -> Iterator[str]:
    ids = [one.fix.id for one in judgement.plan.fixes]
    wanted = [*expected.get("first", ()), *expected.get("accepted", ())]
    if wanted or "first" in expected:
        first = judgement.plan.fixes[0] if ids else None
        allowed = ids[:1] == [] if first is None else first.fix.id in wanted
        by_knob = expected.get("first_knob")
        if first is not None and by_knob:
            allowed = allowed or any(re.search(by_knob, line) for line in lines_of(first.knobs))
        if not (allowed and (ids or expected.get("nothing"))):
            yield f"the first fix is {ids[:1] or 'none'}, not one of {wanted}; plan {ids}"
    if "second" in expected and not set(ids[:2]) & set(expected["second"]):
        yield f"the second fix is {ids[1:2]}, not {expected['second']}"
    levers = [one.fix.id for one in judgement.plan.levers]
    if "lever" in expected and not set(levers) & set(expected["lever"]):
        yield f"levers are {levers}, without {expected['lever']}"
    for need in expected.get("must_have", ()):
        yield from _without(need, judgement.plan.fixes)
    said = config_texts(judgement) if expected.get("config_error") else list(texts_of(judgement))
    for pattern in expected.get("says", ()):
        if not any(re.search(pattern, text) for text in said):
            yield f"nothing says {pattern}"


def _without(need: Table, fixes: Iterable[Planned]) -> Iterator[str]:
    for one in fixes:
        if one.fix.id == need["of"] and not any(
            re.search(need["knob"], line) for line in lines_of(one.knobs)
        ):
            yield f"{need['of']} does not set {need['knob']}: {need['because']}"


def _forbidden(case: Case, judgement: Judgement) -> list[str]:
    plan = [*judgement.plan.fixes, *judgement.plan.levers]
    return [
        f"{rule}"
        for rule in case.expected.get("must_not", ())
        if broken(rule, plan, list(texts_of(judgement)))
    ]


def broken(rule: Table, plan: list[Planned], texts: list[str]) -> bool:
    """Whether a plan holds what the row forbids."""
    ids = [one.fix.id for one in plan]
    if "fix" in rule:
        mine = [one for one in plan if one.fix.id == rule["fix"]]
        return any(not _excused(rule, one) for one in mine)
    if "first" in rule:
        return ids[:1] == [rule["first"]]
    if "before" in rule:
        one, other = rule["before"]
        return one in ids and (other not in ids or ids.index(one) < ids.index(other))
    if "together" in rule:
        return set(rule["together"]) <= set(ids)
    if "text" in rule:
        return any(re.search(rule["text"], text) for text in texts)
    return any(_sets(rule, one) for one in plan if rule.get("of", one.fix.id) == one.fix.id)


def _excused(rule: Table, one: Planned) -> bool:
    return "unless" in rule and any(re.search(rule["unless"], gain.text) for gain in one.fix.gains)


def _sets(rule: Table, one: Planned) -> bool:
    if one.fix.id == rule.get("unless_of"):
        return False
    lines = lines_of(one.knobs)
    if "unless_knob" in rule and any(re.search(rule["unless_knob"], line) for line in lines):
        return False
    if "with_knob" in rule and not any(re.search(rule["with_knob"], line) for line in lines):
        return False
    return any(re.search(rule["knob"], line) for line in lines)


def lines_of(knobs: Knobs) -> list[str]:
    """All spellings of a change."""
    return [line for spelling in asdict(knobs).values() for line in spelling]


def texts_of(judgement: Judgement) -> Iterator[str]:
    """Every sentence of a judgement that a reader may take for advice."""
    verdict = judgement.verdict
    yield from verdict.because
    yield from verdict.confidence_because
    for wall in judgement.walls:
        yield from (*wall.missing, wall.cure)
    for one in (*judgement.plan.fixes, *judgement.plan.levers):
        yield from (one.fix.title, *one.fix.side_effects, one.fix.verify, *lines_of(one.knobs))
        yield from (need.text for need in one.preconditions)
    for refused in judgement.plan.refused:
        yield refused.unlocked_by
    yield from config_texts(judgement)


def config_texts(judgement: Judgement) -> list[str]:
    """What is said of the configuration itself: rules it breaks, what contradicts it, what failed for it."""
    run = judgement.run
    broken = [text for one in check_rules(run) for text in (one.text, one.cure)]
    found = [text for one in find_contradictions(run) for text in (one.text, one.evidence, one.fix)]
    failures = explain_failures(run)
    failed = [text for one in failures for text in (one.text, one.confirm, one.cure)]
    return [*broken, *found, *failed]


def of_case(case: Case) -> Result:
    return result_of_run("0", judgement_of(case), about="case.yaml", judged=True)
