"""A judged configuration as a page: legal or not, what to correct first, its numbers, what the guides say."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.configured import Configuration
from heuristics.result.judged import Wall
from heuristics.result.result import Result
from reports.content.analysis.plan import plan
from reports.content.blocks import (
    Block,
    Code,
    Column,
    Command,
    Detail,
    Headline,
    Items,
    Page,
    Part,
    Quantity,
    Row,
    Sentence,
    Table,
    Tone,
    words,
)
from reports.content.check_defects import (
    answer_words,
    first_errors,
    legal_words,
    recipe_known,
)
from reports.content.check_numbers import configuration_parts, defect_items, number_lines
from reports.content.check_workflow import (
    choice_line,
    choices,
    refused_by_default,
    workflow_lines,
)
from reports.content.names import ended, name_of
from reports.redaction import redaction_words
from traces.missing import known
from traces.spelling import percent

_RULES: Final = 3
_STEPS: Final = 1
_MORE: Final = "--full: every rule and its reason, settings, memory by part"


def page(result: Result, detail: Detail) -> Page:
    """The page of `check-config`: at most 40 lines, or everything."""
    title = words(Code(result.about if isinstance(result.about, str) else "configuration"))
    facts = words("a configuration, checked without a trace")
    configuration = known(result.configuration)
    if configuration is None:
        return Page(title, facts, (), detail)
    blocks: list[Block] = [_headline(result, configuration, detail)]
    if refused := refused_by_default(result):
        blocks.append(Items(refused, "Refused at the defaults"))
    blocks += [Sentence(words(one), "Warning", Tone.NOTICE) for one in result.warnings]
    if detail is Detail.FULL:
        chosen = Part("What the guides choose", tuple(choices(result)), "choices")
        held = Sentence(words(redaction_words(result.redacted)))
        defects_and_settings, *others = configuration_parts(result)
        blocks += [defects_and_settings, *_judged(result, detail), chosen, *others, held]
        return Page(title, facts, tuple(blocks), detail)
    blocks += [*defect_items(result, Detail.FIRST), *_judged(result, detail), *number_lines(result)]
    blocks += [*workflow_lines(result, _RULES), *choice_line(result), *_next(result)]
    return Page(title, facts, tuple(blocks), detail, _MORE)


def _headline(result: Result, configuration: Configuration, detail: Detail) -> Headline:
    answers = tuple(words(one) for one in answer_words(configuration.checked))
    said = words(legal_words(result, configuration))
    if not configuration.legal:
        return Headline("NOT LEGAL", said, Tone.BAD, answers)
    if first_errors(result):
        return Headline("LEGAL, BUT DOES NOT RUN AS WRITTEN", said, Tone.NOTICE, answers)
    if not recipe_known(configuration):
        return Headline("UNDECIDED: THE VALUES OF THE RECIPE ARE NOT KNOWN", said, Tone.NOTICE, answers)
    if refused_by_default(result):
        return Headline("LEGAL ONLY IF THE RECIPE SETS WHAT THE FILE LEAVES OUT", said, Tone.NOTICE, answers)
    return Headline("LEGAL", said, Tone.GOOD, answers if detail is Detail.FULL else answers[:1])


def _judged(result: Result, detail: Detail) -> Iterator[Block]:
    """What was given says of each wall, and the plan, after what is corrected first."""
    if result.judged is not True:
        return
    wall = known(result.verdict.wall)
    if wall is not None and not any(known(one.cost_frac) for one in result.walls if one.id == wall):
        yield Sentence(words(f"{name_of(wall)}: {ended(result.verdict.because[0])}"), "Wall", Tone.NOTICE)
    yield _walls(result)
    if detail is Detail.FULL:
        yield plan(result, None)
    elif not first_errors(result):
        yield plan(result, _STEPS)


def _walls(result: Result) -> Table:
    columns = (Column("Could be faster by, at most"), Column("Share", number=True), Column("Missing"))
    rows = []
    for one in sorted(result.walls, key=lambda wall: -(known(wall.cost_frac) or 0.0)):
        missing = words("; ".join(one.missing))
        rows.append(Row((words(name_of(one.id)), _share(one), missing)))
    return Table("Walls, from what was given", columns, tuple(rows))


def _share(wall: Wall) -> Quantity:
    """What a wall costs; what is only bounded is written so, however small."""
    cost, most = known(wall.cost_frac), known(wall.at_most_frac)
    if most and most < 1 and (cost is None or (cost == most and not known(wall.cost_by_kind_ns))):
        return Quantity(f"at most {percent(most)}")
    return Quantity("unknown") if cost is None else Quantity(percent(cost), cost)


def _next(result: Result) -> Iterator[Block]:
    if result.judged is not True:
        yield Command(words("Nothing was measured. With a trace:"), "moe-diag analyze TRACE --config FILE")
