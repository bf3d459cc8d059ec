"""Links that are slow: of a rank, of a node, or of what groups share."""

from collections.abc import Iterator, Sequence

import numpy as np

from heuristics.late.beside import participations
from traces.arrays import IntArray
from traces.ranks.replay.chains import Chains, usual
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.group_links import SLOWER, slow_groups
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows import parts
from traces.ranks.waiting.waits import EXCHANGES, Links, ends_at_once, measure_links, slowness
from traces.sections.cause import Cause


def propose(run: MeasuredRun) -> Iterator[Edit]:
    if not run.aligned.clocks.aligned or not len(run.together.matched):
        return
    matched, waits, steps = run.together.matched, run.waits, run.grid.step_count
    rails = np.array([one.identity.device for one in run.together.used])
    groups = slow_groups(matched, waits, run.aligned.end_ns, run.nodes, rails)
    if groups is not None:
        yield _edit(run, groups.places, groups.cost_ns / steps, groups.factor, spared=groups.spared)
    links = measure_links(matched, waits, run.alike, len(run.nodes))
    cost_ns = np.nan_to_num(links.cost_ns)
    place = int(np.argmax(cost_ns))
    if not links.factor[place] >= SLOWER.value:
        return
    yield _edit(run, (place,), float(cost_ns[place]) / steps, float(links.most[place]))
    whole = _node_of(run, links, place)
    if whole:
        seen = float(links.factor[whole].mean())
        yield _edit(run, tuple(whole), float(cost_ns[whole].max()) / steps, seen, is_nic=True)


def _node_of(run: MeasuredRun, links: Links, place: int) -> list[int]:
    """All ranks of its node, where each link of them is nearer to its own than to those of other nodes."""
    mine = run.nodes == run.nodes[place]
    factor = np.nan_to_num(links.factor, nan=1.0)
    if mine.all() or mine.sum() < 2:
        return []
    nearer = factor >= 1 + (factor[place] - 1) / 2
    return np.flatnonzero(mine).tolist() if (nearer == mine).all() else []


def _edit(
    run: MeasuredRun,
    places: tuple[int, ...],
    cost_ns: float,
    factor: float,
    *,
    spared: Sequence[int] = (),
    is_nic: bool = False,
) -> Edit:
    def edited(chains: Chains) -> tuple[IntArray, IntArray]:
        return chains.own_ns, _as_fast(run, chains, places, factor, spared, is_nic=is_nic)

    return Edit(Cause.SLOW_LINK, places, np.full(run.grid.step_count, cost_ns), edited)


def _as_fast(
    run: MeasuredRun,
    chains: Chains,
    places: tuple[int, ...],
    factor: float,
    spared: Sequence[int],
    *,
    is_nic: bool,
) -> IntArray:
    """Transfers with the late rank as long as others of their kind, or shorter by its factor.

    Of a ring all is slower by the factor, and of an exchange that ends at once on all; of another the others'
    by what of their data passes it.
    """
    matched, mine, moving_ns = run.together.matched, participations(run, places), chains.moving_ns
    passing = parts.most(mine, matched.first) & ~np.isin(matched.group, spared)
    touched = parts.spread(passing, matched.first)
    middle, known = usual(moving_ns, run.role, ~touched)
    size = matched.sizes
    exchanges = np.isin(matched.operation, EXCHANGES) & (size > 2) & ~ends_at_once(moving_ns, matched.first)
    slow, behind, others = factor, np.ones(len(size), dtype=np.int64), size - 1
    if is_nic:
        behind = parts.total(mine.astype(np.int64), matched.first)
        others = size - behind
        told = exchanges & passing & (others > 0)
        seen = np.full(int(told.sum()), slow)
        slow = float(np.median(slowness(seen, size[told], behind[told]))) if told.any() else slow
    passes = np.where(mine, others[matched.instance], behind[matched.instance]) / (size[matched.instance] - 1)
    part = 1 + (slow - 1) * np.where(exchanges[matched.instance], passes, 1.0)
    scaled = np.rint(moving_ns / part).astype(np.int64)
    return np.where(touched, np.where(known, middle, scaled), moving_ns)
