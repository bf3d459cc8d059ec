"""A judged configuration as a page: legal or not, what to correct first, its numbers, what the
guides say.
"""

from typing import Final

from heuristics.result.result import Result
from reports.content.analysis.memory_snapshot import snapshot_part
from reports.content.analysis.plan import plan
from reports.content.blocks import (
    Block,
    Blocks,
    Code,
    Command,
    Headline,
    Quantity,
    Tone,
    filled,
    words,
)
from reports.content.check_defects import (
    answer_words,
    first_errors,
)
from reports.content.check_numbers import configuration_parts, defect_items, number_lines
from reports.content.check_workflow import choice_line, choices, workflow_lines
from reports.content.incidents import incident_items
from reports.content.legal import answer, conditions, legal_words
from reports.content.names import ended, name_of, share_of, statement, titled
from reports.content.page import Detail, Page
from reports.content.tables import shaped
from reports.redaction import redaction_words
from reports.rows import each, known_of, those
from traces.missing import Missing, known
from traces.spelling import percent

_STEPS: Final = 1
_MORE: Final = "--full: every rule and its reason, settings, memory by part"


def page(result: Result, detail: Detail) -> Page:
    """The page of `check-config`: at most 40 lines, or everything."""
    title = words(Code(result.about or "configuration"))
    facts = words("a configuration, checked without a trace")
    configuration = result.configuration
    if not configuration:
        return Page(title, facts, (), detail)
    tiers = configuration.checked
    label, tone = answer(result, configuration)
    answers = filled(answer_words(tiers))
    is_legal = detail is Detail.FIRST and tone is Tone.GOOD
    if is_legal and {*each(tiers, "answer")} <= {"ok"}:
        answers = answers[:1]
    if isinstance(configuration.legal, Missing):
        answers = ()
    legality = words(legal_words(result, configuration))
    blocks: list[Block] = [Headline(label, legality, tone, answers)]
    for warning in result.warnings:
        blocks.append(statement(warning, "Warning", Tone.NOTICE))
    if detail is Detail.FULL:
        defects_and_settings, *parts = configuration_parts(result)
        blocks += (defects_and_settings, *_judged(result, detail))
        blocks.append(titled("choices", choices(result)))
        blocks += (*parts, *snapshot_part(result), statement(redaction_words(result.redacted)))
        return Page(title, facts, tuple(blocks), detail)
    for lines in (conditions, incident_items, defect_items, _judged):
        blocks += lines(result, detail)
    blocks += (*number_lines(result), *workflow_lines(result), *choice_line(result))
    if result.judged is not True:
        analyze_line = "moe-diag analyze TRACE --config FILE"
        blocks.append(Command("Nothing was measured. With a trace:", analyze_line))
    return Page(title, facts, tuple(blocks), detail, _MORE)


def _judged(result: Result, detail: Detail) -> Blocks:
    """What was given says of each wall, and the plan, after what is corrected first."""
    if result.judged is not True:
        return
    wall = result.verdict.wall
    if wall and not any(known_of(those(result.walls, id=wall), "cost_frac")):
        yield statement(f"{name_of(wall)}: {ended(result.verdict.because[0])}", "Wall", Tone.NOTICE)
    rows = []
    for each_wall in sorted(result.walls, key=lambda wall: -(wall.cost_frac or 0.0)):
        cost, most = known(each_wall.cost_frac), each_wall.at_most_frac
        share = share_of(cost)
        if most and most < 1 and (cost is None or (cost == most and not each_wall.cost_by_kind_ns)):
            share = Quantity(f"at most {percent(most)}")  # what is only bounded, however small
        rows.append((name_of(each_wall.id), share, "; ".join(each_wall.missing)))
    if detail is Detail.FULL or any(known_of(result.walls, "cost_frac")):
        yield shaped("given_walls", rows)
    if detail is Detail.FULL:
        yield plan(result, None)
    elif not first_errors(result):
        yield plan(result, _STEPS)
