"""What files say of a run, as parts of a long page: the configuration, its numbers, what the guides say."""

from collections.abc import Iterator
from typing import Final

from heuristics.result.configured import Configuration
from heuristics.result.result import Result
from reports.content.blocks import (
    Block,
    Code,
    Column,
    Detail,
    Fold,
    Items,
    Part,
    Row,
    Sentence,
    Table,
    Words,
    words,
)
from reports.content.check_defects import (
    Weight,
    answer_words,
    defect_words,
    defects,
    legal_words,
)
from reports.content.check_numbers import number_lines, number_tables
from reports.content.check_workflow import (
    experiment_blocks,
    workflow_rules,
)
from traces.missing import known
from traces.settings.derive import DEFAULT
from traces.spelling import counted

_DEFECTS: Final = 4
"""Entries on the first screen."""


def configuration_parts(result: Result) -> tuple[Part, ...]:
    """What files say of a run, as parts of a long page; none where no configuration was given."""
    configuration = known(result.configuration)
    if configuration is None:
        return ()
    parts = (
        Part("Configuration", tuple(_configuration(result, configuration)), "configuration"),
        Part("Throughput and memory", (*number_lines(result), *number_tables(result)), "numbers"),
        Part("Workflow", tuple(workflow_rules(result)), "workflow"),
        Part("Experiments", tuple(experiment_blocks(result)), "experiments"),
    )
    return tuple(one for one in parts if one.blocks)


def _configuration(result: Result, configuration: Configuration) -> Iterator[Block]:
    """Legal or not, every defect, and the settings as they were understood."""
    yield Sentence(words(legal_words(result, configuration)))
    yield from (Sentence(words(one)) for one in answer_words(configuration.checked))
    yield from defect_items(result, Detail.FULL)
    columns = (Column("Setting"), Column("Value"), Column("From"))
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


def _value(value: object, *, withheld: bool) -> Words:
    if withheld:
        return ("withheld: it may hold a path or a name",)
    return ("null",) if value is None else (Code(str(value)),)


def defect_items(result: Result, detail: Detail) -> Iterator[Block]:
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
