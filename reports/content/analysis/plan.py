"""What to do: the fixes in the order of the result, each with one precondition and one spelling
first.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from heuristics.result.judged import Fix, Knobs, Precondition
from heuristics.result.result import Result, late_rank
from reports.content.analysis.alike import evidence, led, others
from reports.content.analysis.find_out import STEPS, find_out, with_finds
from reports.content.analysis.late import leading
from reports.content.analysis.unproven import open_walls, unused
from reports.content.blocks import (
    Block,
    Code,
    CodeBlock,
    Part,
    Plan,
    Spelling,
    Step,
    Words,
    filled,
    items,
    words,
)
from reports.content.check_defects import answer_words, first_errors
from reports.content.check_workflow import choices
from reports.content.names import (
    beyond,
    is_cure,
    issue_sentence,
    name_of,
    optional,
    sentence,
    settings_of,
    titled,
    when,
)
from reports.measures import words_of
from reports.rows import each, those
from traces.missing import Missing, known
from traces.patterns import compiled
from traces.settings.harness_recipes import RECIPE
from traces.settings.knobs import by_harness
from traces.settings.spelling import harness_line
from traces.spelling import counted, percent, saving

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
"""What would tell of a version, a package or room: without these a change fails, not only gains
nothing."""


def plan(result: Result, most: int | None = STEPS) -> Plan:
    fixes, errors = result.fixes or result.levers, []
    for defect in first_errors(result):
        what = words(f"Correct the configuration: {defect.what}")
        why, notes = words_of("why_correct")[defect.weight.name.lower()], filled((defect.cure,))
        errors.append(Step(defect.id, what, why, (), notes))
    beside, fix_steps, leaders = led(fixes), [], dict[str, str]()
    for leader, rivals in beside.items():
        leaders |= dict.fromkeys(each(rivals, "id"), f"in place of {leader}")
    for fix in fixes:
        step = step_of(result, fix, beside=beside.get(fix.id, ()))
        if most is None or fix.id in beside:
            fix_steps.append(replace(step, saves=leaders.get(fix.id, step.saves)))
    steps = [*errors, *with_finds(result, fix_steps)]
    if not steps:
        findings = tuple(find_out(result))
        why_none = words(_why_none(result, findings))
        return Plan("DO THIS" if findings else "WHAT TO DO", findings, why_none)
    shown = steps
    if most is not None:
        # of first steps that are upgrades, which set nothing, what stands on them is shown as well
        first = next((place for place, listed_step in enumerate(steps) if listed_step.spellings), 0)
        if {*each(steps[:first], "id")} <= {*steps[first].after}:
            most += first
        shown = steps[:most]
    unproven = _unproven(result)
    if result.fixes or errors:
        title = f"DO THIS{when(len(shown) > 1, ', in this order')}"
        late = leading(result)
        if late and not {*each(result.fixes[:1], "id")} & {*late.repair_fixes}:
            title = f"THEN {title}"
    elif unproven:
        title = "TO BE CONFIRMED, in this order"
    else:
        title = f"STILL FASTER{when(not late_rank(result), ', though nothing is wrong')}"
    return Plan(title, tuple(shown), unproven or _together(result, shown), len(steps) - len(shown))


def _is_open(result: Result, fix: Fix) -> bool:
    """Whether a lever is for a wall that is not decided, or not which part of it."""
    outcomes = {*each(those(result.walls, id=fix.wall), "outcome")}
    return fix in result.levers and not outcomes <= {"clear"}


def _unproven(result: Result) -> Words:
    """Why levers of walls that are not decided may help, and what would confirm it."""
    levers = {fix.wall: fix.gain_frac for fix in result.levers if _is_open(result, fix)}
    parts, cures = dict[str, None](), defaultdict[str, list[str]](list)
    for gap in levers.values():
        if isinstance(gap, Missing):
            parts.setdefault(sentence(f"no gain is proven: {gap.reason}"))
    for wall in result.walls:
        if wall.outcome == "finding" and isinstance(gap := levers.get(wall.id), Missing):
            parts.setdefault(f"To plan for {name_of(wall.id)}: {gap.cure}.")
        if wall.id in levers and is_cure(wall.cure):  # one cure of several stands once
            cures[wall.cure].append(name_of(wall.id))
    for cure, several in cures.items():
        parts.setdefault(f"To judge {' and '.join(several)}: {cure}.")
    return words(" ".join(parts))


def step_of(result: Result, fix: Fix, everything: bool = False, beside: Sequence[Fix] = ()) -> Step:
    """`beside`: the changes that act on the same time, of which this is the one to try."""
    gain, order = fix.gain_frac, _order(result)
    low, high = (known(gain[0]), gain[1]) if gain else (None, None)
    if high is None:
        saves = "to be confirmed" if _is_open(result, fix) else "saving not measured"
    else:  # a saving is a replay's; without one of its own a change only acts on some of the time
        saves = f"saves {saving(low, high)}" if fix.gain_replayed else f"targets {percent(high)}"
    notes: list[str | Words] = [*fix.how, *_left_out(fix, order)]
    if fix.arms:
        notes.append(_EXPERIMENT.format(names=" against ".join(each(fix.arms, "name"))))
    notes += _in_place_of(result, fix)
    if everything:
        notes += _all_notes(fix)
    else:
        notes += _one_note(fix)
    notes.append(when(fix.per_token, "Compare by time per token, not per step."))
    notes += (fix.wide_because, when(beside, evidence(fix)), others(beside))
    ways = [] if fix.arms else [*_spellings(fix.knobs, order)]
    for arm in fix.arms:
        for spelling in _spellings(arm.knobs, order):
            ways.append(replace(spelling, name=f"{arm.name}, {spelling.name}", arm=True))
    gained = low, high, fix.after, fix.gain_replayed
    return Step(fix.id, words(fix.title), saves, tuple(ways), filled(notes), *gained)


def _in_place_of(result: Result, fix: Fix) -> Iterator[Words]:
    """Flags of the command that a flag of the change takes the place of: both cannot stand."""
    if _order(result) is not _SCRIPTS:
        return
    written = settings_of(result)
    for line in _lines_of(fix, "bridge_harness"):
        knob = by_harness().get(line.partition(" ")[0])
        now = written.pop(knob.id, None) if knob else None
        if not now or now.withheld or not _OF_A_LINE.fullmatch(now.said):
            continue
        if before := harness_line(now.knob, now.value):
            yield words("In place of: ", Code(before), f" ({now.said})")


def _lines_of(fix: Fix, spelling: str) -> list[str]:
    """The lines of a change in one spelling, those of all its arms."""
    arms = fix.knobs, *each(fix.arms, "knobs")
    return [line for knobs in arms for line in getattr(knobs, spelling)]


_EXPERIMENT: Final = (
    "The guide names no best one: measure {names}, one run each, under the same routing. Forced "
    "balance on both sides makes them comparable; accept the faster one under real routing."
)


def _order(result: Result) -> Iterable[str]:
    """The spellings, those of the framework in use first: the configuration's, else what the trace
    shows.
    """
    configuration = result.configuration
    if configuration and configuration.framework == "megatron_bridge":
        if RECIPE in settings_of(result):
            return _SCRIPTS
        return _BRIDGE
    if result.framework == "megatron":
        return words_of("spelling")
    return _PYTORCH


_OF_A_LINE: Final = compiled(r".+:\d+")
"""Where a setting is from that stands in a command or a file."""
_GOES: Final = "("
"""How a line begins that is nothing to type: `(leave out --flag)`."""


def _spellings(knobs: Knobs, order: Iterable[str]) -> Iterator[Spelling]:
    for id_ in order:
        lines = tuple(line for line in getattr(knobs, id_) if not line.startswith(_GOES))
        if lines:
            yield Spelling(
                id_,
                words_of("spelling")[id_],
                CodeBlock(lines, "python" if id_ == "pytorch" else "sh"),
            )


def _left_out(fix: Fix, order: Iterable[str]) -> Iterator[str]:
    """What goes from the command or the environment, in the spelling in use."""
    used = next(filter(None, map(partial(_lines_of, fix), order)), [])
    for line in dict.fromkeys((*used, *_lines_of(fix, "environment"))):
        if line.startswith(_GOES):
            yield f"{line[1:2].upper()}{line[2:-1]}."


def _one_note(fix: Fix) -> Iterator[str]:
    room = fix.room
    open_ = [precondition for precondition in fix.preconditions if precondition.state != "met"]
    if fix.after:
        yield f"After {' and '.join(fix.after)}, which makes it possible."
    elif room and room.fits is False:
        yield f"Memory: {room.because}."
    elif open_:
        first = min(open_, key=lambda need: (need.state != "unmet", need.cure not in _BREAKING))
        yield _condition(first, "unmet") + beyond(len(open_), 1, " (and {} more)")
    yield from _issues(fix, everything=False)


def _issues(fix: Fix, everything: bool) -> Iterator[str]:
    """Published issues of the change: those that fit this run, with `everything` also where that is
    open.
    """
    for issue in fix.known_issues:
        if everything or not issue.only_if:
            yield f"Known issue {issue_sentence(issue)}"


def _condition(precondition: Precondition, *with_cure: str) -> str:
    """`with_cure`: states in which its cure stands beside it."""
    cure = when(precondition.state in with_cure, optional(" ({})", precondition.cure))
    return f"{words_of('precondition')[precondition.state]}: {precondition.text}{cure}"


def _all_notes(fix: Fix) -> Iterator[str]:
    """Every note; one that does not apply is an empty text, which the caller leaves out."""
    yield optional("First because: {}", fix.first_because)
    yield f"Versions: {fix.versions}"
    for precondition in fix.preconditions:
        yield _condition(precondition, "unmet", "unknown")
    yield from answer_words(fix.checked)
    yield optional("Memory: {}", fix.room, lambda room: room.because)
    yield optional("After: {}", fix.after, ", ".join)
    shared = "Acts on the same costs as {}: their savings do not add up"
    yield optional(shared, fix.shares_with, ", ".join)
    yield optional("Elsewhere: {}", fix.gain_source)
    yield from _issues(fix, everything=True)
    yield from map("Side effect: {}".format, fix.side_effects)
    yield f"Verify: {fix.verify}"
    yield f"Sources: {'; '.join(fix.sources)}"


def _together(result: Result, shown: Sequence[Step]) -> Words:
    """What the listed steps save together, one replayed figure; that they overlap where none was
    replayed.
    """
    ids, overlap = {*each(shown, "id")}, False
    for combined in result.combined:
        if {*combined.ids} == ids:
            every = {2: "Both", 3: "All three"}.get(len(ids), f"All {len(ids)}")
            return words(f"{every} together save {saving(*combined.gain_frac)}.")
    if pairs := [both for both in result.combined if len(both.ids) == 2 and ids > {*both.ids}]:
        best = max(pairs, key=lambda pair: pair.gain_frac)
        first, second = (place for place, step in enumerate(shown, start=1) if step.id in best.ids)
        return words(
            f"{first} and {second} together save {saving(*best.gain_frac)}; savings overlap."
        )
    for fix in (*result.fixes, *result.levers):
        overlap |= fix.id in ids and not ids.isdisjoint(fix.shares_with)
    return words(when(overlap, "Their savings overlap and do not add up."))


def whole_plan(result: Result) -> Part:
    whole_step, blocks = partial(step_of, result, everything=True), list[Block]()
    if fixes := tuple(map(whole_step, (*result.fixes, *result.levers))):
        blocks.append(Plan("Every step", fixes))
    refused = []
    for fix in result.refused:
        unlocked = optional(" Possible with: {}.", fix.unlocked_by)
        refused.append(f"{fix.id} {fix.title}: {fix.because}.{unlocked}")
    blocks += (*items("Refused", refused), *choices(result))
    return titled("plan", blocks)


def _why_none(result: Result, findings: Sequence[Step]) -> str:
    if not result.verdict.wall:
        is_open = findings or open_walls(result) or unused(result)
        return when(not is_open, "Nothing in this recording calls for a change.")
    if result.refused:
        refused = counted(len(result.refused), "known change was", "known changes were")
        fitting = (f"; {fix.id}: {fix.because}" for fix in result.refused if fix.kind != "absent")
        return f"No change fits: {refused} refused{next(fitting, '')}."
    return "No change is known here for this framework."
