"""What to do: the fixes in the order of the result, each with one precondition and one spelling first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from heuristics.result.judged import Arm, Fix, Knobs, Precondition, Refused
from heuristics.result.result import Result
from reports.content.analysis.alike import evidence, led, others
from reports.content.analysis.unproven import find_out, open_walls, unused, with_finds
from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Part,
    Plan,
    Spelling,
    Step,
    Words,
    items,
    words,
)
from reports.content.check_defects import Weight, answer_words, defects
from reports.content.check_workflow import choices
from reports.content.names import is_cure, issue_sentence, name_of, sentence
from traces.missing import Missing, known
from traces.patterns import compiled
from traces.settings.harness_recipes import RECIPE
from traces.settings.knobs import by_harness
from traces.settings.spelling import harness_line
from traces.spelling import counted, percent, saving

MOST: Final = 3
SPELLINGS: Final[Mapping[str, str]] = {
    "megatron_lm": "Megatron-LM",
    "environment": "environment",
    "megatron_bridge": "Megatron-Bridge",
    "bridge_harness": "Bridge's scripts/performance",
    "pytorch": "PyTorch",
}
"""Ways to write a change, by the field of `Knobs`, and what they are called."""
_BRIDGE: Final = ("megatron_bridge", "bridge_harness", "environment", "megatron_lm", "pytorch")
_SCRIPTS: Final = ("bridge_harness", "environment", "megatron_bridge", "megatron_lm", "pytorch")
_PYTORCH: Final = ("pytorch", "environment", "megatron_lm", "megatron_bridge", "bridge_harness")
_BREAKING: Final = {
    "--core-version",
    "--te-version",
    "--torch-version",
    "--flex-package",
    "--memory-tight",
    "torch.cuda.max_memory_reserved()",
}
"""What would tell of a version, a package or room: without these a change fails, not only gains nothing."""

_STATES: Final = {"met": "Met", "unmet": "Needs", "unknown": "Check"}


def plan(result: Result, most: int | None = MOST) -> Plan:
    fixes, errors = result.fixes or result.levers, tuple(_corrections(result))
    beside = led(fixes)
    made = [step_of(result, fix, beside=beside.get(fix.id, ())) for fix in fixes]
    leader = {fix.id: first for first, several in beside.items() for fix in several}
    if most is None:
        made = [replace(one, saves=_beside(one, leader)) for one in made]
    steps = [*errors, *with_finds(result, [one for one in made if most is None or one.id in beside], MOST)]
    if not steps:
        found = tuple(find_out(result))
        return Plan("DO THIS" if found else "WHAT TO DO", found, words(_why_none(result)))
    shown = steps[: most if most is None else most + _leading(steps)]
    title = "DO THIS, in this order" if len(shown) > 1 else "DO THIS"
    late, first = known(result.run.late) if result.run else None, result.fixes[0].id if result.fixes else ""
    if late is not None and late.repair_first and first not in late.repair_fixes:
        title = f"THEN {title}"
    unproven = _unproven(result)
    if not result.fixes and not errors:
        title = "TO BE CONFIRMED, in this order" if unproven else "STILL FASTER, though nothing is wrong"
    return Plan(title, tuple(shown), unproven or _together(result, shown), len(steps) - len(shown))


def _beside(step: Step, leader: Mapping[str, str]) -> str:
    """What a step saves; of one that stands beside another in whose place it may be tried."""
    return f"in place of {leader[step.id]}" if step.id in leader else step.saves


def _is_open(result: Result, fix: Fix) -> bool:
    """Whether a lever is for a wall that is not decided, or not which part of it."""
    return fix in result.levers and any(
        wall.id == fix.wall and wall.outcome in ("unmeasurable", "finding") for wall in result.walls
    )


def _unproven(result: Result) -> Words:
    """Why levers of walls that are not decided may help, and what would confirm it."""
    levers = {fix.wall: fix.gain_frac for fix in result.levers if _is_open(result, fix)}
    gaps = {wall: gap for wall, gap in levers.items() if isinstance(gap, Missing)}
    reasons = dict.fromkeys(sentence(f"no gain is proven: {gap.reason}") for gap in gaps.values())
    parts = [
        f"To plan for {name_of(wall.id)}: {gaps[wall.id].cure}."
        for wall in result.walls
        if wall.outcome == "finding" and wall.id in gaps
    ]
    open_ = [wall for wall in result.walls if wall.id in levers and is_cure(wall.cure)]
    for cure in dict.fromkeys(wall.cure for wall in open_):  # one cure of several stands once
        several = " and ".join(name_of(wall.id) for wall in open_ if wall.cure == cure)
        parts.append(f"To judge {several}: {cure}.")
    return words(" ".join((*reasons, *parts)))


def _leading(steps: Sequence[Step]) -> int:
    """How many first steps are upgrades, which set nothing: what stands on them is shown as well."""
    first = next((place for place, one in enumerate(steps) if one.spellings), 0)
    return first if {one.id for one in steps[:first]} <= {*steps[first].after} else 0


_WHY_CORRECT: Final = {
    Weight.REJECTED: "Megatron rejects it",
    Weight.FAILS: "it fails as it runs",
    Weight.NOT_AS_WRITTEN: "does not run as written",
}


def _corrections(result: Result) -> Iterator[Step]:
    for one in defects(result):
        if one.weight <= Weight.NOT_AS_WRITTEN:
            why = _WHY_CORRECT[one.weight]
            notes = (words(one.cure),) if one.cure else ()
            yield Step(one.id, words(f"Correct the configuration: {one.what}"), why, (), notes)


def step_of(result: Result, fix: Fix, everything: bool = False, beside: Sequence[Fix] = ()) -> Step:
    """`beside`: the changes that act on the same time, of which this is the one to try."""
    low, high = _gain(fix)
    notes = [words(one) for one in (*fix.how, *_left_out(fix, _order(result)))]
    notes += [_experiment(fix.arms)] if fix.arms else []
    notes += _in_place_of(result, fix)
    notes += map(words, _all_notes(fix) if everything else (*_one_note(fix), *_issues(fix, everything)))
    notes += [words("Compare by time per token, not per step.")] if fix.per_token else []
    told = (fix.wide_because, evidence(fix) if beside else "", others(beside))
    notes += [words(one) for one in told if one]
    ways, saves = (*_ways(fix, _order(result)),), _saves(result, fix)
    return Step(fix.id, words(fix.title), saves, ways, (*notes,), low, high, fix.after, fix.gain_replayed)


def _gain(fix: Fix) -> tuple[float | None, float | None]:
    gain = known(fix.gain_frac)
    return (known(gain[0]), gain[1]) if gain else (None, None)


def _saves(result: Result, fix: Fix) -> str:
    """A saving is a replay's; without one of its own a change only acts on some of the time."""
    low, high = _gain(fix)
    if high is None:
        return "to be confirmed" if _is_open(result, fix) else "saving not measured"
    return f"saves {saving(low, high)}" if fix.gain_replayed else f"targets {percent(high)}"


def _in_place_of(result: Result, fix: Fix) -> Iterator[Words]:
    """Flags of the command that a flag of the change takes the place of: both cannot stand."""
    configuration = known(result.configuration)
    if configuration is None or _order(result) is not _SCRIPTS:
        return
    written = {one.knob: one for one in configuration.settings if compiled(r".+:\d+").fullmatch(one.said)}
    several = [fix.knobs, *(arm.knobs for arm in fix.arms)]
    flags = dict.fromkeys(line.partition(" ")[0] for one in several for line in one.bridge_harness)
    for flag in flags:
        knob = by_harness().get(flag)
        now = written.get(knob.id) if knob is not None else None
        if now is not None and not now.withheld and (line := harness_line(now.knob, now.value)):
            yield words("In place of: ", Code(line), f" ({now.said})")


def _experiment(arms: Sequence[Arm]) -> Words:
    names = " against ".join(arm.name for arm in arms)
    return words(
        f"The guide names no best one: measure {names}, one run each, under the same routing. Forced balance "
        "on both sides makes them comparable; accept the faster one under real routing."
    )


def _ways(fix: Fix, order: Iterable[str]) -> Iterator[Spelling]:
    if not fix.arms:
        yield from _spellings(fix.knobs, order)
    for arm in fix.arms:
        for one in _spellings(arm.knobs, order):
            yield replace(one, name=f"{arm.name}, {one.name}", arm=True)


def _order(result: Result) -> Iterable[str]:
    """The spellings, those of the framework in use first: the configuration's, else what the trace shows."""
    configuration = known(result.configuration)
    if configuration is not None and known(configuration.framework) == "megatron_bridge":
        return _SCRIPTS if any(one.knob == RECIPE for one in configuration.settings) else _BRIDGE
    return SPELLINGS if result.framework == "megatron" else _PYTORCH


def _spellings(knobs: Knobs, order: Iterable[str]) -> Iterator[Spelling]:
    for id_ in order:
        lines = tuple(line for line in getattr(knobs, id_) if not _names_what_goes(line))
        if lines:
            yield Spelling(id_, SPELLINGS[id_], CodeBlock(lines, "python" if id_ == "pytorch" else "sh"))


def _names_what_goes(line: str) -> bool:
    """`(leave out --flag)`, which is nothing to type."""
    return line.startswith("(")


def _left_out(fix: Fix, order: Iterable[str]) -> Iterator[str]:
    """What goes from the command or the environment, in the spelling in use."""
    several = (fix.knobs, *(arm.knobs for arm in fix.arms))
    used = next((id_ for id_ in order if any(getattr(one, id_) for one in several)), "")
    ways = [id_ for id_ in dict.fromkeys((used, "environment")) if id_]
    lines = dict.fromkeys(line for one in several for id_ in ways for line in getattr(one, id_))
    for line in filter(_names_what_goes, lines):
        yield f"{line[1:2].upper()}{line[2:-1]}."


def _one_note(fix: Fix) -> Iterator[str]:
    room = known(fix.room)
    open_ = [one for one in fix.preconditions if one.state != "met"]
    if fix.after:
        yield f"After {' and '.join(fix.after)}, which makes it possible."
    elif room is not None and room.fits is False:
        yield f"Memory: {room.because}."
    elif open_:
        first = min(open_, key=lambda one: (one.state != "unmet", one.cure not in _BREAKING))
        yield _condition(first) + (f" (and {len(open_) - 1} more)" if len(open_) > 1 else "")


def _issues(fix: Fix, everything: bool) -> Iterator[str]:
    """Published issues of the change: those that fit this run, with `everything` also where that is open."""
    for one in fix.known_issues:
        if everything or not one.only_if:
            yield f"Known issue {issue_sentence(one)}"


def _condition(one: Precondition) -> str:
    cure = f" ({one.cure})" if one.cure and one.state == "unmet" else ""
    return f"{_STATES[one.state]}: {one.text}{cure}"


def _all_notes(fix: Fix) -> Iterator[str]:
    if fix.first_because:
        yield f"First because: {fix.first_because}"
    yield f"Versions: {fix.versions}"
    for one in fix.preconditions:
        cure = f" ({one.cure})" if one.cure and one.state == "unknown" else ""
        yield f"{_condition(one)}{cure}"
    yield from answer_words(fix.checked)
    if (room := known(fix.room)) is not None:
        yield f"Memory: {room.because}"
    if fix.after:
        yield f"After: {', '.join(fix.after)}"
    if fix.shares_with:
        yield f"Acts on the same costs as {', '.join(fix.shares_with)}: their savings do not add up"
    if (source := known(fix.gain_source)) is not None:
        yield f"Elsewhere: {source}"
    yield from _issues(fix, everything=True)
    yield from (f"Side effect: {effect}" for effect in fix.side_effects)
    yield from (f"Verify: {fix.verify}", f"Sources: {'; '.join(fix.sources)}")


def _together(result: Result, shown: Sequence[Step]) -> Words:
    """What the listed steps save together, one replayed figure; that they overlap where none was replayed."""
    ids = {step.id for step in shown}
    for one in result.combined:
        if {*one.ids} == ids:
            every = {2: "Both", 3: "All three"}.get(len(ids), f"All {len(ids)}")
            return words(f"{every} together save {saving(*one.gain_frac)}.")
    if pairs := [one for one in result.combined if len(one.ids) == 2 and ids > {*one.ids}]:
        best = max(pairs, key=lambda one: one.gain_frac)
        first, second = (place for place, step in enumerate(shown, start=1) if step.id in best.ids)
        return words(f"{first} and {second} together save {saving(*best.gain_frac)}; savings overlap.")
    listed = [fix for fix in (*result.fixes, *result.levers) if fix.id in ids]
    overlap = any(ids & {*fix.shares_with} for fix in listed)
    return words("Their savings overlap and do not add up." if overlap else "")


def whole_plan(result: Result) -> Part:
    fixes = [step_of(result, fix, everything=True) for fix in (*result.fixes, *result.levers)]
    blocks: list[Block] = [Plan("Every step", tuple(fixes))] if fixes else []
    blocks += [*items("Refused", map(_refused, result.refused)), *choices(result)]
    return Part("The whole plan", tuple(blocks), "plan")


def _refused(one: Refused) -> str:
    unlocked = f" Possible with: {one.unlocked_by}." if one.unlocked_by else ""
    return f"{one.id} {one.title}: {one.because}.{unlocked}"


def _why_none(result: Result) -> str:
    if known(result.verdict.wall) is None:
        decided = not (open_walls(result) or unused(result))
        return "Nothing in this recording calls for a change." if decided else ""
    if result.refused:
        refused = counted(len(result.refused), "known change was", "known changes were")
        there = [one for one in result.refused if one.kind != "absent"]
        why = f"; {there[0].id}: {there[0].because}" if there else ""
        return f"No change fits: {refused} refused{why}."
    return "No change is known here for this framework."
