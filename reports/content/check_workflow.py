"""What NVIDIA's guides say of a configuration: the workflow rule by rule, what they choose,
experiments.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from heuristics.result.configured import WorkflowStep
from heuristics.result.judged import Choice
from heuristics.result.result import Result
from reports.content.blocks import Block, Code, Fold, Items, Sentence, Words, items, words
from reports.content.legal import unchecked
from reports.content.names import around, beyond, capital, codes, ended, optional, statement
from traces.missing import known
from traces.spelling import counted

State = Literal["met", "violated", "differs", "unknown", "not_applicable"]
STATES: Final[Mapping[State, str]] = {
    "violated": "violated",
    "differs": "differing from the guides",
    "unknown": "not checked",
    "met": "met",
    "not_applicable": "not applicable",
}
OPEN: Final[tuple[State, ...]] = ("violated", "differs")
"""States of rules that the run does not follow."""
_INPUTS: Final = 4


def workflow_lines(result: Result, shown: int) -> Iterator[Block]:
    found = (one for one in _rules(result) if _state(one) in OPEN)
    open_ = sorted(found, key=lambda one: OPEN.index(_state(one)))
    rest = beyond(len(open_), shown, "{} more of these: --full")
    yield from _counts(result)
    yield from items("", (*map(step_words, open_[:shown]), rest))


def _rules(result: Result) -> tuple[WorkflowStep, ...]:
    """Rules that are no defect as well: those stand above."""
    return tuple(one for one in result.workflow if not one.same_as)


def _counts(result: Result) -> Iterator[Sentence]:
    rules = _rules(result)
    count = Counter(map(_state, rules))
    counts = ", ".join(f"{count[state]} {name}" for state, name in STATES.items() if count[state])
    if rules:
        noun = "rule" if len(rules) == len(result.workflow) else "more rule"
        yield statement(f"{counted(len(rules), noun)}: {counts}.", "Workflow")


def _state(one: WorkflowStep) -> State:
    """A rule that a guide alone asks for is not violated: the run differs from the guide."""
    if one.state == "violated" and one.guide_only:
        return "differs"
    return one.state


def step_words(one: WorkflowStep) -> Words:
    said = words(Code(one.id), f": {one.title}: {ended(one.because)}")
    if one.advice:
        way = "By the guide" if _state(one) == "differs" else "Cure"
        said = words(said, f" {way}: {ended(one.advice)}")
        if one.fix:
            said = words(said, " [", Code(one.fix), "]")
    return words(said, optional(" Missing input: {}.", one.tells.rstrip(".")))


def workflow_rules(result: Result) -> Iterator[Block]:
    listed = _rules(result)
    yield from _counts(result)
    wanted = Counter(one.tells.rstrip(".") for one in listed if one.state == "unknown")
    if wanted:
        most = wanted.most_common(_INPUTS)
        named = "; ".join(f"{tells} ({counted(count, 'rule')})" for tells, count in most)
        said = f"{counted(wanted.total(), 'rule')} could not be checked. Missing input: {named}"
        yield statement(f"{said}{beyond(len(wanted), len(most), '; and {} more')}.")
    for state, name in STATES.items():
        rules = tuple(step_words(one) for one in listed if _state(one) == state)
        if rules:
            title = f"{counted(len(rules), 'rule')} {name}"
            yield (
                Items(rules, title)
                if state in OPEN
                else Fold(title, (Items(rules),), f"workflow-{state}")
            )
    if undecided := unchecked(result):
        yield Fold(
            "Rules of these releases that could not be checked", (Items(undecided),), "undecided"
        )


def choice_line(result: Result) -> Iterator[Block]:
    if result.choices:
        first = result.choices[0]
        chosen = "; ".join(f"{_about(one)} {one.answer}" for one in result.choices)
        yield statement(f"NVIDIA's guides choose {chosen}.", "Guides")
        yield Sentence(
            words(f"{first.answer}, by ", Code(first.rule), f": {ended(first.reason)}"), "Why"
        )


def choices(result: Result) -> Iterator[Block]:
    for one in result.choices:
        asks = around(" Could change with: ", codes(one.asks), ".")
        start = words(f"{ended(one.answer)} Rule ", Code(one.rule), f": {ended(one.reason)}", asks)
        title = f"{capital(_about(one))}, by NVIDIA's guide ({result.tool.guidance})"
        yield Items((start, *_particulars(one)), title)


def _particulars(one: Choice) -> Iterator[Words]:
    if one.other:
        other = f"Its other edition chooses {one.other} (rule "
        yield words(other, Code(one.other_rule), f": {one.other_reason}).")
    labelled = {"First": one.before, "Settings": one.settings}
    labelled |= {"Then, one at a time after a test": one.then, "Never": one.never}
    for label, several in labelled.items():
        if several:
            yield words(f"{label}: ", codes(several), ".")
    notes = (*one.notes, *(f"Ruled out: {why}" for why in one.refused))
    yield from (words(ended(note)) for note in notes)
    if one.source:
        yield words(f"Source: {one.source}.")


def _about(one: Choice) -> str:
    return {"cuda_graphs": "CUDA graphs"}.get(one.about, one.about)


def experiment_blocks(result: Result) -> Iterator[Block]:
    plan = known(result.experiments)
    if plan is None or not (plan.then or plan.later or len(plan.first) > 1):
        return
    runs = (*plan.first, *plan.then, *plan.later)
    changes = []
    for one in runs:
        start = words(Code(one.fix), " ") if one.fix else ()
        said = f"{ended(one.title)} Changes: {one.variable}. Then: {ended(one.next)}"
        changes.append(words(start, said))
    yield from items("Experiments, one change each", changes, numbered=True)
    steps = counted(runs[0].step_count, "step")
    yield statement(
        f"Each over {steps} without the profiler. Keep fixed: {', '.join(runs[0].holds)}."
    )
    yield statement(f"Note each time: {'; '.join(runs[0].measure)}.")
