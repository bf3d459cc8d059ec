"""One defect, one entry: what rules, findings, the log and Megatron-Core itself tell of the same
thing.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Final, get_args

from msgspec.structs import replace

from heuristics.config.logic import each_once
from heuristics.findings.contradictions import TABLE
from heuristics.result.configured import (
    ConfigFinding,
    Defect,
    DefectKind,
    FailureState,
    FindingState,
    Sighting,
)
from heuristics.rules.check import check_rules
from heuristics.rules.cures import Cure, cure_in
from heuristics.rules.failures import Failure
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.rules import By, Rule, known_lines, rules, words_of
from heuristics.run.run import Run
from heuristics.words import say
from traces.sections.section import copied
from traces.toml_tables import TableRow, read_table

KINDS: Final[tuple[DefectKind, ...]] = get_args(DefectKind)


class _Leads(TableRow):
    """What a defect is, and what it leads to."""

    kind: DefectKind
    cost: str


class _Table(TableRow):
    """By the state of a finding or failure, the level of a rule that is no error, and who
    refuses.
    """

    state: dict[FindingState | FailureState, _Leads]
    level: dict[str, _Leads]
    by: dict[By, _Leads]


_TABLE: Final = read_table("heuristics.findings", "defects.toml", _Table)
_NOTHING: Final = Defect("", "found", "", "", "", "", "", "", {}, (), (), ())
"""A defect of which nothing is told."""


def defects_of(
    run: Run,
    broken: tuple[Rule, ...],
    findings: tuple[ConfigFinding, ...],
    failures: tuple[Failure, ...],
    answers: tuple[Answer, ...] = (),
) -> tuple[Defect, ...]:
    """Every defect once, heaviest first; of what does not run as written, in the order of the
    findings.
    """
    entries = _with_cures(run, list(map(partial(_of_rule, run), broken)))
    for new in (*map(_of_finding, findings), *map(_of_failure, failures)):
        _add(entries, new, new.id)
    for answer in answers:
        if answer.answer == "rejected":
            refusing = next(filter(partial(_is_refusing, answer), entries), None)
            _add(entries, _of_answer(answer), refusing.id if refusing else None)
    order = {finding.id: place for place, finding in enumerate(findings)}
    return tuple(sorted(entries, key=lambda entry: (KINDS.index(entry.kind), _place(entry, order))))


def _place(defect: Defect, order: Mapping[str, int]) -> int:
    """Among its kind: rules that are refused in the order of the tables, all else as it was
    found.
    """
    places = [order[id] for id in defect.of if id in order]
    if defect.kind in KINDS[:2] or not places:
        return -1
    return min(places)


def _add(entries: list[Defect], new: Defect, told_id: str | None) -> None:
    for at, old in enumerate(entries):
        if told_id is not None and old.tells(told_id):
            # who says that it does not run as written says more than a warning
            is_better = old.kind in ("warned", "no_effect") and new.kind == "not_as_written"
            words = new if is_better else old
            entries[at] = replace(
                old,
                what=words.what,
                cure=words.cure,
                cost=words.cost,
                kind=min(old.kind, new.kind, key=KINDS.index),
                seen=each_once((*old.seen, *new.seen)),
                of=each_once((*old.of, *new.of)),
            )
            return
    entries.append(new)


def _printed(entry: Defect) -> Iterator[str]:
    """What is printed where its rules refuse."""
    for id in entry.of:
        if id in rules():
            for line in rules()[id].all_lines:
                yield from known_lines().by_id[line].texts


def _is_refusing(answer: Answer, entry: Defect) -> bool:
    return any(text in answer.text for text in _printed(entry))


def _with_cures(run: Run, entries: list[Defect]) -> list[Defect]:
    """Entries of which none is met by the cure of another; those that are stand under it.

    An entry with settings of its own, none of them in that cure, stays: who keeps the feature needs
    them.
    """
    left, kept = list(entries), []
    while left:
        first = left.pop(0)
        also, seen, of = list[str](), [*first.seen], [*first.of]
        for met in [*_met_by(run, first, left)] if first.set and left else ():
            also.append(met.what)
            seen += met.seen
            of += met.of
            left.remove(met)
        kept.append(replace(first, also=tuple(also), seen=each_once(seen), of=tuple(of)))
    return kept


def _met_by(run: Run, first: Defect, lighter: list[Defect]) -> Iterator[Defect]:
    still = {rule.id for rule in check_rules(run.changed(first.set))}
    if first.id in still:
        return
    for entry in lighter:
        is_lighter = KINDS.index(entry.kind) >= KINDS.index(first.kind)
        asks = entry.set.keys() & first.set.keys() if entry.set else _asks_for(entry.id, first.set)
        if entry.id not in still and is_lighter and asks:
            yield entry


def _asks_for(id: str, knobs: Collection[str]) -> bool:
    """Whether what a rule asks for, and not only what it is about, names one of some knobs."""
    rule, asked_knobs = rules().get(id), set[str]()
    for condition in (rule.needs, rule.forbids) if rule else ():
        if condition:
            asked_knobs.update(condition.knobs)
    return not asked_knobs.isdisjoint(knobs)


def _of_rule(run: Run, rule: Rule) -> Defect:
    by_knob, seen = run.config.written.by_knob, []
    for knob in rule.knobs:
        if knob in by_knob:
            seen.append(Sighting("configuration", knob, by_knob[knob].said))
    cure = cure_in(run, rule)
    leads = _TABLE.level.get(rule.level) or _TABLE.by[rule.by]
    framework = "Megatron-Bridge" if rule.by == "megatron_bridge" else "Megatron-Core"
    return copied(
        Defect,
        _NOTHING,
        rule,
        leads,
        what=rule.text,
        cure=_spelled(rule, cure, run),
        since=f"{framework} {rule.since}" if rule.since else "",
        until=f"{framework} {rule.until}" if rule.until else "",
        set=cure.set,
        seen=tuple(seen),
        of=(rule.id, *rule.same),
    )


def _spelled(rule: Rule, cure: Cure, run: Run) -> str:
    """The cure in words, with what it takes beside, or what it leads to."""
    own = rule.cure_of(run.checked)
    if cure.beside:
        beside = " and ".join(words_of(knob, value, rule.by) for knob, value in cure.beside.items())
        return say("findings.cure-with", cure=own, beside=beside)
    if cure.then:
        return say("findings.cure-then", cure=own, text=cure.then[0].text)
    return own


def _of_finding(finding: ConfigFinding) -> Defect:
    leads, of = _TABLE.state[finding.state], [finding.id]
    for row in TABLE.get(finding.id, ()):
        of += row.same
    return copied(
        Defect,
        _NOTHING,
        leads,
        id=finding.id,
        what=finding.text,
        cure=finding.fix,
        seen=(Sighting("evidence", finding.evidence.rstrip("."), ""),),
        of=tuple(of),
    )


def _of_failure(failure: Failure) -> Defect:
    id, leads = failure.rule or failure.id, _TABLE.state[failure.state]
    return copied(
        Defect,
        _NOTHING,
        failure,
        leads,
        id=id,
        what=failure.text,
        seen=(Sighting("log", failure.id, f"line {failure.line}" if failure.line else ""),),
        of=each_once((id, failure.id)),
    )


def _of_answer(answer: Answer) -> Defect:
    return copied(
        Defect,
        _NOTHING,
        _TABLE.by["core"],
        what=say("findings.core-rejects", text=answer.text),
        seen=(Sighting("megatron_core", answer.text, answer.tier),),
    )
