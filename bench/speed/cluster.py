"""`python -m bench.speed.cluster`: many small traces, serially and by two workers, one of which is killed.

Ends with 1 where the two documents differ in a byte.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.speed.table import machine
from tests.hostile.clusters import Killer, document, local_cluster, processes_of, small_traces


def main(words: Sequence[str] | None = None) -> int:
    """Write the traces, diagnose them both ways, and print what it took."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.cluster", description=__doc__)
    parser.add_argument("--traces", type=int, default=256, help="how many, a multiple of four")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        paths = small_traces(Path(folder), options.traces)
        started_s = time.monotonic()
        serial = document(paths)
        serial_s = time.monotonic() - started_s
        with local_cluster() as cluster:
            killer = Killer(cluster, after=options.traces // 2)
            started_s = time.monotonic()
            found = document(paths, cluster.scheduler_address, killer)
            cluster_s = time.monotonic() - started_s
            restarted = killer.killed is not None and killer.killed not in processes_of(cluster)
    same = found == serial
    print(
        f"{len(paths)} traces; {machine()}\n"
        f"serially {serial_s:.1f} s; two workers, one killed after half of the traces: {cluster_s:.1f} s\n"
        f"worker killed and replaced: {restarted}; documents of {len(serial):,} bytes the same: {same}"
    )
    return 0 if same and restarted else 1


if __name__ == "__main__":
    sys.exit(main())
