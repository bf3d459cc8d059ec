"""A stage of a pipeline with more layers than the others."""

from collections.abc import Iterator

import numpy as np

from traces.arrays import IntArray
from traces.missing import known
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.even_stages import even_stages, microbatches_of_two
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.waiting.bubbles import pipeline_of
from traces.ranks.waiting.side_by_side import middles, own_step_of
from traces.sections.cause import Cause
from traces.sections.run import Pipeline


def propose(run: MeasuredRun) -> Iterator[Edit]:
    """The ranks of most layers, where they also do the most work."""
    layers = [group.layers for group in run.alike]
    if len(set(layers)) < 2:
        return
    work_ns = run.grid.compute_ns + np.nan_to_num(run.grid.host_ns)
    own_ns = np.stack([middles(work_ns[list(group.places)].T) for group in run.alike])
    heavy = int(np.argmax(np.nan_to_num(middles(own_ns))))
    if layers[heavy] < max(layers):
        return
    cost_ns = own_ns[heavy] - np.delete(own_ns, heavy, axis=0).mean(axis=0)
    microbatches = _microbatches(run)

    def edited(chains: Chains) -> tuple[IntArray, IntArray]:
        return even_stages(run.together.matched, chains, run.alike, microbatches)

    yield Edit(Cause.PIPELINE_IMBALANCE, (), cost_ns, edited, group=heavy, skipped=())


def _microbatches(run: MeasuredRun) -> tuple[int, ...]:
    """How many a step may have, as far as messages tell."""
    together, grid = run.together, run.grid
    found = pipeline_of(together.used, together.matched, run.waits, grid)
    one = known(found.microbatches) if isinstance(found, Pipeline) else None
    if one:
        return (one,)
    return microbatches_of_two(together.matched, own_step_of(together.matched, grid))
