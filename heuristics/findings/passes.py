"""Whether recording and configuration are of one run: dispatches and combines are counted.

There is one of each per MoE layer, microbatch and pass. Backward mirrors forward (Megatron-Core,
megatron/core/transformer/moe/fused_a2a.py); recomputed passes are counted apart, so that recompute
changes nothing here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from heuristics.config.view import Config
from heuristics.facts.dictionary import answer
from heuristics.findings.case import Case
from heuristics.words import say
from traces.frozen import frozen
from traces.measure.moe.passes import PassCount
from traces.missing import Missing
from traces.sizes.layout import layout_of, moe_layers_of_stages
from traces.sizes.model import layers_of


@frozen
class ConfiguredPasses:
    """MoE layers that a rank may hold, by stages, and microbatches of a step."""

    layers: tuple[int, ...]
    microbatches: int

    @property
    def passes(self) -> tuple[int, ...]:
        """Passes of a step in each direction, smallest first."""
        return tuple(layers * self.microbatches for layers in self.layers)


@frozen
class Difference:
    """A rank's passes of a step, and which explanation fits.

    `near`: what the configuration gives that these are a multiple or a fraction of, 0 where nothing
    is.
    """

    forward: int
    backward: int
    why: Literal["cut", "steps", "other-run"]
    near: int = 0
    which: Literal["each", "the first", "the last"] = "each"


def layer_passes(case: Case) -> Iterator[Mapping[str, object]]:
    run, expected = case.run, configured(case.run.config)
    if expected is None or run.observed.training is not True:
        return
    for steps in run.observed.moe_passes:
        if (differs := difference(steps, expected)) is not None:
            yield {
                "which": differs.which,
                "forward": differs.forward,
                "backward": differs.backward,
                "passes": _between(expected.passes),
                "layers": _between(expected.layers),
                "microbatches": expected.microbatches,
                "reason": _reason(differs),
                "fix": say(f"findings.fix-{differs.why}"),
            }
            return


def configured(config: Config) -> ConfiguredPasses | None:
    """What the configuration gives; None where anything it hangs on is not certain."""
    named = config.value("pipeline_model_parallel_layout")
    if not answer("passes_told", config) or not isinstance(named, str | None):
        return None
    model = layers_of(config.settings)
    layout = model if isinstance(model, Missing) else layout_of(config.settings, model)
    if isinstance(model, Missing) or isinstance(layout, Missing):
        return None
    return ConfiguredPasses(
        tuple(sorted({*moe_layers_of_stages(layout, model)})), layout.microbatch_count
    )


def difference(steps: Sequence[PassCount], expected: ConfiguredPasses) -> Difference | None:
    """How a rank's steps differ; None where they fit any stage, or are not alike enough to tell."""
    counts = [(step.forward, step.backward) for step in steps]
    fits = [*zip(expected.passes, expected.passes, strict=True)]
    if len({*counts}) == 1:
        if counts[0] in fits or len({*counts[0]}) > 1:
            return None
        passes, _ = counts[0]
        for count in filter(None, expected.passes):
            if passes and (passes % count == 0 or count % passes == 0):
                return Difference(passes, passes, "steps", count)
        return Difference(passes, passes, "other-run")
    if _is_cut(counts[0], counts[1:], fits):
        return Difference(*counts[0], "cut", which="the first")
    if _is_cut(counts[-1], counts[:-1], fits):
        return Difference(*counts[-1], "cut", which="the last")
    return None


def _is_cut(
    step: tuple[int, int], others: Sequence[tuple[int, int]], fits: Sequence[tuple[int, int]]
) -> bool:
    whole = others[0]
    return len({*others}) == 1 and whole in fits and step[0] <= whole[0] and step[1] <= whole[1]


def _reason(differs: Difference) -> str:
    if differs.why != "steps":
        return say("findings.counted-cut" if differs.why == "cut" else "findings.counted-other-run")
    if differs.forward > differs.near:
        return say("findings.counted-more", times=differs.forward // differs.near)
    return say("findings.counted-less", times=differs.near // differs.forward)


def _between(counts: tuple[int, ...]) -> str:
    if len(counts) == 1:
        return f"{counts[0]:,}"
    return f"{counts[0]:,} to {counts[-1]:,}"
