"""What a configuration is judged by: rules of releases, the workflow, findings, failures, settings."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from heuristics.comparison.files.measured import Known, Measured, known_changes, measurements
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.incidents.incident import Row as Incident
from heuristics.incidents.incident import incidents, release_words
from heuristics.rules.failures import Row, corrections, failures
from heuristics.rules.rules import Rule, rules
from heuristics.workflow.walk import RULES as WORKFLOW
from heuristics.workflow.walk import WorkflowRule
from reports.content.blocks import Block, Code, Sentence, items, words
from reports.content.check_workflow import PHASES
from reports.content.explain.topic import Topic, sentence
from reports.content.names import codes, ended
from reports.measures import glossary
from traces.patterns import compiled
from traces.settings.knobs import Knob, knobs
from traces.spelling import percent, signed

_SAYS: Final = {
    "core": "Megatron-Core's configuration",
    "megatron_lm": "the arguments of Megatron-LM",
    "megatron_bridge": "Megatron-Bridge",
    "arguments": "the arguments of Megatron-LM, and Megatron-Bridge",
    "dispatcher": "Megatron-Core, while it builds or runs a layer",
    "te": "Transformer Engine, in the first step",
    "ours": "nobody before the run fails; the rule is ours",
}
"""Who refuses what breaks a rule."""
_FIGURE: Final = compiled(r"\{[^}]+\}")
"""A figure of a run in the text of an incident."""
_LEVELS: Final = {
    "error": "Breaking it is an error",
    "warning": "Breaking it is allowed, with a warning",
    "ignored": "What breaks it is changed or dropped without an error",
    "guide": "A published guide asks for it; no framework checks it",
}


def configuration_topics() -> Iterator[Topic]:
    words_of = glossary()
    of_kind: Mapping[str, Mapping[str, Callable[[], Iterator[Block]]]] = {
        "rule of a release": {one.id: partial(_rule, one) for one in rules().values()},
        "rule of the workflow": {one.id: partial(_step, one) for one in WORKFLOW if one.id not in rules()},
        "failure that a log shows": {one.id: partial(_failure, one) for one in failures().values()},
        "incident": {one.id: partial(_incident, one) for one in incidents().values()},
        "correction": {id: partial(_correction, several) for id, several in corrections().items()},
        "finding of a configuration": {
            id: partial(_finding, text) for id, text in words_of["finding"].items()
        },
        "word of the field": {id: partial(sentence, one) for id, one in words_of["field"].items()},
        "word of the first screen": {id: partial(sentence, one) for id, one in words_of["screen"].items()},
        "word of a result": {id: partial(sentence, one) for id, one in words_of["word"].items()},
        "reason why a verdict is not surer": {
            id: partial(sentence, one) for id, one in words_of["reason"].items()
        },
        "known change of a configuration": {
            one.id: partial(_known_change, one) for one in known_changes().values()
        },
        "setting": {one.id: partial(_setting, one) for one in knobs().values()},
    }
    for kind, several in of_kind.items():
        yield from (Topic(name, kind, blocks) for name, blocks in several.items())


def spelled(topic: str) -> Iterator[Topic]:
    """The setting that a flag or an override spells, its value left out: `model.moe_grouped_gemm=true`."""
    name = compiled(r"[=\s]").split(topic.strip())[0]
    for knob in knobs().values():
        if name in (knob.flag, knob.off, knob.bridge, knob.harness, knob.id.removeprefix("env.")):
            yield Topic(knob.id, "setting", partial(_setting, knob))


def _rule(rule: Rule) -> Iterator[Block]:
    yield from sentence(ended(rule.text))
    yield from sentence(f"{_LEVELS[rule.level]}. Source: {_SAYS[rule.by]}.")
    yield from sentence(ended(rule.cure), "Cure")
    yield from _fix(rule.fix)
    releases = [f"from {rule.since}"] if rule.since else []
    releases += [f"before {rule.until}"] if rule.until else []
    yield from sentence(ended(" and ".join(releases)) if releases else "", "Releases")
    yield Sentence(codes(rule.knobs), "Settings")
    yield from sentence(rule.source, "Source")
    yield from sentence(f"workflow document {rule.guide}" if rule.guide else "", "Guide")


def _fix(number: str) -> Iterator[Sentence]:
    if number:
        title = f" {CATALOGUE[number].title}." if number in CATALOGUE else ""
        yield Sentence(words(Code(number), title), "Fix")


def _step(rule: WorkflowRule) -> Iterator[Block]:
    yield from sentence(ended(rule.title))
    yield from sentence(f"{PHASES[rule.phase]}.", "Phase")
    yield from sentence(f"workflow document {rule.seed}", "Source")


def _failure(row: Row) -> Iterator[Block]:
    yield from sentence(ended(row.text), "Likely cause")
    yield from sentence(ended(row.confirm), "To confirm")
    yield Sentence(words(Code(row.fix), f": {ended(row.cure)}"), "Cure")
    yield from sentence(row.source, "Source")


def _incident(row: Incident) -> Iterator[Block]:
    """A published trouble: what of a run it speaks of, and its thread."""
    yield from sentence(ended(_FIGURE.sub("N", row.what)))
    yield from sentence(ended(_FIGURE.sub("N", row.cure)), "Cure")
    yield from _fix(row.fix)
    yield from sentence("; ".join(release_words(*one) for one in row.releases.items()), "Releases")
    yield from sentence(", ".join(row.gpus), "GPUs")
    for asked, label in ((row.when.names, "Asks for"), (row.lines, "Lines")):
        if asked:
            yield Sentence(codes(asked), label)
    yield from sentence(ended(row.source), "Source")


def _correction(several: tuple[Rule | Row, ...]) -> Iterator[Block]:
    cures = dict.fromkeys(one.cure for one in several)
    yield from items("Corrections", (words(ended(cure)) for cure in cures))
    yield from items("For", (words(Code(one.id), f": {ended(one.text)}") for one in several))


def _finding(text: str) -> Iterator[Block]:
    yield from sentence(text)
    yield from sentence("check-config and analyze --config name the values and the lines they stand on.")


def _known_change(known: Known) -> Iterator[Block]:
    """What a comparison of two configurations explains by it."""
    yield from sentence(ended(known.title))
    yield from sentence(ended(known.mirrored), "Other way")
    yield Sentence(codes(known.knobs), "Settings")
    yield from items("Measured elsewhere", map(_measured, measurements(known.id)))
    yield from sentence(ended(known.next), "To be sure")


def _measured(one: Measured) -> str:
    parts = (("step", one.times), ("memory", one.memory_times))
    found = ", ".join(f"{what} {signed(percent(times - 1))}" for what, times in parts if times is not None)
    return f"{found}: {one.of} ({one.source})"


def _setting(knob: Knob) -> Iterator[Block]:
    spelled = (
        ("Megatron-LM", knob.flag),
        ("Megatron-LM, off", knob.off),
        ("Megatron-Bridge", knob.bridge),
        ("Bridge's scripts/performance", knob.harness),
    )
    yield from items("Spellings", (words(f"{name}: ", Code(text)) for name, text in spelled if text))
    yield from sentence(", ".join(knob.choices), "Takes")
    speaking = (rule for rule in rules().values() if knob.id in rule.knobs)
    yield from items("Rules", (words(Code(rule.id), f": {ended(rule.text)}") for rule in speaking))
