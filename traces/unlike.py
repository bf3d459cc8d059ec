"""Recordings that cannot be of one run: of different GPUs or programs, with no communicator in
common.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from traces.errors import UnlikeRuns
from traces.frozen import frozen
from traces.limits import Limit
from traces.ranks.summaries.summary import RankSummary, Summaries
from traces.spelling import first_of, gpu_model

if TYPE_CHECKING:
    from traces.measurements import RankMeasurements

ALIKE: Final = Limit(
    0.2,
    "fraction of compute work in kernels of one name",
    "ours: stages of one model share their layers' kernels; recordings of two programs share a few "
    "helpers",
)
_MOST: Final = 3
_COMM: Final = "comm."


@frozen
class _Kind:
    """What a set of recordings has in common, told by the first of them."""

    names: list[str]
    gpu: str | None
    kernels: Mapping[str, float]
    communicators: set[int]

    def holds(self, other: _Kind) -> bool:
        if self.communicators & other.communicators or {*self.names} & {*other.names}:
            return True
        same_gpu = None in (self.gpu, other.gpu) or self.gpu == other.gpu
        return same_gpu and _shared(self.kernels, other.kernels) >= ALIKE.value


def refuse_unlike(ranks: Sequence[RankMeasurements]) -> None:
    """Raises `UnlikeRuns`, with their names, where the recordings are not of one run."""
    _refuse(map(_kind, ranks), "Give analyze one run at a time, or compare two")


def refuse_unlike_summaries(summaries: Summaries) -> None:
    """Raises `UnlikeRuns` for rank summaries of different runs; of kernels they hold fingerprints.

    Where communicators join all of them, as of thousands of ranks of one run, no kernels are looked
    at.
    """
    joined = set[int]()
    for place, summary in enumerate(summaries):
        keys = summary.communicators
        if place and not joined & keys:
            break
        joined |= keys
    else:
        return
    _refuse(map(_kind_of_summary, summaries), "Type moe-diag merge with the summaries of one run")


def _refuse(recordings: Iterable[_Kind], cure: str) -> None:
    kinds: list[_Kind] = []
    for recording in recordings:
        home = next((kind for kind in kinds if kind.holds(recording)), None)
        if home is None:
            kinds.append(recording)
        else:
            home.names.extend(name for name in recording.names if name not in home.names)
            home.communicators.update(recording.communicators)
    if len(kinds) < 2:
        return
    why = "GPUs" if len({kind.gpu for kind in kinds} - {None}) > 1 else "programs"
    raise UnlikeRuns(
        f"these recordings are of different {why}, with no communicator in common, so not of one "
        f"run: {'; '.join(map(_described, kinds))}. {cure}"
    )


def _kind(rank: RankMeasurements) -> _Kind:
    gpu = rank.gpu.name if rank.gpu else None
    return _Kind([rank.trace], gpu and gpu_model(gpu), _kernels(rank), rank.summary.communicators)


def _kind_of_summary(summary: RankSummary) -> _Kind:
    names = map(str, summary.kernels.kernel.tolist())
    work_ns = dict(zip(names, summary.kernels.total_ns.tolist(), strict=True))
    return _Kind([summary.identity.trace], None, _shares(work_ns), summary.communicators)


def _kernels(rank: RankMeasurements) -> Mapping[str, float]:
    work_ns: dict[str, int] = {}
    for row in rank.kernel_table.rows:
        if not row.key.startswith(_COMM):
            work_ns[row.name] = work_ns.get(row.name, 0) + row.work_ns
    return _shares(work_ns)


def _shares(work_ns: Mapping[str, int]) -> Mapping[str, float]:
    """The share of each kernel in all work; none where there is no work."""
    whole_ns = sum(work_ns.values())
    return {name: ns / whole_ns for name, ns in work_ns.items() if whole_ns}


def _shared(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """How much work two recordings have in kernels of one name; all where one of them shows
    none.
    """
    if not first or not second:
        return 1.0
    return sum(min(share, second.get(name, 0.0)) for name, share in first.items())


def _described(kind: _Kind) -> str:
    return f"{first_of(kind.names, _MOST)} ({kind.gpu or 'GPU model not known'})"
