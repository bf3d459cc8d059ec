"""Recordings of several runs, of which none has most: one verdict of them would be of none.

Where one run has most, the others are left out and named instead (`problems.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from traces.errors import UnlikeRuns
from traces.ranks.one_run.together import OneRun
from traces.sections.cause import ProblemKind
from traces.spelling import first_of

_NAMED: Final = 3


def refuse_mixed(together: OneRun, names: Sequence[str], command: str) -> None:
    """Raises `UnlikeRuns` where as many recordings are of other runs as of the one that has most.

    `names`: of all recordings, as given; `command`: the one that is to be typed again, with one
    run.
    """
    mixed = together.of_kind(ProblemKind.MIXED_RUNS)
    gone = [names[index] for problem in mixed for index in problem.indices]
    if not gone or len(gone) < len(together.used):
        return
    kept = [names[index] for index in together.indices]
    raise UnlikeRuns(
        f"these are of different runs: {_listed(kept)}; and {_listed(gone)}: {mixed[0].reason}. "
        f"Type moe-diag {command} with the files of one run, or moe-diag compare with both"
    )


def _listed(names: Sequence[str]) -> str:
    return first_of(list(dict.fromkeys(names)), _NAMED)
