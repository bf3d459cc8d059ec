"""The workflow walked: every rule on one run, in the order of the documents, by table and by our
rules.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from heuristics.config.about import not_given
from heuristics.config.view import Config
from heuristics.guides import situation
from heuristics.guides.memory_use import ASK_MEMORY
from heuristics.result.configured import RuleState, WorkflowPhase, WorkflowStep
from heuristics.rules.condition import RUNS, Condition, condition
from heuristics.rules.rules import Rule, releases_of, rules
from heuristics.run.run import Run
from heuristics.words import say
from heuristics.workflow.circumstances import OFFLOADS
from traces.frozen import frozen
from traces.sections.section import copied
from traces.toml_tables import TableRow, keyed, place, read_rows, written

ROOMS: Final = (situation,)
"""Where facts of a run stand that the workflow asks, beside circumstances.py."""


class JudgedRule(TableRow):
    """What a rule says of a run; of a row of its table: what it says where `when` holds.

    `because`: the reason, with its figures. `advice`: what to do, empty where nothing is. `fix`:
    the catalogue's id of that change, empty where it has none. `tells`: where unknown, what to give
    to be told.
    """

    state: RuleState
    because: str
    advice: str = ""
    fix: str = ""
    tells: str = ""
    when: Condition = condition("True")


@frozen
class WorkflowRule:
    """One rule. `seed`: the number of the document it is from, then its section.

    `guide_only`: a guide asks for it, so that a run which differs is as legal. `moe`: it is about
    experts.
    """

    id: str
    phase: WorkflowPhase
    title: str
    seed: str
    judge: Callable[[Run], JudgedRule]
    guide_only: bool = True
    moe: bool = False


class _Row(TableRow):
    """A rule as its table has it: of `says` the first that holds is what it says."""

    id: str
    title: str
    seed: str
    says: tuple[JudgedRule, ...]
    moe: bool = False


_TABLE: Final = written("heuristics.workflow", "workflow.toml")
_WORDS: Final[dict[str, str]] = {
    **_TABLE["words"],
    "ask_memory": ASK_MEMORY,
    "offloads": ", ".join(OFFLOADS),
}
"""What texts have in braces that is the same of every run."""
_ROWS: Final = read_rows(
    {phase: keyed(rows) for phase, rows in _TABLE.items() if phase != "words"},
    dict[WorkflowPhase, dict[str, _Row]],
    place("heuristics.workflow", "workflow.toml"),
    RUNS.readers,
)


def _by_row(row: _Row, run: Run) -> JudgedRule:
    says = next(word for word in row.says if word.when.holds(run))
    filled = partial(RUNS.filled, of=run, words=_WORDS)
    because, advice, tells = map(filled, (says.because, says.advice, says.tells))
    return JudgedRule(says.state, because, advice, says.fix, not_given(tells, run.given) or tells)


def _by_rule(rule: Rule, run: Run) -> JudgedRule:
    """A prerequisite of a feature that a guide lists."""
    config = run.checked
    releases = releases_of(config)
    if not rule.in_force(releases) or rule.applies(releases) is False:
        return JudgedRule("not_applicable", say("workflow.no-rule-of-these-releases"))
    is_asked, holds = rule.asked(config), rule.holds(config)
    if is_asked is False or (is_asked is None and holds is not True):
        figures = rule.feature.figures(config) if rule.feature else ""
        if is_asked is None:
            return _unknown(figures, rule, config)
        return JudgedRule("not_applicable", figures)
    figures = ", ".join(asks.figures(config) for asks in (rule.needs, rule.forbids) if asks)
    if holds is None:
        return _unknown(figures, rule, config)
    if holds:
        return JudgedRule("met", figures)
    return JudgedRule("violated", figures, rule.cure_of(config), rule.fix)


def _unknown(figures: str, rule: Rule, config: Config) -> JudgedRule:
    return JudgedRule("unknown", figures, tells=", ".join(rule.asks(config)) or "the configuration")


def _rules() -> Iterator[WorkflowRule]:
    """Phase by phase; prerequisites: those of our rules that a guide lists, before the table's
    own.
    """
    for phase, rows in _ROWS.items():
        for rule in rules().values() if phase == "prerequisites" else ():
            if rule.guide:
                of_experts = any(
                    knob.startswith(("moe_", "expert_", "num_moe_", "overlap_moe_", "delay_wgrad_"))
                    for knob in rule.knobs
                )
                is_guide, judge = rule.level == "guide", partial(_by_rule, rule)
                yield WorkflowRule(
                    rule.id, phase, rule.text, rule.guide, judge, is_guide, of_experts
                )
        for row in rows.values():
            yield WorkflowRule(
                row.id, phase, row.title, row.seed, partial(_by_row, row), moe=row.moe
            )


RULES: Final = tuple(_rules())
"""All rules: fit, scale, folding, prerequisites, profile."""
FIT_BY_RUNNING: Final = frozenset({"fit-first", "profile-order"})
"""Rules that a run meets by having run. One that the framework refuses never did."""


def walk(run: Run, refused: bool = False) -> tuple[WorkflowStep, ...]:
    """Every rule and what it says of a run as the framework understands it, in workflow order.

    `refused`: the framework rejects the configuration, so that what ran was another one.
    """
    return tuple(copied(WorkflowStep, rule, _judged(rule, run, refused)) for rule in RULES)


def _judged(rule: WorkflowRule, run: Run, refused: bool) -> JudgedRule:
    judged = rule.judge(run)
    if rule.moe and run.config.moe() is False and (rule.guide_only or judged.state != "violated"):
        return JudgedRule("not_applicable", say("workflow.no-experts"))
    if refused and judged.state == "met" and rule.id in FIT_BY_RUNNING:
        return JudgedRule("unknown", say("workflow.refused"), tells=say("workflow.refused-tells"))
    return judged
