"""What a page calls a rank: by number and GPU, and by process, node or file where another has the
same.
"""

from collections import defaultdict
from typing import Final

from heuristics.result.result import Result, index_of
from reports.content.blocks import Code, Words, words
from reports.content.names import optional, plain, who
from traces.missing import known
from traces.names.file_names import WITHHELD
from traces.sections.rank import Rank

_WIDTH: Final = 24


def name_of_rank(result: Result, place: int) -> Words:
    """A rank in a sentence."""
    rank = result.ranks[place]
    twins = [one for one in result.ranks if one is not rank and who(one) == who(rank)]
    named = who(rank)
    if any(one.trace == rank.trace for one in twins):
        named += optional(", process {}", rank.process)
    of_trace = sum(one.trace == rank.trace for one in result.ranks)
    unnumbered = known(rank.rank) is None and of_trace == 1 and len(result.traces) > 1
    if not unnumbered and all(one.trace == rank.trace for one in twins):
        return words(named)
    node = _node(result, rank)
    return words(f"{named} of ", Code(rank.trace) if node is None else f"node {node}")


def short_name(result: Result, place: int) -> Words:
    """A rank in a table or a map: its recording only where another rank has its number and GPU."""
    rank = result.ranks[place]
    if sum(who(one) == who(rank) for one in result.ranks) == 1:
        return words(who(rank))
    *first, last = name_of_rank(result, place)
    # names of recordings differ at their ends
    if isinstance(last, Code) and len(last.text) > _WIDTH:
        last = Code(f"...{last.text[3 - _WIDTH :]}")
    return (*first, last)


def _node(result: Result, rank: Rank) -> int | None:
    """The number of its node, from 0, where the name of its recording is withheld: nobody could
    look it up.

    Recordings of several GPUs each, one of which has the same number in all of them, are of a node
    each.
    """
    if WITHHELD not in rank.trace:
        return None
    recorded = defaultdict[str, set[str]](set)
    for one in result.ranks:
        recorded[one.trace].add(who(one))
    of_nodes = min(map(len, recorded.values())) > 1 and set.intersection(*recorded.values())
    if of_nodes:
        return [*recorded].index(rank.trace)
    return None


def called(result: Result, rank: Rank) -> str:
    """A rank in few words."""
    return plain(short_name(result, index_of(result, rank)))
