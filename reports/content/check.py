"""A judged configuration as a page: legal or not, what to correct first, its numbers, what the guides say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heuristics.result.configured import Configuration
from heuristics.result.result import Result
from heuristics.result.told import known
from reports.content.analysis.plan import plan
from reports.content.blocks import (
    Block,
    Code,
    Column,
    Command,
    Detail,
    Fold,
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
    DEFAULT,
    Weight,
    answer_words,
    defect_words,
    defects,
    ended,
    first_errors,
    legal_words,
)
from reports.content.check_numbers import number_lines, number_tables
from reports.content.check_workflow import (
    choice_line,
    choice_table,
    experiment_blocks,
    workflow_lines,
    workflow_rules,
)
from reports.content.quantities import counted, percent
from reports.words import wall_words

_DEFECTS: Final = 4
"""Entries on the first screen."""
_RULES: Final = 3
_STEPS: Final = 1
_MORE: Final = "every rule with its reason, settings, memory by part, published throughput"


def page(result: Result, detail: Detail) -> Page:
    """The page of `check-config`: at most 40 lines, or everything."""
    title = words(Code(result.about if isinstance(result.about, str) else "configuration"))
    facts = words("a configuration, checked without a trace")
    configuration = known(result.configuration)
    if configuration is None:
        return Page(title, facts, (), detail)
    blocks: list[Block] = [_headline(result, configuration, detail)]
    blocks += [Sentence(words(one), "Warning", Tone.NOTICE) for one in result.warnings]
    blocks += [*_defect_items(result, Detail.FIRST), *_judged(result, detail)]
    if detail is Detail.FULL:
        return Page(title, facts, (*blocks, *configuration_parts(result)), detail)
    blocks += number_lines(result)
    blocks += [*workflow_lines(result, _RULES), *choice_line(result), *_next(result)]
    return Page(title, facts, tuple(blocks), detail, _MORE)


def _headline(result: Result, configuration: Configuration, detail: Detail) -> Headline:
    answers = tuple(words(one) for one in answer_words(configuration.checked))
    said = words(legal_words(result, configuration))
    if not configuration.legal:
        return Headline("NOT LEGAL", said, Tone.BAD, answers)
    if first_errors(result):
        return Headline("LEGAL, BUT DOES NOT RUN AS WRITTEN", said, Tone.NOTICE, answers)
    return Headline("LEGAL", said, Tone.GOOD, answers if detail is Detail.FULL else answers[:1])


def _defect_items(result: Result, detail: Detail) -> Iterator[Block]:
    """What to correct first, then what else was found: the first entries, or all of them."""
    found = defects(result)
    named = found if detail is Detail.FULL else found[:_DEFECTS]
    first = tuple(defect_words(one, detail) for one in named if one.weight <= Weight.NOT_AS_WRITTEN)
    others = tuple(defect_words(one, detail) for one in named if one.weight > Weight.NOT_AS_WRITTEN)
    if first:
        yield Items(first, "Fix first", numbered=True)
    if left := len(found) - len(named):
        others = (*others, words(f"{counted(left, 'more entry', 'more entries')}: --full"))
    if others:
        yield Items(others, "Also found")


def _judged(result: Result, detail: Detail) -> Iterator[Block]:
    """What was given says of each wall, and the plan, after what is corrected first."""
    if result.judged is not True:
        return
    wall = known(result.verdict.wall)
    if wall is not None and not any(known(one.cost_frac) for one in result.walls if one.id == wall):
        yield Sentence(words(f"{wall_words(wall)}: {ended(result.verdict.because[0])}"), "Wall", Tone.NOTICE)
    yield _walls(result)
    if detail is Detail.FULL:
        yield plan(result, None)
    elif not first_errors(result):
        yield plan(result, _STEPS)


def _walls(result: Result) -> Table:
    columns = (Column("Could be faster by, at most"), Column("Share", number=True), Column("Missing"))
    rows = []
    for one in sorted(result.walls, key=lambda wall: -(known(wall.cost_frac) or 0.0)):
        cost = known(one.cost_frac)
        share = Quantity("unknown") if cost is None else Quantity(percent(cost), cost)
        missing = words("; ".join(one.missing))
        rows.append(Row((words(wall_words(one.id)), share, missing)))
    return Table("Walls, from what was given", columns, tuple(rows))


def _next(result: Result) -> Iterator[Block]:
    if result.judged is not True:
        yield Command(words("Nothing was measured. With a trace:"), "moe-diag analyze TRACE --config FILE")


def configuration_parts(result: Result) -> tuple[Part, ...]:
    """What files say of a run, as parts of a long page; none where no configuration was given."""
    configuration = known(result.configuration)
    if configuration is None:
        return ()
    parts = (
        Part("Configuration", tuple(_configuration(result, configuration)), "configuration"),
        Part("Throughput and memory", (*number_lines(result), *number_tables(result)), "numbers"),
        Part("Workflow", (*workflow_lines(result, None), *workflow_rules(result)), "workflow"),
        Part("What the guides choose", tuple(choice_table(result)), "choices"),
        Part("Experiments", tuple(experiment_blocks(result)), "experiments"),
    )
    return tuple(one for one in parts if one.blocks)


def _configuration(result: Result, configuration: Configuration) -> Iterator[Block]:
    """Legal or not, every defect, and the settings as they were understood."""
    yield Sentence(words(legal_words(result, configuration)))
    yield from (Sentence(words(one)) for one in answer_words(configuration.checked))
    yield from _defect_items(result, Detail.FULL)
    columns = (Column("Setting"), Column("Value"), Column("From", first=False))
    written = [one for one in configuration.settings if one.said != DEFAULT]
    rows = tuple(
        Row((words(Code(one.knob)), _value(one.value, withheld=one.withheld), words(Code(one.said))))
        for one in written
    )
    if rows:
        defaults = len(configuration.settings) - len(written)
        note = words(f"{counted(defaults, 'more setting')} at the default: in the JSON document.")
        table = Table("Settings", columns, rows, note=note if defaults else ())
        yield Fold(f"{counted(len(rows), 'setting')} that somebody set", (table,), "settings")


def _value(value: object, *, withheld: bool) -> tuple[Code] | tuple[str]:
    if withheld:
        return ("withheld: it may hold a path or a name",)
    return ("null",) if value is None else (Code(str(value)),)
