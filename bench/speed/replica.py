"""The made-up rank as another rank of its run: `python -m bench.speed.replica COPY EXPORT RANK`.

It has a process and a clock of its own. Its communication starts up to `_LATER_NS` later, and ends when
that of the others does.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

_APART_NS: Final = 7_000_000_000
_LATER_NS: Final = 400
"""Less than the shortest kernel of communication."""
_PROCESSES: Final = 1 << 24
"""A process is one of so many threads in a global identifier."""
_CHANGES: Final = (
    """UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + (correlationId * (3 + :rank)) % :later
    WHERE shortName IN (SELECT id FROM StringIds WHERE value LIKE 'nccl%')""",
    """UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + :apart, "end" = "end" + :apart,
    globalPid = globalPid + :process""",
    """UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = start + :apart, "end" = "end" + :apart,
    globalTid = globalTid + :process""",
    """UPDATE NVTX_EVENTS SET start = start + :apart, "end" = "end" + :apart,
    globalTid = globalTid + :process""",
    "UPDATE GPU_METRICS SET timestamp = timestamp + :apart",
)


def write_rank(path: Path, export: Path, rank: int) -> None:
    """Write the export of another rank."""
    shutil.copyfile(export, path)
    numbers = {
        **{"rank": rank, "later": _LATER_NS},
        **{"apart": rank * _APART_NS, "process": rank * _PROCESSES},
    }
    with closing(sqlite3.connect(path)) as database, database:
        for change in _CHANGES:
            database.execute(change, numbers)


def main(words: Sequence[str]) -> None:
    """Write the copy."""
    write_rank(Path(words[0]), Path(words[1]), int(words[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
