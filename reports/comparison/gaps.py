"""Why a value of a comparison is null, as entries of `missing`: a table by path, held against a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from heuristics.comparison.difference.interval import LEAST
from reports.document import Document
from traces.missing import Missing

_PLACE: Final = re.compile(r"\[\d+\]")
_LAST: Final = re.compile(r"\[\*\]$|\.?[^.\[]+$")
NO_CURE: Final = "none is needed"
_AGAIN: Final = "make both results again with this version: moe-diag analyze"
_FEW: Final = (
    f"fewer than {LEAST.value} steps on a side",
    f"record at least {LEAST.value} steps a side, or give --base-log and --new-log",
)
_STILL: Final = ("no row moved, so that none has a share of what moved", NO_CURE)
_NO_WORK: Final = (
    "a side does not say the work of this row (results before 0.2), or the sides split idle time differently",
    _AGAIN,
)
_ROW: Final[Mapping[str, tuple[str, str]]] = {
    "wall": ("taking away no single wall shrinks these rows", NO_CURE),
    "count_ns": _NO_WORK,
    "duration_ns": _NO_WORK,
    "overlap_ns": _NO_WORK,
    "ci95_ns": _FEW,
    "share_frac": _STILL,
}
_OF_NOISE: Final = tuple(f"{group}[*].ci95_ns" for group in ("attribution", "reasons", "modules"))
_NOISE: Final = ("the row of noise has no interval of its own", NO_CURE)
_SIDE: Final[Mapping[str, tuple[str, str]]] = {
    "gpu": ("the trace does not say the model of its GPU, or no name we know", "moe-diag doctor TRACE"),
    "rank": (
        "the trace does not record the rank",
        "record with --trace=cuda,nvtx,mpi where MPI starts the run",
    ),
    "process": ("the trace does not record the process", "export the report again with a newer nsys"),
    "steps": (
        "no steps were found: the whole window is compared",
        "push one NVTX range named 'iteration N' per step and record with --trace=cuda,nvtx",
    ),
    "log.mean_ns": ("the log holds no iterations after its start", "give a longer log"),
    "log.median_ns": ("the log holds no iterations after its start", "give a longer log"),
    "log": ("no training log was given", "--base-log, --new-log"),
    "wall": ("its own diagnosis names no wall", "moe-diag analyze says why"),
    "bound": ("its own diagnosis names nothing that bounds it", "moe-diag analyze says why"),
    "kind": ("its own diagnosis names no kind of wall", "moe-diag analyze says why"),
    "confidence": ("its own diagnosis names no wall to be sure of", "moe-diag analyze says why"),
    "timeline.step": (
        "no steps were found: the window is shown",
        "give --steps, --nvtx, or record step ranges",
    ),
    "timeline.reasons": ("time without compute is not explained", "moe-diag analyze says why"),
    "timeline": ("a result has no timeline, as those before 0.2", _AGAIN),
}
_REST: Final[Mapping[str, tuple[str, str]]] = {
    "tool.guidance": ("the two results follow different editions of the guides", _AGAIN),
    "step_delta_frac": ("the steps of base take no time", "record base again"),
    "size": _FEW,
    "step_delta_ci95_ns": _FEW,
    "kernels[*].base_grid": ("the kernel is not in base, or its grid was not recorded", NO_CURE),
    "kernels[*].new_grid": ("the kernel is not in new, or its grid was not recorded", NO_CURE),
    "kernels[*].base_each_ns": ("the kernel is not in base", NO_CURE),
    "kernels[*].new_each_ns": ("the kernel is not in new", NO_CURE),
    "kernels": ("a result lists no kernels, as those before 0.2", _AGAIN),
    "changed[*].base": ("base does not say it, says null, or its text is not shown", NO_CURE),
    "changed[*].new": ("new does not say it, says null, or its text is not shown", NO_CURE),
    "pairs[*].base.rank": _SIDE["rank"],
    "pairs[*].new.rank": _SIDE["rank"],
    "pairs[*].step_delta_ns": _SIDE["steps"],
    "gate": ("no gate was asked for", "--gate 3%"),
    **{
        f"{group}[*].{key}": why
        for group in ("attribution", "reasons", "modules")
        for key, why in _ROW.items()
    },
    **{f"{side}.{key}": why for side in ("base", "new") for key, why in _SIDE.items()},
}


def gaps(document: Document) -> list[Missing]:
    """An entry for every null of the document, one for all that stand in the same place of a list."""
    reasons = _REST
    if min(document[side]["steps"]["count"] for side in ("base", "new")) >= LEAST.value:
        reasons = {**reasons, **dict.fromkeys(_OF_NOISE, _NOISE)}
    found = dict.fromkeys(_covering(path, reasons) for path in _nulls(document))
    return [Missing(path, *reasons[path]) for path in found]


def _covering(path: str, reasons: Mapping[str, tuple[str, str]]) -> str:
    """The path of the entry: the null's own, or the nearest parent that has one."""
    wanted = _PLACE.sub("[*]", path)
    while wanted and wanted not in reasons:
        wanted = _LAST.sub("", wanted)
    return wanted


def _nulls(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _nulls(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _nulls(part, f"{path}[{index}]")
