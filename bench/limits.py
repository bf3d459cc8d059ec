"""python -m bench.limits: what limits rest on, measured on recordings by others (MOE_DIAG_TRACES)."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

COMMUNICATION: Final = re.compile(r"nccl|rccl", re.I)
LATENCY_NS: Final = 5_000
FEWEST: Final = 3
Launch = tuple[str, str]
"""A kernel's name and grid."""
Ran = tuple[object, int, int, Launch]
"""The stream that a kernel ran on, when it began, how long it took, in ns, and its launch."""
ROWS: Final = """
    SELECT deviceId, streamId, start, end - start, value, gridX, gridY, gridZ
    FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON StringIds.id = demangledName
"""


def kernels_of(path: Path) -> list[Ran]:
    """The kernels of a recording that took longer than a launch does, in order of stream and time."""
    rows = _of_export(path) if path.suffix == ".sqlite" else _of_json(path)
    ran = [row for row in rows if row[2] >= LATENCY_NS and not COMMUNICATION.search(row[3][0])]
    return sorted(ran, key=lambda row: (str(row[0]), row[1]))


def _of_export(path: Path) -> Iterator[Ran]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as file:
        for device, stream, start, length, name, *grid in file.execute(ROWS):
            yield (device, stream), start, length, (name, str(grid))


def _of_json(path: Path) -> Iterator[Ran]:
    packed = path.read_bytes()
    document = json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed)
    for event in document["traceEvents"] if isinstance(document, dict) else document:
        if event.get("cat", "").lower() == "kernel" and "dur" in event:
            start, length = (round(1_000 * float(event[key])) for key in ("ts", "dur"))
            grid = str(event.get("args", {}).get("grid"))
            yield (event["pid"], event["tid"]), start, length, (event["name"], grid)


def spreads(kernels: Sequence[Ran]) -> list[tuple[float, int]]:
    """Of the kernels of one launch between the same two before and after, three and more: the 90th percentile
    less the 10th, over the median, and how long they take.
    """
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at in range(2, len(kernels) - 2):
        streams, _, _, launches = zip(*kernels[at - 2 : at + 3], strict=True)
        if len({*streams}) == 1:
            alike[launches].append(kernels[at][2])
    found = []
    for lengths in alike.values():
        if len(lengths) >= FEWEST:
            low, middle, high = np.quantile(lengths, (0.1, 0.5, 0.9), method="lower")
            found.append((float(high - low) / float(middle), sum(lengths)))
    return found


def apart(gpus: Sequence[Sequence[Ran]]) -> list[tuple[float, int]]:
    """Of each launch that all GPUs make three times and more, on each: how far its median is from its mean,
    each over the median of the others'; and how long it takes.
    """
    lengths: list[dict[Launch, list[int]]] = [defaultdict(list) for _ in gpus]
    for mine, kernels in zip(lengths, gpus, strict=True):
        for _, _, took, launch in kernels:
            mine[launch].append(took)
    found = []
    for launch in set.intersection(*({*gpu} for gpu in lengths)):
        of_gpus = [gpu[launch] for gpu in lengths]
        if min(map(len, of_gpus)) >= FEWEST:
            medians, means = (np.array([how(each) for each in of_gpus]) for how in (np.median, np.mean))
            for at, took_ns in enumerate(of_gpus):
                usual = [np.median(np.delete(values, at)) for values in (medians, means)]
                found.append((abs(medians[at] / usual[0] - means[at] / usual[1]), sum(took_ns)))
    return found


def shown(name: str, values: Sequence[tuple[float, int]], limit: float) -> str:
    """One line: how many, and how much of their time, lie within the limit; and how far they reach."""
    of, took_ns = map(np.array, zip(*values, strict=True))
    within = of <= limit
    half, most = np.quantile(of, (0.5, 0.9))
    of_time = took_ns[within].sum() / took_ns.sum()
    return (
        f"{name}: within {limit} {within.mean():.1%} of {len(of)}, {of_time:.1%} of their time; "
        f"median {half:.3f}, 90th percentile {most:.3f}\n"
    )


def main() -> None:
    """Print what each limit holds of all recordings that are there."""
    top = Path(os.environ.get("MOE_DIAG_TRACES") or sys.exit("MOE_DIAG_TRACES names no folder of recordings"))
    alike, beside = [], []
    for path in sorted(path for name in (".", "real", "added", "added-4") for path in (top / name).iterdir()):
        if path.name.endswith((".sqlite", ".json.gz")):
            try:
                kernels = kernels_of(path)
            except (sqlite3.Error, KeyError) as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            alike += spreads(kernels)
            devices = [[*each] for _, each in groupby(kernels, lambda ran: str(ran[0]).split(",")[0])]
            beside += apart(devices) if path.suffix == ".sqlite" and len(devices) > 1 else []
    sys.stdout.write(shown("traces.measure.sm.ALIKE, kernels alike", alike, 0.25))
    sys.stdout.write(shown("traces.ranks.waiting.side_by_side.MIXED, kernels of GPUs", beside, 0.03))


if __name__ == "__main__":
    main()
