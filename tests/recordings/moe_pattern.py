"""A mixture-of-experts training run for tests: one simulated H100 rank, Megatron style, expert parallel."""

from __future__ import annotations

from bench.simulate.knobs import Knobs
from bench.simulate.recorded import View, record
from bench.simulate.recording import Recording
from bench.simulate.run import run


def moe_recording(steps: int = 6, layers: int = 4, seed: int = 0, nvtx: bool = True) -> Recording:
    """Record `steps` training steps of `layers` MoE layers; the same seed gives the same recording.

    Per layer the host reads the token counts back and waits; expert all-to-all runs on its own stream with
    nothing beside it. `nvtx` adds a range `iteration N` per step, N from 0.
    """
    knobs = Knobs(seed=seed, step_count=steps, layer_count=layers, microbatch_count=1)
    return record(run(knobs), View(ranges="steps" if nvtx else "none", events=False))
