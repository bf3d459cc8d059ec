"""What a configuration is judged by: rules of releases, the workflow, findings, failures,
settings.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import starmap
from typing import Any, Final

from heuristics.comparison.files.measured import Known, known_changes, measurements
from heuristics.fixes.catalogue import CATALOGUE
from heuristics.incidents.incident import IncidentRow, incidents, release_words
from heuristics.rules.failures import FailureRow, corrections, failures
from heuristics.rules.rules import Rule, rules
from heuristics.workflow.walk import RULES as WORKFLOW
from heuristics.workflow.walk import WorkflowRule
from reports.content.blocks import Blocks, Code, Sentence, Words, items, words
from reports.content.explain.topic import Topic, sentence, sentences
from reports.content.names import codes, ended, optional
from reports.measures import glossary, words_of
from reports.rows import each
from traces.patterns import compiled
from traces.settings.knobs import Knob, knobs
from traces.spelling import percent, signed

_FIGURE: Final = compiled(r"\{[^}]+\}")
"""A figure of a run in the text of an incident."""


def configuration_topics() -> Iterator[Topic]:
    glossaries = glossary()
    steps = {step.id: step for step in WORKFLOW if step.id not in rules()}
    kinds: tuple[tuple[str, Mapping[str, Any], Callable[[Any], Blocks]], ...] = (
        ("rule of a release", rules(), _rule),
        ("rule of the workflow", steps, _step),
        ("failure that a log shows", failures(), _failure),
        ("incident", incidents(), _incident),
        ("correction", corrections(), _correction),
        ("finding of a configuration", glossaries["finding"], _finding),
        *((kind, glossaries[name], sentence) for name, kind in words_of("glossary_kind").items()),
        ("known change of a configuration", known_changes(), _known_change),
        ("setting", knobs(), _setting),
    )
    for kind, rows, blocks in kinds:
        for name, row in rows.items():
            yield Topic(name, kind, partial(blocks, row))


def spelled(topic: str) -> Iterator[Topic]:
    """The setting that a flag or an override spells, its value left out:
    `model.moe_grouped_gemm=true`.
    """
    name = next(iter(topic.partition("=")[0].split(maxsplit=1)), "")
    for knob in knobs().values():
        if name in (knob.flag, knob.off, knob.bridge, knob.harness, knob.id.removeprefix("env.")):
            yield Topic(knob.id, "setting", partial(_setting, knob))


def _rule(rule: Rule) -> Blocks:
    yield from sentences(
        ("", ended(rule.text)),
        ("", f"{words_of('rule_level')[rule.level]}. Source: {words_of('refused_by')[rule.by]}."),
        ("Cure", ended(rule.cure)),
    )
    yield from _fix(rule.fix)
    releases = filter(None, (optional("from {}", rule.since), optional("before {}", rule.until)))
    yield from sentence(optional("{}.", " and ".join(releases)), "Releases")
    yield Sentence(codes(rule.knobs), "Settings")
    guide = optional("workflow document {}", rule.guide)
    yield from sentences(("Source", rule.source), ("Guide", guide))


def _fix(number: str) -> Blocks:
    if number:
        title = f" {CATALOGUE[number].title}." if number in CATALOGUE else ""
        yield Sentence(words(Code(number), title), "Fix")


def _step(rule: WorkflowRule) -> Blocks:
    phase, source = f"{words_of('phase')[rule.phase]}.", f"workflow document {rule.seed}"
    yield from sentences(("", ended(rule.title)), ("Phase", phase), ("Source", source))


def _failure(row: FailureRow) -> Blocks:
    text = ended(_FIGURE.sub("N", row.text))
    yield from sentences(("Likely cause", text), ("To confirm", ended(row.confirm)))
    yield Sentence(words(Code(row.fix), f": {ended(_FIGURE.sub('N', row.cure))}"), "Cure")
    yield from sentence(row.source, "Source")


def _incident(row: IncidentRow) -> Blocks:
    """A published trouble: what of a run it speaks of, and its thread."""
    what, cure = _FIGURE.sub("N", row.what), _FIGURE.sub("N", row.cure)
    yield from sentences(("", ended(what)), ("Cure", ended(cure)))
    yield from _fix(row.fix)
    releases = "; ".join(starmap(release_words, row.releases.items()))
    yield from sentences(("Releases", releases), ("GPUs", ", ".join(row.gpus)))
    for label, asked_words in (("Asks for", row.when.names), ("Lines", row.lines)):
        if asked_words:
            yield Sentence(codes(asked_words), label)
    yield from sentence(ended(row.source), "Source")


def _correction(several: tuple[Rule | FailureRow, ...]) -> Blocks:
    yield from items("Corrections", map(ended, dict.fromkeys(each(several, "cure"))))
    yield from items("For", map(_named, several))


def _named(rule: Rule | FailureRow) -> Words:
    return words(Code(rule.id), f": {ended(_FIGURE.sub('N', rule.text))}")


def _finding(text: str) -> Blocks:
    where = "check-config and analyze --config name the values and the lines they stand on."
    yield from sentences(("", text), ("", where))


def _known_change(known: Known) -> Blocks:
    """What a comparison of two configurations explains by it."""
    yield from sentences(("", ended(known.title)), ("Other way", ended(known.mirrored)))
    yield Sentence(codes(known.knobs), "Settings")
    measured = []
    for gained in measurements(known.id):
        gains = (
            optional("step {}", gained.times, _gain),
            optional("memory {}", gained.memory_times, _gain),
        )
        measured.append(f"{', '.join(filter(None, gains))}: {gained.of} ({gained.source})")
    yield from items("Measured elsewhere", measured)
    yield from sentence(ended(known.next), "To be sure")


def _gain(times: float) -> str:
    return signed(percent(times - 1))


def _setting(knob: Knob) -> Blocks:
    names = words_of("knob_spelling").items()
    spelled = ((name, getattr(knob, field)) for field, name in names)
    yield from items(
        "Spellings", (words(f"{name}: ", Code(text)) for name, text in spelled if text)
    )
    yield from sentence(", ".join(knob.choices), "Takes")
    speaking = (rule for rule in rules().values() if knob.id in rule.knobs)
    yield from items("Rules", map(_named, speaking))
