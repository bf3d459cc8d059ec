"""One defect, one entry: what rules, findings, the log and Megatron-Core itself tell of the same
thing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from heuristics.config.view import Trust
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
from traces.toml_tables import read_table

T = TypeVar("T")
KINDS: Final[tuple[DefectKind, ...]] = get_args(DefectKind)


class _Leads(Struct, frozen=True, forbid_unknown_fields=True):
    """What a defect is, and what it leads to."""

    kind: DefectKind
    cost: str


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
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
    order = {one.id: place for place, one in enumerate(findings)}
    return tuple(sorted(entries, key=lambda one: (KINDS.index(one.kind), _place(one, order))))


def _place(one: Defect, order: Mapping[str, int]) -> int:
    """Among its kind: rules that are refused in the order of the tables, all else as it was
    found.
    """
    places = [order[id] for id in one.of if id in order]
    if one.kind in KINDS[:2] or not places:
        return -1
    return min(places)


def _add(entries: list[Defect], new: Defect, told: str | None) -> None:
    for at, old in enumerate(entries):
        if told is not None and old.tells(told):
            is_better = old.kind in ("warned", "no_effect") and new.kind == "not_as_written"
            words = new if is_better else old
            entries[at] = replace(
                old,
                what=words.what,
                cure=words.cure,
                cost=words.cost,
                kind=min(old.kind, new.kind, key=KINDS.index),
                seen=_once((*old.seen, *new.seen)),
                of=_once((*old.of, *new.of)),
            )
            return
    entries.append(new)


def _once(several: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(several))


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
        for one in [*_met_by(run, first, left)] if first.set and left else ():
            also.append(one.what)
            seen += one.seen
            of += one.of
            left.remove(one)
        kept.append(replace(first, also=tuple(also), seen=_once(seen), of=tuple(of)))
    return kept


def _met_by(run: Run, first: Defect, others: list[Defect]) -> Iterator[Defect]:
    still = {one.id for one in check_rules(run.changed(first.set))}
    if first.id in still:
        return
    for one in others:
        is_lighter = KINDS.index(one.kind) >= KINDS.index(first.kind)
        asked = one.set.keys() & first.set.keys() if one.set else _asks_for(one.id, first.set)
        if one.id not in still and is_lighter and asked:
            yield one


def _asks_for(id: str, knobs: Collection[str]) -> bool:
    """Whether what a rule asks for, and not only what it is about, names one of some knobs."""
    rule, asked = rules().get(id), set[str]()
    for one in (rule.needs, rule.forbids) if rule else ():
        if one:
            asked.update(one.knobs)
    return not asked.isdisjoint(knobs)


def _of_rule(run: Run, rule: Rule) -> Defect:
    by_knob, seen = run.config.written.by_knob, []
    for knob in rule.knobs:
        if knob in by_knob:
            seen.append(Sighting("configuration", knob, by_knob[knob].said))
    cure = cure_in(run, rule)
    leads = _TABLE.level.get(rule.level) or _TABLE.by[rule.by]
    framework = "Megatron-Bridge" if rule.by == "megatron_bridge" else "Megatron-Core"
    return replace(
        _NOTHING,
        id=rule.id,
        kind=leads.kind,
        what=rule.text,
        cure=_spelled(rule, cure, run),
        fix=rule.fix,
        cost=leads.cost,
        since=f"{framework} {rule.since}" if rule.since else "",
        until=f"{framework} {rule.until}" if rule.until else "",
        set=cure.set,
        seen=tuple(seen),
        of=(rule.id, *rule.same),
    )


def _spelled(rule: Rule, cure: Cure, run: Run) -> str:
    """The cure in words, with what it takes beside, or what it leads to."""
    own = rule.cure_of(run.view(Trust.CHECKED))
    if cure.beside:
        beside = " and ".join(words_of(knob, value, rule.by) for knob, value in cure.beside.items())
        return say("findings.cure-with", cure=own, beside=beside)
    if cure.then:
        return say("findings.cure-then", cure=own, text=cure.then[0].text)
    return own


def _of_finding(one: ConfigFinding) -> Defect:
    leads, of = _TABLE.state[one.state], [one.id]
    for row in TABLE.get(one.id, ()):
        of += row.same
    return replace(
        _NOTHING,
        id=one.id,
        kind=leads.kind,
        what=one.text,
        cure=one.fix,
        cost=leads.cost,
        seen=(Sighting("evidence", one.evidence.rstrip("."), ""),),
        of=tuple(of),
    )


def _of_failure(one: Failure) -> Defect:
    id, leads = one.rule or one.id, _TABLE.state[one.state]
    return replace(
        _NOTHING,
        id=id,
        kind=leads.kind,
        what=one.text,
        cure=one.cure,
        fix=one.fix,
        cost=leads.cost,
        set=one.set,
        seen=(Sighting("log", one.id, f"line {one.line}" if one.line else ""),),
        of=_once((id, one.id)),
    )


def _of_answer(one: Answer) -> Defect:
    leads = _TABLE.by["core"]
    return replace(
        _NOTHING,
        kind=leads.kind,
        what=say("findings.core-rejects", text=one.text),
        cost=leads.cost,
        seen=(Sighting("megatron_core", one.text, one.tier),),
    )
