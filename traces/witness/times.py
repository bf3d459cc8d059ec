"""What the times of collectives show of ranks that nobody profiled: who arrives last, and who
waits.

Collectives of one group and number are compared over the ranks that time them: the shortest was the
last to arrive, the rest of the others is waiting for it. No clock is needed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set

from traces.missing import gap, unless
from traces.sections.hang import Witness, WitnessedRank
from traces.witness.dump import Dump, GroupKey

_UNTIMED = gap(
    "no collective is timed by several of the ranks given",
    "time them: TORCH_NCCL_ENABLE_TIMING=1, or NCCL Inspector",
)


def witness_of(dumps: Sequence[Dump], files: int, profiled: Set[int]) -> Witness:
    """All ranks of the dumps, in their order. `profiled`: numbers of those that were recorded as
    well.
    """
    timed = defaultdict[tuple[GroupKey, int], dict[int, int]](dict)
    count, last = Counter[int](), dict[int, int]()
    for dump in dumps:
        count[dump.rank] += len(dump.entered)
        for collective in dump.entered:
            last[dump.rank] = max(collective.sequence, last.get(dump.rank, 0))
            if collective.duration_ns is not None:
                timed[collective.group, collective.sequence][dump.rank] = collective.duration_ns
    waited, caused, arrived, compared = _compared(timed.values())
    untimed = None if compared else _UNTIMED
    ranks = list[WitnessedRank]()
    for rank in sorted(count):
        times = unless(untimed, waited[rank]), unless(untimed, caused[rank])
        entered = last.get(rank, gap("it entered no collective", "give a later dump"))
        late = unless(untimed, arrived[rank])
        ranks.append(WitnessedRank(rank, rank in profiled, count[rank], entered, *times, late))
    whole_ns = sum(caused.values())
    latest = max(sorted(caused), key=lambda rank: caused[rank], default=None) if whole_ns else None
    arrived_frac = caused_frac = None
    if latest is not None:
        arrived_frac, caused_frac = arrived[latest] / compared, caused[latest] / whole_ns
    return Witness(
        sources=tuple(sorted({dump.source for dump in dumps})),
        files=files,
        ranks=tuple(ranks),
        compared=compared,
        latest_rank=unless(untimed, latest),
        latest_frac=unless(untimed, arrived_frac),
        caused_frac=unless(untimed, caused_frac),
    )


def _compared(
    timed: Iterable[dict[int, int]],
) -> tuple[Counter[int], Counter[int], Counter[int], int]:
    """Waiting by rank, what others waited by rank, how often each was last, and of how many
    collectives.
    """
    waited, caused, arrived = Counter[int](), Counter[int](), Counter[int]()
    compared = 0
    for by_rank in timed:
        if len(by_rank) < 2:
            continue
        compared += 1
        latest = min(sorted(by_rank), key=lambda rank: by_rank[rank])
        arrived[latest] += 1
        for rank, length_ns in by_rank.items():
            waited[rank] += length_ns - by_rank[latest]
            caused[latest] += length_ns - by_rank[latest]
    return waited, caused, arrived, compared
