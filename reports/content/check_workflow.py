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
OPEN: Final = ("violated", "differs")
"""States of rules that the run does not follow."""
_INPUTS: Final = 4
_RULES: Final = 3


def workflow_lines(result: Result) -> Blocks:
    rules = _rules(result)
    open_ = [*chain.from_iterable(rules[state] for state in OPEN)]
    more_rules = beyond(len(open_), _RULES, "{} more of these: --full")
    yield from _counts(result, rules)
    yield from items("", (*map(step_words, open_[:_RULES]), more_rules))


Rules = Mapping[State, list[WorkflowStep]]


def _rules(result: Result) -> Rules:
    """Rules that are no defect as well, by their state: those stand above."""
    by_state: dict[State, list[WorkflowStep]] = {state: [] for state in get_args(State)}
    for step in those(result.workflow, same_as=""):
        by_state[_state(step)].append(step)
    return by_state


def _counts(result: Result, rules: Rules) -> Blocks:
    counts, rule_count = [], 0
    for state, steps in rules.items():
        rule_count += len(steps)
        if steps:
            counts.append(f"{len(steps)} {words_of('workflow_state')[state]}")
    if rule_count:
        noun = "rule" if rule_count == len(result.workflow) else "more rule"
        yield statement(f"{counted(rule_count, noun)}: {', '.join(counts)}.", "Workflow")


def _state(step: WorkflowStep) -> State:
    """A rule that a guide alone asks for is not violated: the run differs from the guide."""
    if step.state == "violated" and step.guide_only:
        return "differs"
    return step.state


def step_words(step: WorkflowStep) -> Words:
    step_text = words(Code(step.id), f": {step.title}: {ended(step.because)}")
    if step.advice:
        way = "By the guide" if _state(step) == "differs" else "Cure"
        step_text = words(step_text, f" {way}: {ended(step.advice)}")
        if step.fix:
            step_text = words(step_text, " [", Code(step.fix), "]")
    return words(step_text, optional(" Missing input: {}.", step.tells.rstrip(".")))


def workflow_rules(result: Result) -> Blocks:
    rules = _rules(result)
    yield from _counts(result, rules)
    wanted = Counter(rule.tells.rstrip(".") for rule in rules["unknown"])
    if wanted:
        most = wanted.most_common(_INPUTS)
        inputs = [f"{tells} ({counted(count, 'rule')})" for tells, count in most]
        not_checked = f"{counted(wanted.total(), 'rule')} could not be checked. Missing input: "
        not_checked += f"{'; '.join(inputs)}{beyond(len(wanted), len(inputs), '; and {} more')}."
        yield statement(not_checked)
    for state, steps in rules.items():
        title = f"{counted(len(steps), 'rule')} {words_of('workflow_state')[state]}"
        listed = map(step_words, steps)
        if steps and state in OPEN:
            yield Items(tuple(listed), title)
        elif steps:
            yield Fold(title, (Items(tuple(listed)),), f"workflow-{state}")
    if undecided := unchecked(result):
        yield Fold(
            "Rules of these releases that could not be checked", (Items(undecided),), "undecided"
        )


def choice_line(result: Result) -> Blocks:
    if result.choices:
        first = result.choices[0]
        chosen = "; ".join(f"{_about(choice)} {choice.answer}" for choice in result.choices)
        yield statement(f"NVIDIA's guides choose {chosen}.", "Guides")
        yield Sentence(
            words(f"{first.answer}, by ", Code(first.rule), f": {ended(first.reason)}"), "Why"
        )


def choices(result: Result) -> Blocks:
    for choice in result.choices:
        asks = around(" Could change with: ", codes(choice.asks), ".")
        start = words(
            f"{ended(choice.answer)} Rule ", Code(choice.rule), f": {ended(choice.reason)}", asks
        )
        title = f"{capital(_about(choice))}, by NVIDIA's guide ({result.tool.guidance})"
        yield Items((start, *_particulars(choice)), title)


def _particulars(choice: Choice) -> Iterator[Words]:
    if choice.other:
        other = f"Its other edition chooses {choice.other} (rule "
        yield words(other, Code(choice.other_rule), f": {choice.other_reason}).")
    labelled = {"First": choice.before, "Settings": choice.settings}
    labelled |= {"Then, one at a time after a test": choice.then, "Never": choice.never}
    for label, lines in labelled.items():
        if lines:
            yield words(f"{label}: ", codes(lines), ".")
    for note in (*choice.notes, *map("Ruled out: {}".format, choice.refused)):
        yield words(ended(note))
    if choice.source:
        yield words(f"Source: {choice.source}.")


def _about(choice: Choice) -> str:
    return {"cuda_graphs": "CUDA graphs"}.get(choice.about, choice.about)


def experiment_blocks(result: Result) -> Blocks:
    plan = result.experiments
    if not plan or not (plan.then or plan.later or len(plan.first) > 1):
        return
    runs = (*plan.first, *plan.then, *plan.later)
    changes = []
    for trial in runs:
        start = words(Code(trial.fix), " ") if trial.fix else ()
        text = f"{ended(trial.title)} Changes: {trial.variable}. Then: {ended(trial.next)}"
        changes.append(words(start, text))
    yield from items("Experiments, one change each", changes, numbered=True)
    steps = counted(runs[0].step_count, "step")
    yield statement(
        f"Each over {steps} without the profiler. Keep fixed: {', '.join(runs[0].holds)}."
    )
    yield statement(f"Note each time: {'; '.join(runs[0].measure)}.")
