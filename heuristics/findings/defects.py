"""One defect, one entry: what rules, findings, the log and Megatron-Core itself tell of the same thing."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from heuristics.result.configured import (
    ConfigFinding,
    Defect,
    DefectKind,
    FailureState,
    FindingState,
    Sighting,
)
from heuristics.rules.check import check_rules
from heuristics.rules.failures import Failure
from heuristics.rules.megatron.answer import Answer
from heuristics.rules.rules import Rule, known_lines, rules
from heuristics.run.run import Run

KINDS: Final[tuple[DefectKind, ...]] = (
    "rejected",
    "fails",  # nobody refuses it before it runs
    "not_as_written",
    "found",
    "warned",
    "no_effect",
)
_REFUSED: Final = KINDS[:2]

_OF_LEVEL: Final[Mapping[str, DefectKind]] = {
    "error": "rejected",
    "warning": "warned",
    "ignored": "no_effect",
}
_STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "CFG-ep-overlap-left-off": ("profile-recipe-default",),
    "CFG-memory-estimate": ("fit-first",),
}
"""Finding -> steps of the workflow that tell the same, where no rule does."""
_FOUND: Final = frozenset({"default_left_off", "not_representative", "counted_otherwise", "unexplained"})
_KIND_OF: Final[Mapping[str, DefectKind]] = {"illegal": "rejected", "may_not_fit": "warned"}
_COSTS: Final[Mapping[str, str]] = {
    "core": "training does not start",
    "megatron_lm": "training does not start",
    "megatron_bridge": "training does not start",
    "arguments": "training does not start",
    "dispatcher": "the model cannot be built, or the first step fails",
    "te": "the first step fails",
    "ours": "the run fails, or does not do what it is asked for",
}
"""What a broken rule leads to, by who refuses."""
_LEVEL_COSTS: Final = {
    "warning": "the run goes on, with this risk",
    "ignored": "the setting has no effect",
}
_STATE_COSTS: Final[Mapping[FindingState | FailureState, str]] = {
    "requested_not_active": "the feature does not run",
    "rejected": "the feature does not run",
    "overwritten": "the setting has no effect",
    "inert": "the setting has no effect",
    "active_not_requested": "the run does what nobody asked for",
    "default_left_off": "what it would gain is left",
    "misspelled": "the setting is not read",
    "illegal": "training does not start",
    "not_representative": "the recording does not stand for the run",
    "logged_otherwise": "log and configuration do not describe the same run",
    "counted_otherwise": "recording and configuration do not describe the same steps",
    "unexplained": "the run stopped",
    "does_not_fit": "training runs out of memory",
    "may_not_fit": "training may run out of memory",
    "failed": "the run stopped",
    "hung": "the run does not go on",
    "skipped": "the feature does not run",
    "ineffective": "the feature runs without its effect",
}


def defects_of(
    run: Run,
    broken: tuple[Rule, ...],
    findings: tuple[ConfigFinding, ...],
    failures: tuple[Failure, ...],
    answers: tuple[Answer, ...] = (),
) -> tuple[Defect, ...]:
    """Every defect once, heaviest first; of what does not run as written, in the order of the findings."""
    entries = _with_cures(run, [_of_rule(one, run) for one in broken])
    for finding in findings:
        _add(entries, _of_finding(finding), _told_by_rule(finding.id, entries))
    for failure in failures:
        _add(entries, _of_failure(failure), _told_by_rule(failure.rule or failure.id, entries))
    for answer in (one for one in answers if one.answer == "rejected"):
        _add(entries, _of_answer(answer), _refused_by(answer, entries))
    order = {one.id: place for place, one in enumerate(findings)}
    return tuple(sorted(entries, key=lambda one: (KINDS.index(one.kind), _place(one, order))))


def _place(one: Defect, order: Mapping[str, int]) -> int:
    """Among its kind: rules that are refused in the order of the tables, all else as it was found."""
    places = [order[id] for id in one.of if id in order]
    return -1 if one.kind in _REFUSED or not places else min(places)


def _add(entries: list[Defect], new: Defect, told: int | None) -> None:
    """As an entry of its own, or joined with the one that tells the same."""
    if told is None:
        entries.append(new)
        return
    old = entries[told]
    is_better = old.kind in ("warned", "no_effect") and new.kind == "not_as_written"
    words = new if is_better else old
    entries[told] = replace(
        old,
        what=words.what,
        cure=words.cure,
        cost=words.cost,
        kind=min(old.kind, new.kind, key=KINDS.index),
        seen=tuple(dict.fromkeys((*old.seen, *new.seen))),
        of=tuple(dict.fromkeys((*old.of, *new.of))),
    )


def _told_by_rule(id: str, entries: list[Defect]) -> int | None:
    return next((at for at, one in enumerate(entries) if one.tells(id)), None)


def _refused_by(answer: Answer, entries: list[Defect]) -> int | None:
    """The entry of a rule whose own message the answer is."""
    for at, one in enumerate(entries):
        lines = [line for id in one.of if id in rules() for line in rules()[id].all_lines]
        if any(text in answer.text for line in lines for text in known_lines().by_id[line].texts):
            return at
    return None


def _with_cures(run: Run, entries: list[Defect]) -> list[Defect]:
    """Entries of which none is met by the cure of another; those that are stand under it.

    An entry with settings of its own, none of them in that cure, stays: who keeps the feature needs them.
    """
    left, kept = list(entries), []
    while left:
        first = left.pop(0)
        met = _met_by(run, first, left) if first.set and left else []
        kept.append(
            replace(
                first,
                also=tuple(one.what for one in met),
                seen=tuple(dict.fromkeys((*first.seen, *(at for one in met for at in one.seen)))),
                of=(*first.of, *(id for one in met for id in one.of)),
            )
        )
        left = [one for one in left if one not in met]
    return kept


def _met_by(run: Run, first: Defect, others: list[Defect]) -> list[Defect]:
    still = {one.id for one in check_rules(run.changed(first.set))}
    if first.id in still:
        return []
    lightest = KINDS.index(first.kind)
    return [
        one
        for one in others
        if one.id not in still
        and KINDS.index(one.kind) >= lightest
        and (not one.set or set(one.set) & set(first.set))
    ]


def _of_rule(rule: Rule, run: Run) -> Defect:
    by_knob = run.config.written.by_knob
    seen = [Sighting("configuration", knob, by_knob[knob].said) for knob in rule.knobs if knob in by_knob]
    return Defect(
        id=rule.id,
        kind="fails" if rule.level == "error" and rule.by == "ours" else _OF_LEVEL[rule.level],
        what=rule.text,
        cure=rule.cure_of(run.validated),
        fix=rule.fix,
        cost=_LEVEL_COSTS.get(rule.level) or _COSTS[rule.by],
        since=_release(rule, rule.since),
        until=_release(rule, rule.until),
        set=rule.set,
        seen=tuple(seen),
        also=(),
        of=(rule.id, *rule.same),
    )


def _release(rule: Rule, release: object) -> str:
    framework = "Megatron-Bridge" if rule.by == "megatron_bridge" else "Megatron-Core"
    return f"{framework} {release}" if release else ""


def _of_finding(one: ConfigFinding) -> Defect:
    kind: DefectKind = "found" if one.state in _FOUND else "not_as_written"
    kind = _KIND_OF.get(one.state, kind)
    seen = (Sighting("evidence", one.evidence.rstrip("."), ""),)
    of = (one.id, *_STEPS.get(one.id, ()))
    return Defect(one.id, kind, one.text, one.fix, "", _STATE_COSTS[one.state], "", "", {}, seen, (), of)


def _of_failure(one: Failure) -> Defect:
    where = f"line {one.line}" if one.line else ""
    seen = (Sighting("log", one.id, where),)
    return Defect(
        one.rule or one.id,
        "not_as_written" if one.state == "rejected" else "found",
        one.text,
        one.cure,
        one.fix,
        _STATE_COSTS[one.state],
        since="",
        until="",
        set=one.set,
        seen=seen,
        also=(),
        of=tuple(dict.fromkeys((one.rule or one.id, one.id))),
    )


def _of_answer(one: Answer) -> Defect:
    seen = (Sighting("megatron_core", one.text, one.tier),)
    text = f"Megatron-Core rejects it: {one.text}"
    return Defect("", "rejected", text, "", "", _COSTS["core"], "", "", {}, seen, (), ())
