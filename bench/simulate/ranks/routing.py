"""How many tokens each rank's experts get, beside the mean."""

from __future__ import annotations

from typing import Final

from bench.simulate.draws import spread, uniform
from bench.simulate.ranks.described import Cause, Hot, RanksRun
from bench.simulate.ranks.layout import Group

_BALANCED_SIGMA: Final = 0.04
"""What the balancing loss leaves; ours."""


def tokens(run: RanksRun, rank: int, step: int, microbatch: int, layer: int) -> float:
    """Tokens that a rank gets in a layer and microbatch, as a multiple of the mean."""
    drawn = uniform(f"{run.seed}/tokens/{rank}/{step}/{microbatch}/{layer}")
    return hot_factor(run, rank, step, layer) * spread(drawn, _BALANCED_SIGMA)


def hot_factor(run: RanksRun, rank: int, step: int, layer: int) -> float:
    """The same without small draws: the hot rank has `strength`, the others share what is left."""
    group = run.layout.group(Group.EXPERT, rank)
    if run.cause is not Cause.ROUTING_IMBALANCE or len(group) == 1:
        return 1.0
    hot = run.rank
    if run.hot is not Hot.RANK:
        where = f"{run.seed}/hot/{group[0]}/{layer}" + (f"/{step}" if run.hot is Hot.STEP else "")
        hot = group[int(uniform(where) * len(group))]
    elif hot not in group:
        return 1.0
    return run.strength if rank == hot else (len(group) - run.strength) / (len(group) - 1)
