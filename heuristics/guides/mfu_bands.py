"""Where a guide places an MFU of the one model and platform that it speaks of."""

from typing import Final

from heuristics.result.configured import Band
from traces.limits import Limit
from traces.settings.precision import BITS, bits_of

_GUIDE: Final = "NVIDIA's guide on dispatchers, evidence of DeepSeek-V3 on GB200 and GB300"
LOW_TEENS: Final = Limit(0.10, "of the peak", f"{_GUIDE}: untuned in the low teens; ours: from 10 %")
UNTUNED: Final = Limit(0.155, "of the peak", f"{_GUIDE}: untuned in the low teens; ours: up to 15.5 %")
TUNED: Final = Limit(0.165, "of the peak", f"{_GUIDE}: tuned from the high teens; ours: from 16.5 %")
LOW_TWENTIES: Final = Limit(0.235, "of the peak", f"{_GUIDE}: to the low twenties; ours: up to 23.5 %")


FAMILY: Final = "dsv3"
GPUS: Final = ("GB200", "GB300")


def mfu_band(mfu_frac: float, family: str | None, gpu: str | None, precision: str | None) -> Band | None:
    """Which of the guide's bands an MFU lies in, or beside; None for a run that it does not speak of.

    The bands are of runs in FP8, against its peak: in BF16 NVIDIA's published run of the same model has 34 %.
    """
    if family != FAMILY or gpu not in GPUS or bits_of(precision) != BITS["mxfp8"]:
        return None
    if mfu_frac < LOW_TEENS.value:
        return "below"
    if mfu_frac < UNTUNED.value:
        return "untuned"
    if mfu_frac < TUNED.value:
        return "between"
    return "tuned" if mfu_frac <= LOW_TWENTIES.value else "above"
