"""Whether a configuration is legal: the answer in a headline, what it rests on, and what it waits
for.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Final

from heuristics.config.about import option_of
from heuristics.config.versions import PACKAGE_NAMES
from heuristics.result.configured import Configuration, UndecidedRule
from heuristics.result.result import Result
from reports.content.blocks import Blocks, Code, Sentence, Several, Tone, Words, items, words
from reports.content.check_defects import Weight, defects, first_errors
from reports.content.names import (
    beyond,
    codes,
    ended,
    joined,
    listed,
    optional,
    sentence,
    settings_of,
)
from reports.content.page import Detail
from reports.rows import each, those
from traces.missing import Missing, known
from traces.settings.derive import DEFAULT
from traces.settings.knobs import FIRST, is_before_tables
from traces.spelling import counted
from traces.texts import Texts

_OF_THE_RUN: Final = frozenset({"trace", DEFAULT})
"""Where settings come from that nobody wrote down."""
_FACTS: Final = {
    **{option_of(f"{package}_version"): name for package, name in PACKAGE_NAMES.items()},
    option_of("container"): "the container",
}
"""What options give that a rule waits for; all others give the GPU and its domain."""
_LINE: Final = 78
"""Columns that an answer may take."""


def answer(result: Result, configuration: Configuration) -> tuple[str, Tone]:
    """The answer in a few words; a fact that it waits for stands in it."""
    if isinstance(configuration.legal, Missing):
        return "READ IN PART", Tone.NOTICE
    if not configuration.legal:
        return "NOT LEGAL", Tone.BAD
    errors, only_if = first_errors(result), _only_if(result)
    if not recipe_known(result) and not errors:
        return "UNDECIDED: THE VALUES OF THE RECIPE ARE NOT KNOWN", Tone.NOTICE
    label, but = f"LEGAL{optional(' ONLY IF {}', only_if)}", ", BUT DOES NOT RUN AS WRITTEN"
    if errors and len(label + but) <= _LINE:
        label += but
    return label, Tone.NOTICE if errors or only_if else Tone.GOOD


def _only_if(result: Result) -> str:
    if refused_by_default(result):
        return "THE RECIPE SETS WHAT THE FILE LEAVES OUT"
    waits = {
        _FACTS.get(fact, "the GPU")
        for fact in chain.from_iterable(each(_undecided(result), "waits_for"))
    }
    versions = [key for key in PACKAGE_NAMES.values() if key in waits]
    facts = sorted(waits - {*versions}, reverse=True)
    facts += versions if len(versions) < 2 else ["the versions"]
    allow = "allows" if len(facts) == 1 and len(versions) < 2 else "allow"
    return optional(f"{{}} {allow} it", listed(facts)).upper()


def conditions(result: Result, detail: Detail) -> Blocks:
    """Under which conditions nothing refuses it: settings left out, then facts that it waits
    for.
    """
    configuration = result.configuration
    if not configuration or isinstance(configuration.legal, Missing):
        return
    yield from items("Refused at the defaults", refused_by_default(result))
    by_options = defaultdict[Texts, list[UndecidedRule]](list)
    facts = []
    for rule in _undecided(result):
        if rule.waits_for and configuration.legal:
            facts.append(_rule_words(result, rule, rule.waits_for, "Give"))
            by_options[rule.waits_for].append(rule)
    if detail is Detail.FULL:
        yield from items("Waits for a fact", facts)
        return
    waits = []
    # an option with the first rule that waits for it
    for asks, rules in sorted(by_options.items()):
        more = beyond(len(rules), 1, " (and {})", "more rule")
        waits.append(words(codes(asks), f": {rules[0].text.rstrip('.')}{more}."))
    if waits:
        yield Sentence(joined(waits, " "), "Waits for")


def condition_line(result: Result) -> Blocks:
    """Beside a trace: what the defaults break, and that a file was hardly read."""
    configuration = result.configuration
    if not configuration or other_program(configuration):
        return
    refused = refused_by_default(result)
    if refused or isinstance(configuration.legal, Missing):
        label, tone = answer(result, configuration)
        more = refused[0] if refused else words(legal_words(result, configuration))
        left = beyond(len(refused), 1, " {}.", "more rule")
        yield Sentence(words(f"{label}. ", *more, left), "Config", tone, whole=True)


def refused_by_default(result: Result) -> Several:
    """Rules that refuse the run where what is not given has its default."""
    broken = those(_undecided(result), broken_by_default=True)
    return _asking(result, broken, "It holds only if one of these is set")


def unchecked(result: Result) -> Several:
    return _asking(result, _undecided(result), "Missing input")


def _asking(result: Result, rules: Iterable[UndecidedRule], why_asked: str) -> Several:
    return tuple(_rule_words(result, rule, rule.asks, why_asked) for rule in rules)


def _rule_words(result: Result, rule: UndecidedRule, asks: Texts, why_asked: str) -> Words:
    """With what would tell; of a GPU that was given, and of which no table has the figure, that
    none does.
    """
    if {*asks} <= {*map(option_of, result.given)}:
        return words(Code(rule.id), f": {ended(rule.text)} What was given is in no table of it.")
    return words(Code(rule.id), f": {ended(rule.text)} {why_asked}: ", codes(asks), ".")


def _undecided(result: Result) -> tuple[UndecidedRule, ...]:
    if of_releases := result.rules:
        return of_releases.undecided
    return ()


def other_program(configuration: Configuration) -> str:
    """The program that is no Megatron whose configuration this is; empty where it is Megatron's."""
    # loads readers of configurations, which a page without one need not
    from traces.settings.trainers import program_name

    return program_name(configuration.framework or "")


def legal_words(result: Result, configuration: Configuration) -> str:
    if isinstance(configuration.legal, Missing):
        cure = "" if other_program(configuration) else f" {sentence(configuration.legal.cure)}"
        return f"{sentence(configuration.legal.reason)}{cure}"
    used = configuration.versions
    core = optional("Megatron-Core {}", used.core)
    if is_before_tables(known(used.core)):
        oldest = ".".join(map(str, FIRST[:2]))
        core += f" (checked by the rules of {oldest}, the oldest that are known)"
    bridge = optional("Megatron-Bridge {}", used.bridge)
    torch, engine = optional("PyTorch {}", used.torch), optional("Transformer Engine {}", used.te)
    of = ", ".join(filter(None, (core, bridge, torch, engine)))
    of = of or "the newest releases (version unknown: --core-version)"
    if not configuration.legal:
        return _errors(result, of)
    if not is_written(configuration):
        return (
            "No configuration was given; only what the trace shows of it is known. Give "
            "--config FILE."
        )
    text = f"No rule that could be checked is broken, for {of}."
    if recipe_known(result):
        return text
    return (
        f"{text} What its recipe sets is not known: give TP, PP, EP and the batch as flags to "
        f"check them."
    )


def _errors(result: Result, of: str) -> str:
    weights = each(defects(result), "weight")
    rejected, fails = weights.count(Weight.REJECTED), weights.count(Weight.FAILS)
    if not rejected:
        later = (
            "no framework rejects this configuration at its start; it fails later, while it runs."
        )
        return f"{counted(fails, 'error')} for {of}: {later}"
    text = f"{counted(rejected, 'error')} for {of}: Megatron rejects this configuration."
    also_listed = " Fix first has {}, which Megatron does not reject."
    return text + beyond(
        fails + weights.count(Weight.NOT_AS_WRITTEN), 0, also_listed, "more entry", "more entries"
    )


def recipe_known(result: Result) -> bool:
    """Whether the values of the recipe that a command names are known; so where it names none."""
    recipe_values = settings_of(result).get("launcher.recipe_values_known")
    return recipe_values is None or recipe_values.value is not False


def is_written(configuration: Configuration) -> bool:
    said_by = {*each(configuration.settings, "said")} - _OF_THE_RUN
    framed = known(configuration.framework) is not None
    return bool(configuration.problems) or (
        framed and any(not origin.startswith("--") for origin in said_by)
    )
