"""The page of two runs held against each other: the first screen, and everything behind it."""

from heuristics.result.compared import Compared
from reports.content.blocks import Block, Detail, Page
from reports.content.comparison.causes import causes
from reports.content.comparison.closing import closing
from reports.content.comparison.details import details
from reports.content.comparison.differs import changed, limits
from reports.content.comparison.expected import expected
from reports.content.comparison.headline import facts, headline, title
from reports.content.comparison.ranks import ranks
from reports.content.comparison.rows import waterfall

__all__ = ["page"]


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
        *causes(compared, everything),
        *changed(compared, everything),
        *(() if forbidden else limits(compared, everything)),
        *closing(compared),
        *(details(compared) if everything else ()),
    )
    more = "" if everything else "--full: every row, kernel and change | page: -o out.html"
    return Page(title(compared), facts(compared), blocks, detail, more)
