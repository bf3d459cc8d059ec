"""CMP-10: one memory layout for convolutions, channels last.

Changes how tensors of images lie in memory: cuDNN's and MIOpen's fast convolutions want NHWC, PyTorch's
default is NCHW, so kernels copy tensors to and fro. Helps where such copies take a visible part of the step.
Not for what has no convolutions.
"""

from typing import Final

from heuristics.fixes.change import Change
from heuristics.fixes.fix import Fix, Form
from heuristics.fixes.precondition import Precondition
from heuristics.fixes.preconditions import holds
from heuristics.run.run import Run
from heuristics.walls.compute import LAYOUT
from traces.spelling import chosen


def change(run: Run) -> Change:
    """None of Megatron's: its layers do not convolve images."""
    del run
    return Change()


def advice(run: Run) -> tuple[Precondition, ...]:
    """Copies worth avoiding."""
    share = run.active.layout_frac
    fact = None if share is None else share >= LAYOUT.value
    text = f"kernels that only change the layout take {chosen(LAYOUT.value)} of the time"
    return (holds(text, fact, told_by="record a whole step"),)


TITLE: Final = "Keep images in one memory layout: channels last"
VERIFY: Final = "kernels named nchwToNhwc, nhwcToNchw or batched_transpose are gone"
SOURCES: Final = ("PyTorch tutorial, channels last memory format",)

FIX: Final = Fix(
    id="CMP-10",
    wall="compute",
    title=TITLE,
    change=change,
    advice=advice,
    versions="no matter of Megatron's",
    verify=VERIFY,
    sources=SOURCES,
    direct=(),  # what it removes runs on filled SMs
    acts_on=lambda run: run.active.layout_frac,
    pytorch=Form(
        title=TITLE,
        code=(
            "model = model.to(memory_format=torch.channels_last)",
            "images = images.to(device, memory_format=torch.channels_last, non_blocking=True)",
        ),
        verify=VERIFY,
        sources=SOURCES,
        versions="since PyTorch 1.5; faster with 16 bits",
        advice=advice,
    ),
)
