"""Who waited for whom in a run of the second simulator, and how long its steps took: in true time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from bench.second.ranks import draw_ranks, programs, stronger
from bench.second.simulator import SecondRanks
from bench.second.simulator_parts import Instance, Piece, instance_of
from bench.second.simulator_truth import borders_ns, executed
from bench.simulate.host_program import Program
from bench.simulate.ranks.described import Cause, Extent, RanksRun
from bench.simulate.ranks.happened import RanksDone
from bench.simulate.ranks.layout import Layout
from bench.simulate.ranks.truth import Truth
from bench.simulate.ranks.waits_by_definition import Part
from bench.simulate.run import Run

LEAST_EFFECT_FRAC: Final = 0.04
_TRIES: Final = 8


class SecondTruth:
    """Runs the programs of all ranks together when made, by rank.

    Of collectives of one rank nothing is kept: nobody waits in them.
    """

    def __init__(self, programs: Mapping[int, Program]) -> None:
        self.ran = SecondRanks(programs)
        self.borders_ns = {rank: borders_ns(done.pieces) for rank, done in self.ran.ranks.items()}
        self.arrivals_ns: Mapping[Instance, Mapping[int, int]] = {
            instance: there for instance, there in self.ran.arrivals_ns.items() if len(there) > 1
        }

    def done(self, run: RanksRun) -> RanksDone:
        """The same as the first simulator's own record of a run, so that it can be written as recordings."""
        ranks = self.ran.ranks
        return RanksDone(
            run,
            tuple(
                Run(run.knobs_of(rank), executed(ranks[rank]), tuple(self.borders_ns[rank]))
                for rank in sorted(ranks)
            ),
        )

    @property
    def steps_ns(self) -> dict[int, list[int]]:
        """How long each step took, by rank."""
        return {
            rank: [after - before for before, after in pairwise(borders)]
            for rank, borders in self.borders_ns.items()
        }

    @property
    def whole_ns(self) -> int:
        """From the first step of any rank to the last end of any."""
        begins, *_, ends = zip(*self.borders_ns.values(), strict=True)
        return int(max(ends) - min(begins))

    @property
    def charged_ns(self) -> Counter[int]:
        """All that ranks waited from their arrival to the last one's, by the rank that arrived last.

        Of several that arrived last together the lowest is charged.
        """
        charged: Counter[int] = Counter()
        for there in self.arrivals_ns.values():
            last_ns = max(there.values())
            late = min(rank for rank, arrival_ns in there.items() if arrival_ns == last_ns)
            charged[late] += sum(last_ns - arrival_ns for arrival_ns in there.values())
        return charged

    @property
    def parts(self) -> list[Part]:
        """What each rank would record of these collectives by the one true clock."""
        return [
            Part(rank, instance_of(piece.collective)[:2], piece.collective.sequence, *_times_ns(piece))
            for rank, done in self.ran.ranks.items()
            for piece in done.pieces
            if piece.collective is not None and len(piece.collective.group) > 1
        ]


def draw_truth(seed: int, cause: Cause, layout: Layout | None = None, extent: Extent = Extent.RANK) -> Truth:
    """A run of `bench.second.ranks` with a cause that matters, and the same without it.

    Raises ValueError where the cause does not matter however strong it is.
    """
    run, said = draw_ranks(seed, cause, layout, extent)
    mended = SecondTruth(programs(run.mended(), said)).done(run.mended())
    for _ in range(_TRIES):
        truth = Truth(SecondTruth(programs(run, said)).done(run), mended)
        if cause is Cause.NONE or truth.effect_frac >= LEAST_EFFECT_FRAC:
            return truth
        run = stronger(run)
    raise ValueError(f"{cause.value} of seed {seed} does not matter however strong it is")


def _times_ns(piece: Piece) -> tuple[int, int]:
    assert piece.start_ns is not None
    assert piece.end_ns is not None
    return piece.start_ns, piece.end_ns
