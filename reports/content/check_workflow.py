"""What NVIDIA's guides say of a configuration: the workflow rule by rule, what they choose,
experiments.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, Literal, get_args

from heuristics.result.configured import WorkflowStep
from heuristics.result.judged import Choice
from heuristics.result.result import Result
from reports.content.blocks import Blocks, Code, Fold, Items, Sentence, Words, items, words
from reports.content.legal import unchecked
from reports.content.names import around, beyond, capital, codes, ended, optional, statement
from reports.measures import words_of
from reports.rows import those
from traces.spelling import counted

State = Literal["violated", "differs", "unknown", "met", "not_applicable"]
OPEN: Final[tuple[State, ...]] = ("violated", "differs")
"""States of rules that the run does not follow."""
_INPUTS: Final = 4


def workflow_lines(result: Result, shown: int) -> Blocks:
    rules = _rules(result)
    open_ = [*chain.from_iterable(rules[one] for one in OPEN)]
    rest = beyond(len(open_), shown, "{} more of these: --full")
    yield from _counts(result, rules)
    yield from items("", (*map(step_words, open_[:shown]), rest))


Rules = Mapping[State, list[WorkflowStep]]


def _rules(result: Result) -> Rules:
    """Rules that are no defect as well, by their state: those stand above."""
    found: dict[State, list[WorkflowStep]] = {state: [] for state in get_args(State)}
    for one in those(result.workflow, same_as=""):
        found[_state(one)].append(one)
    return found


def _counts(result: Result, rules: Rules) -> Blocks:
    counts, whole = [], 0
    for state, several in rules.items():
        whole += len(several)
        if several:
            counts.append(f"{len(several)} {words_of('workflow_state')[state]}")
    if whole:
        noun = "rule" if whole == len(result.workflow) else "more rule"
        yield statement(f"{counted(whole, noun)}: {', '.join(counts)}.", "Workflow")


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


def workflow_rules(result: Result) -> Blocks:
    rules = _rules(result)
    yield from _counts(result, rules)
    wanted = Counter(one.tells.rstrip(".") for one in rules["unknown"])
    if wanted:
        most = wanted.most_common(_INPUTS)
        named = [f"{tells} ({counted(count, 'rule')})" for tells, count in most]
        said = f"{counted(wanted.total(), 'rule')} could not be checked. Missing input: "
        said += f"{'; '.join(named)}{beyond(len(wanted), len(named), '; and {} more')}."
        yield statement(said)
    for state, several in rules.items():
        title = f"{counted(len(several), 'rule')} {words_of('workflow_state')[state]}"
        listed = map(step_words, several)
        if several and state in OPEN:
            yield Items(tuple(listed), title)
        elif several:
            yield Fold(title, (Items(tuple(listed)),), f"workflow-{state}")
    if undecided := unchecked(result):
        yield Fold(
            "Rules of these releases that could not be checked", (Items(undecided),), "undecided"
        )


def choice_line(result: Result) -> Blocks:
    if result.choices:
        first = result.choices[0]
        chosen = "; ".join(f"{_about(one)} {one.answer}" for one in result.choices)
        yield statement(f"NVIDIA's guides choose {chosen}.", "Guides")
        yield Sentence(
            words(f"{first.answer}, by ", Code(first.rule), f": {ended(first.reason)}"), "Why"
        )


def choices(result: Result) -> Blocks:
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
    for note in (*one.notes, *map("Ruled out: {}".format, one.refused)):
        yield words(ended(note))
    if one.source:
        yield words(f"Source: {one.source}.")


def _about(one: Choice) -> str:
    return {"cuda_graphs": "CUDA graphs"}.get(one.about, one.about)


def experiment_blocks(result: Result) -> Blocks:
    plan = result.experiments
    if not plan or not (plan.then or plan.later or len(plan.first) > 1):
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
