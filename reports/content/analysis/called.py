"""What a page calls a rank: by number and GPU, and by process, node or file where another has the
same.
"""

from collections import defaultdict
from typing import Final

from heuristics.result.result import Result, index_of
from reports.content.blocks import Code, Words, words
from reports.content.names import optional, plain, who
from reports.rows import those
from traces.missing import known
from traces.names.file_names import WITHHELD
from traces.sections.rank import Rank

_WIDTH: Final = 24


def name_of_rank(result: Result, place: int) -> Words:
    """A rank in a sentence."""
    rank = result.ranks[place]
    rank_name, alike = who(rank), [other for other in result.ranks if who(other) == who(rank)]
    alike_here, here = those(alike, trace=rank.trace), those(result.ranks, trace=rank.trace)
    if len(alike_here) > 1:
        rank_name += optional(", process {}", rank.process)
    unnumbered = known(rank.rank) is None and len(here) == 1 and len(result.traces) > 1
    if not unnumbered and len(alike_here) == len(alike):
        return words(rank_name)
    node = _node(result, rank)
    return words(f"{rank_name} of ", Code(rank.trace) if node is None else f"node {node}")


def short_name(result: Result, place: int) -> Words:
    """A rank in a table or a map: its recording only where another rank has its number and GPU."""
    rank = result.ranks[place]
    if [*map(who, result.ranks)].count(who(rank)) == 1:
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
    for other_rank in result.ranks:
        recorded[other_rank.trace].add(who(other_rank))
    of_nodes = min(map(len, recorded.values())) > 1 and set.intersection(*recorded.values())
    if of_nodes:
        return [*recorded].index(rank.trace)
    return None


def called(result: Result, rank: Rank) -> str:
    """A rank in few words."""
    return plain(short_name(result, index_of(result, rank)))
