"""The page of two runs held against each other: the first screen with its end, and everything behind it.

The first screen ends with what to record to decide, warnings, and what to type next.
"""

from collections.abc import Iterator

from heuristics.result.compared import Compared
from reports.content.blocks import Block, Command, Detail, Page, Sentence, Tone
from reports.content.comparison.causes import causes, expected, limits
from reports.content.comparison.changed import changed
from reports.content.comparison.details import details, ranks
from reports.content.comparison.difference import facts, headline, title, waterfall
from reports.content.comparison.exchanged import exchanged
from reports.content.names import sentence
from traces.spelling import file_word


def closing(compared: Compared) -> Iterator[Block]:
    if compared.warnings:
        more = f" ({len(compared.warnings) - 1} more in --full)" if len(compared.warnings) > 1 else ""
        yield Sentence((f"{sentence(compared.warnings[0])}{more}",), "Warning", Tone.NOTICE)
    if compared.record:
        yield Sentence((sentence(compared.record),), "To decide")
    elif compared.size.source == "trace" and compared.verdict in ("regression", "improvement"):
        yield Sentence(
            ("Profiling lengthens steps. For the size without it: --base-log, --new-log.",), "Note"
        )
    name = "NEW/" if len(compared.new.traces) > 1 else file_word(compared.new.traces[0])
    yield Command(("What slows the new run:",), f"moe-diag analyze {name}")


def page(compared: Compared, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every cause, change and limit on it, and all tables after it."""
    everything = detail is Detail.FULL
    forbidden = compared.verdict == "not_comparable"
    blocks: tuple[Block, ...] = (
        headline(compared),
        *(limits(compared, everything) if forbidden else ()),
        *ranks(compared),
        *expected(compared, everything),
        *(() if forbidden else waterfall(compared)),
        *(() if forbidden else exchanged(compared)),
        *causes(compared, everything),
        *changed(compared, everything),
        *(() if forbidden else limits(compared, everything)),
        *closing(compared),
        *(details(compared) if everything else ()),
    )
    more = "" if everything else "--full: every row, kernel and change | page: -o out.html"
    return Page(title(compared), facts(compared), blocks, detail, more)
