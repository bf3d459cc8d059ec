"""Contradictions of the host: collection that is manual and still strikes."""

from typing import Final

from heuristics.findings.finding import Case, ConfigFinding, Detector
from traces.limits import Limit
from traces.spelling import percent

GC_SEEN: Final = Limit(
    0.01, "fraction of the windows", "ours: what manual collection between steps costs stays under it"
)


def collection_still_strikes(case: Case) -> ConfigFinding | None:
    """Manual garbage collection asked for, and collection still makes launches late."""
    run, absent = case.run, case.run.observed.absent_frac
    share = None if absent is None else absent.get("gc", 0.0)
    if not run.asked.on("train.manual_gc") or share is None or share < GC_SEEN.value:
        return None
    interval = run.asked.count("train.manual_gc_interval")
    every = f"every {interval} steps" if interval else "at an unknown interval"
    return ConfigFinding(
        "CFG-manual-gc",
        "inert",
        f"garbage is to be collected by hand ({every}), and collection still holds launches back",
        f"train.manual_gc in {run.asked.where('train.manual_gc')}; it costs {percent(share)} of the step",
        "an interval of 10 to 100 steps, and no library that collects by itself (HST-2)",
    )


DETECTORS: Final[tuple[Detector, ...]] = (collection_still_strikes,)
