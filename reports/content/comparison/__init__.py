"""The page of two runs held against each other: the first screen with its end, and everything
behind it.

One page, whatever the evidence: recordings (`Compared`), or configurations and logs (files.py). The
first screen ends with what to record to decide, warnings, and what to type next.
"""

from heuristics.result.compared import Compared, TwoRuns
from heuristics.result.compared_files import ComparedFiles
from reports.content.blocks import Block, Blocks, Command, Tone
from reports.content.comparison import files
from reports.content.comparison.causes import causes, expected, limits
from reports.content.comparison.changed import changed
from reports.content.comparison.details import details, ranks
from reports.content.comparison.difference import facts, headline, title, waterfall
from reports.content.comparison.exchanged import exchanged
from reports.content.names import beyond, sentence, statement
from reports.content.page import Detail, Page
from traces.spelling import file_word


def closing(compared: TwoRuns) -> Blocks:
    if compared.warnings:
        more = beyond(len(compared.warnings), 1, " ({} more in --full)")
        yield statement(f"{sentence(compared.warnings[0])}{more}", "Warning", Tone.NOTICE)
    if compared.record:
        yield statement(sentence(compared.record), "To decide")
    if not isinstance(compared, Compared):
        yield Command("Where the time goes:", "moe-diag capture --for regression")
        return
    if compared.size.source == "trace" and compared.verdict in ("regression", "improvement"):
        yield statement(
            "Profiling lengthens steps. For the size without it: --base-log, --new-log.", "Note"
        )
    name = "NEW/" if len(compared.new.traces) > 1 else file_word(compared.new.traces[0])
    yield Command("What slows the new run:", f"moe-diag analyze {name}")


def page(compared: Compared | ComparedFiles, detail: Detail) -> Page:
    """The first screen; with `Detail.FULL` every cause, change and limit on it, and all tables
    after it.
    """
    everything = detail is Detail.FULL
    behind: Blocks
    if isinstance(compared, Compared):
        head, under = title(compared), facts(compared)
        found_blocks = _of_recordings(compared, everything)
        behind, shown = details(compared), "row, kernel and change"
    else:
        head, under = files.title(compared), files.facts(compared)
        found_blocks = files.found(compared, everything)
        behind, shown = files.details(compared), "difference and measurement"
    limited = limits(compared, everything)
    blocks: list[Block] = [headline(compared)]
    if compared.verdict == "not_comparable":
        blocks += [*limited, *found_blocks]
    else:
        blocks += [*found_blocks, *limited]
    blocks += closing(compared)
    if everything:
        return Page(head, under, (*blocks, *behind), detail)
    return Page(head, under, tuple(blocks), detail, f"--full: every {shown} | page: -o out.html")


def _of_recordings(compared: Compared, everything: bool) -> Blocks:
    yield from ranks(compared)
    yield from expected(compared, everything)
    if compared.verdict != "not_comparable":
        yield from waterfall(compared)
        yield from exchanged(compared)
    yield from causes(compared, everything)
    yield from changed(compared, everything)
