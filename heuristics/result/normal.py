"""What throughput is normal for such a run: published runs, brought here by measured changes."""

from typing import Literal

from traces.sections.section import Count, Section
from traces.texts import Sentences

Standing = Literal["inside", "below", "above"]


class NormalThroughput(Section):
    """A range of one GPU's rates for this model, GPU and these settings.

    `mfu_low_frac`, `mfu_high_frac`: of the peak in the run's precision, null where none is known.
    `step_low_ns`, `step_high_ns`: with the run's batch and GPUs, null where those are not known.
    `counted`: measured changes that bring the published runs here; `not_counted`: what else
    differs. `standing`: where the measured throughput lies, null where none was;
    `replayed_tokens_high`: tokens/s at most without the largest wall.
    """

    tokens_low: float
    tokens_high: float
    tflops_low: float
    tflops_high: float
    mfu_low_frac: float | None
    mfu_high_frac: float | None
    step_low_ns: Count | None
    step_high_ns: Count | None
    published: Sentences
    counted: Sentences
    not_counted: Sentences
    sources: Sentences
    standing: Standing | None = None
    replayed_tokens_high: float | None = None
    replayed_standing: Standing | None = None
