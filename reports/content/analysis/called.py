"""What a page calls a rank: by number and GPU, and by process or recording where another has the same."""

from typing import Final

from heuristics.result.result import Result, index_of
from reports.content.blocks import Code, Words, words
from reports.content.names import plain, who
from traces.missing import known
from traces.sections.rank import Rank

_WIDTH: Final = 24


def name_of_rank(result: Result, place: int) -> Words:
    """A rank in a sentence."""
    rank = result.ranks[place]
    twins = [one for one in result.ranks if one is not rank and who(one) == who(rank)]
    process, beside = known(rank.process), any(one.trace == rank.trace for one in twins)
    of_trace = sum(one.trace == rank.trace for one in result.ranks)
    unnumbered = known(rank.rank) is None and of_trace == 1 and len(result.traces) > 1
    named = who(rank) + (f", process {process}" if beside and process is not None else "")
    if unnumbered or any(one.trace != rank.trace for one in twins):
        return words(f"{named} of ", Code(rank.trace))
    return words(named)


def short_name(result: Result, place: int) -> Words:
    """A rank in a table or a map: its recording only where another rank has its number and GPU."""
    rank = result.ranks[place]
    if sum(who(one) == who(rank) for one in result.ranks) == 1:
        return words(who(rank))
    *first, last = name_of_rank(result, place)
    return (*first, Code(_end(last.text))) if isinstance(last, Code) else (*first, last)


def called(result: Result, rank: Rank) -> str:
    """A rank in few words."""
    return plain(short_name(result, index_of(result, rank)))


def _end(name: str) -> str:
    """The end of a recording's name, which differs from rank to rank."""
    return name if len(name) <= _WIDTH else f"...{name[3 - _WIDTH :]}"
