"""Which rank of how many a recording is of, as recorded or given beside it; and fingerprints.

A fingerprint is a number that is equal where what it stands for is, and that tells nothing else.
"""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace
from hashlib import blake2b
from typing import Final

import numpy as np

from traces.arrays import IntArray
from traces.frozen import frozen
from traces.limits import MOST_RANKS
from traces.ranks.summaries.summary import Identity, RankSummary, Summaries

_SOME: Final = 4096
"""Of so many rows at the beginning a table is known."""


def fingerprint_of_text(text: str) -> int:
    """Of a text."""
    return _as_number(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8))


def fingerprint_of_pair(communicator: int, place: int, peer: int) -> int:
    """Of two ranks of a communicator, by their places in it, in either order."""
    low, high = sorted((place, peer))
    return fingerprint_of_text(f"{communicator} {low} {high}")


def fingerprint_of_columns(*columns: IntArray) -> int:
    """Of columns, by their lengths and their first rows."""
    digest = blake2b(digest_size=8)
    for column in columns:
        digest.update(len(column).to_bytes(8, "big"))
        digest.update(np.ascontiguousarray(column[:_SOME], dtype=np.int64).tobytes())
    return _as_number(digest)


def _as_number(digest: blake2b) -> int:
    return int.from_bytes(digest.digest(), "big", signed=True)


@frozen
class WorldSize:
    """Ranks of a run. `said`: where that is from, such as `run.yaml:12`; None: it was recorded."""

    ranks: int
    said: str | None = None


def recorded_size(identity: Identity) -> int | None:
    """The world size that a recording has itself."""
    if identity.world_size_from is not None:
        return None
    return identity.world_size


def with_world_size(summary: RankSummary, given: WorldSize | None) -> RankSummary:
    """The summary with a world size from elsewhere, where it has none."""
    identity = summary.identity
    if given is None or identity.world_size is not None:
        return summary
    return replace(
        summary,
        identity=replace(identity, world_size=given.ranks, world_size_from=given.said or "given"),
    )


def world_size_of(used: Summaries) -> WorldSize | None:
    """As recorded, else as most were given. One that is too small for the ranks here is none."""
    sizes = Counter[tuple[bool, int, str | None]]()
    least = len(used)
    for summary in used:
        ranks, world_from = summary.identity.world_size, summary.identity.world_size_from
        if ranks is not None and ranks <= MOST_RANKS.value:
            sizes[world_from is not None, ranks, world_from] += 1
        if summary.identity.rank is not None:
            least = max(least, summary.identity.rank + 1)
    for (given, ranks, world_from), _ in sorted(
        sizes.items(), key=lambda entry: (entry[0][0], -entry[1], str(entry[0]))
    ):
        if not given or ranks >= least:
            return WorldSize(ranks, world_from)
    return None


def with_numbers(summaries: Summaries) -> list[RankSummary]:
    """Ranks without a number have their place in a communicator of all ranks, where there is one.

    PyTorch sorts the ranks of every group that it makes (`_new_group_with_tag` in
    torch/distributed/distributed_c10d.py), so that a place among all ranks is the number of the
    rank.
    """
    size = world_size_of(summaries)
    if size is None or size.ranks <= 2:  # two may be a pair of some others
        return list(summaries)
    common: set[int] | None = None
    for rank in summaries:
        keys = {*_places(rank, size.ranks)}
        if keys:
            common = keys if common is None else common & keys
    return [_numbered(rank, _places(rank, size.ranks), common or set()) for rank in summaries]


def _places(summary: RankSummary, count: int) -> dict[int, int]:
    """The rank's place in communicators of so many."""
    return {key: own for key, size, own in summary.own_places() if size == count}


def _numbered(summary: RankSummary, places: Mapping[int, int], common: Set[int]) -> RankSummary:
    numbers = {places[key] for key in common & places.keys()}
    if summary.identity.rank is not None or len(numbers) != 1:
        return summary
    return replace(summary, identity=replace(summary.identity, rank=numbers.pop()))
