"""Who waited for whom in collectives, straight from the definition: plain lists in, plain numbers out.

Nothing in here comes from the program. Of each instance of a collective: its transfer is the time of its
shortest participant; what a participant took beyond that is its arrival wait; the late rank is the one that
started last, and all arrival wait of the instance is charged to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Part(NamedTuple):
    """What one rank recorded of one instance, on a clock that all ranks share."""

    rank: int
    group: Hashable
    sequence: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Waited:
    """One instance of a collective, by rank where a rank takes part.

    `late`: the rank that started last, or all that did at the same ns; nobody where a rank of the group is
    `missing`, because that one may have been later. `later_ns`: how long before the last one a rank started,
    and `moved_ns`: how long it took from then on. Both agree with wait and transfer where all move equally
    long; where a link is slow, arrival wait holds what its transfers took longer as well.
    """

    group: Hashable
    sequence: int
    transfer_ns: int
    wait_ns: Mapping[int, int]
    late: tuple[int, ...]
    later_ns: Mapping[int, int]
    moved_ns: Mapping[int, int]
    missing: tuple[int, ...]


def waits(parts: Iterable[Part], members: Mapping[Hashable, Sequence[int]] | None = None) -> list[Waited]:
    """Every instance, in order of its first start. `members`: the ranks of a group, where it is known.

    Without them a group has the ranks that took part in any of its instances. Raises ValueError where a rank
    took part twice.
    """
    instances: dict[tuple[Hashable, int], list[Part]] = defaultdict(list)
    seen: dict[Hashable, set[int]] = defaultdict(set)
    for part in parts:
        instances[part.group, part.sequence].append(part)
        seen[part.group].add(part.rank)
    known = {group: (members or {}).get(group, sorted(ranks)) for group, ranks in seen.items()}
    ordered = sorted(instances.values(), key=lambda some: min(part.start_ns for part in some))
    return [_waited(some, known[some[0].group]) for some in ordered]


def _waited(parts: Sequence[Part], members: Sequence[int]) -> Waited:
    ranks = np.array([part.rank for part in parts])
    if len(np.unique(ranks)) < len(ranks):
        raise ValueError(f"a rank took part twice in {parts[0].group}, {parts[0].sequence}")
    starts = np.array([part.start_ns for part in parts], np.int64)
    ends = np.array([part.end_ns for part in parts], np.int64)
    transfer_ns = int((ends - starts).min())
    missing = tuple(sorted(set(members) - set(ranks.tolist())))
    last = ranks[starts == starts.max()]
    return Waited(
        parts[0].group,
        parts[0].sequence,
        transfer_ns,
        _by_rank(ranks, ends - starts - transfer_ns),
        () if missing else tuple(sorted(last.tolist())),
        _by_rank(ranks, starts.max() - starts),
        _by_rank(ranks, ends - starts.max()),
        missing,
    )


def _by_rank(ranks: np.ndarray, values_ns: np.ndarray) -> dict[int, int]:
    return dict(zip(ranks.tolist(), values_ns.tolist(), strict=True))


def charged_ns(instances: Iterable[Waited]) -> dict[int, float]:
    """Arrival wait charged to each rank that was ever late; those late together share it equally."""
    charged: dict[int, float] = defaultdict(float)
    for one in instances:
        for rank in one.late:
            charged[rank] += sum(one.wait_ns.values()) / len(one.late)
    return dict(charged)


def uncharged_ns(instances: Iterable[Waited]) -> int:
    """Arrival wait of instances of which a participant is missing: at least so much, and nobody's."""
    return sum(sum(one.wait_ns.values()) for one in instances if one.missing)
