"""Where a guide places an MFU of the one model and platform that it speaks of."""

from typing import Final

from heuristics.recipes import RECIPES
from heuristics.result.configured import Band
from traces.settings.precision import BITS, bits_of

FAMILY: Final = "dsv3"
GPUS: Final = ("GB200", "GB300")


def mfu_band(
    mfu_frac: float, family: str | None, gpu: str | None, precision: str | None
) -> Band | None:
    """Which of the guide's bands an MFU lies in, or beside; None for a run that it does not speak
    of.

    The bands are of runs in FP8, against its peak: in BF16 NVIDIA's published run of the same model
    has 34 %.
    """
    if family != FAMILY or gpu not in GPUS or bits_of(precision) != BITS["mxfp8"]:
        return None
    if mfu_frac < RECIPES["mfu_untuned_from"].value:
        return "below"
    if mfu_frac < RECIPES["mfu_untuned_to"].value:
        return "untuned"
    if mfu_frac < RECIPES["mfu_tuned_from"].value:
        return "between"
    if mfu_frac <= RECIPES["mfu_tuned_to"].value:
        return "tuned"
    return "above"
