"""A stage of a pipeline with more layers than the others, or with more to do beside them."""

import numpy as np

from heuristics.late.beside import Edits, Times, participations
from heuristics.late.device import across
from traces.arrays import whole
from traces.missing import known
from traces.ranks.replay.chains import Chains
from traces.ranks.replay.edit import Edit
from traces.ranks.replay.even_stages import even_stages, microbatches_of_two
from traces.ranks.replay.run import MeasuredRun
from traces.ranks.rows.ends import NO_ROW
from traces.ranks.waiting.bubbles import pipeline_of
from traces.ranks.waiting.side_by_side import middles, own_step_of
from traces.sections.cause import Cause
from traces.sections.run import Pipeline


def propose(run: MeasuredRun) -> Edits:
    """The ranks that do the most work: of most layers, or of as many with the embedding or the
    loss.
    """
    if len(run.alike) < 2:
        return
    layers = [group.layers for group in run.alike]
    # what the same kernels take longer is the device's, no more work
    pace = np.fmax(1.0, across(run))[:, np.newaxis]
    work_ns = run.grid.compute_ns / pace + np.nan_to_num(run.grid.host_ns)
    own_ns = np.stack([middles(work_ns[list(group.places)].T) for group in run.alike])
    heavy = int(np.argmax(np.nan_to_num(middles(own_ns))))
    cost_ns = own_ns[heavy] - np.delete(own_ns, heavy, axis=0).mean(axis=0)
    microbatches = _microbatches(run)

    def even(chains: Chains) -> Times:
        return even_stages(run.matched, chains, run.alike, microbatches)

    def as_others(chains: Chains) -> Times:
        keeps = 1 - float(np.nanmean(cost_ns)) / float(np.nanmean(own_ns[heavy]))
        mine = participations(run, run.alike[heavy].places) & (chains.after != NO_ROW)
        own = np.where(mine, whole(chains.own_ns * keeps), chains.own_ns)
        return own, chains.moving_ns

    by_layers = layers[heavy] == max(layers) > min(layers)
    edited = even if by_layers else as_others
    yield Edit(
        Cause.PIPELINE_IMBALANCE,
        (),
        cost_ns,
        edited,
        group=heavy,
        skipped=(),
        ordinary=not by_layers,
    )


def _microbatches(run: MeasuredRun) -> tuple[int, ...]:
    """How many a step may have, as far as messages tell."""
    together, grid = run.together, run.grid
    pipeline = pipeline_of(together.used, together.matched, run.waits, grid)
    microbatches = known(pipeline.microbatches) if isinstance(pipeline, Pipeline) else None
    if microbatches:
        return (microbatches,)
    return microbatches_of_two(together.matched, own_step_of(together.matched, grid))
