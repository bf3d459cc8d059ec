"""Pairs of ranks that exchange messages, where recordings name the other's place in a communicator only.

A recording that began after the communicator was made does not tell the rank's own place in it. Where all
ranks of the communicator were recorded, and say which they are, their order tells: communicators of
training frameworks number their ranks in order of the global ones.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from traces.ranks.fingerprints import of_pair, of_text
from traces.ranks.summary import Group, GroupSource, RankSummary


def groups_of(summaries: Sequence[RankSummary]) -> list[tuple[Group, ...]]:
    """The groups of each summary, with pairs known on both sides where that can be told."""
    own = _own_places(summaries)
    return [
        tuple(
            _paired(group, place, own) if group.source is GroupSource.PEER else group
            for group in summary.groups
        )
        for place, summary in enumerate(summaries)
    ]


def _paired(group: Group, place: int, own: Mapping[tuple[int, int], int]) -> Group:
    """A pair; one of which nobody else is known where its own place is not."""
    if group.peer is None or (mine := own.get((group.key, place))) is None:
        return replace(group, key=of_text(f"{group.key} {place} {group.peer}"))
    key = of_pair(group.key, mine, group.peer)
    return Group(GroupSource.COMMUNICATOR, key, 2, own=int(mine > group.peer))


def _own_places(summaries: Sequence[RankSummary]) -> dict[tuple[int, int], int]:
    """(communicator, place of the summary) -> the rank's place in the communicator."""
    peers: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, summary in enumerate(summaries):
        for group in summary.groups:
            if group.source is GroupSource.PEER and group.peer is not None:
                peers[group.key][place].add(group.peer)
    found: dict[tuple[int, int], int] = {}
    for key, by_place in peers.items():
        ranks = {place: summaries[place].identity.rank for place in by_place}
        if None in ranks.values():
            continue
        order = sorted(by_place, key=lambda place: ranks[place] or 0)
        known = [by_place[place] for place in order]
        if _fit(known):
            found |= {(key, place): number for number, place in enumerate(order)}
    return found


def _fit(peers: Sequence[set[int]]) -> bool:
    """Whether each is a peer of its peers."""
    return all(
        other < len(peers) and number in peers[other] for number, mine in enumerate(peers) for other in mine
    )
