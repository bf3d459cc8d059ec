"""Hangs of real PyTorch processes on CPUs (gloo), and the dumps of its Flight Recorder.

`python -m tests.recordings.hang_by_torch FOLDER`, where torch is, writes a folder of each kind.
In each, four ranks form two expert groups, 0 with 1 and 2 with 3, and do three collectives before they hang.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

RANKS = 4
SETTLED_S = 6.0
"""Nothing was entered for so long: the rank hangs, or is done."""
LONGEST_S = 60.0
_BEFORE = 3
"""Collectives before the hang."""


def missing_rank(rank: int, do: Any) -> None:
    """Rank 3 stays away from the expert group's next collective."""
    if rank != 3:
        do.all_reduce(4, do.expert)
        do.all_reduce(4, do.everybody)


def other_operation(rank: int, do: Any) -> None:
    """Rank 3 gathers where the others reduce."""
    (do.all_gather if rank == 3 else do.all_reduce)(4, do.everybody)


def other_size(rank: int, do: Any) -> None:
    """Rank 2 has more tokens than the others."""
    do.all_reduce(4096 if rank == 2 else 1024, do.everybody)


def other_order(rank: int, do: Any) -> None:
    """Rank 1 begins with all ranks, rank 0 with its experts: each waits for the other."""
    groups = (do.everybody, do.expert) if rank == 1 else (do.expert, do.everybody)
    for group in groups:
        do.all_reduce(4, group)


def none(rank: int, do: Any) -> None:
    """All ranks go on."""
    do.all_reduce(4, do.expert)
    do.all_reduce(4, do.everybody)


KINDS: dict[str, Callable[[int, Any], None]] = {
    one.__name__: one for one in (missing_rank, other_operation, other_size, other_order, none)
}


class _Do:
    def __init__(self) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        pairs = ([0, 1], [2, 3])
        made = [dist.new_group(pair, group_desc="EXPERT_MODEL_PARALLEL_GROUP") for pair in pairs]
        self.everybody, self.expert = None, made[dist.get_rank() // 2]

    def all_reduce(self, elements: int, group: object) -> None:
        self.dist.all_reduce(self.torch.ones(elements), group=group)

    def all_gather(self, elements: int, group: object) -> None:
        one = self.torch.ones(elements)
        self.dist.all_gather([one.clone() for _ in range(self.dist.get_world_size(group))], one, group=group)


def rank_of(kind: str, folder: Path, rank: int, port: int) -> None:
    """One rank: it hangs in a thread, and is dumped again and again."""
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    where = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=RANKS)
    do = _Do()

    def work() -> None:
        for group in (do.everybody, do.expert, do.everybody):
            do.all_reduce(4, group)
        KINDS[kind](rank, do)

    Thread(target=work, daemon=True).start()
    seen, since, ends = b"", monotonic(), monotonic() + LONGEST_S
    while monotonic() < ends and (monotonic() - since < SETTLED_S or seen.count(b"record_id") < _BEFORE):
        if (now := c10d._dump_fr_trace_json()) != seen:
            _put(folder / f"trace_rank_{rank}", c10d._dump_fr_trace(includeStackTraces=False))
            _put(folder / f"trace_rank_{rank}.json", now)
            seen, since = now, monotonic()
        sleep(0.02)
    sleep(2 * SETTLED_S)  # a rank that ends breaks the wait of its peers, which would then look done
    os._exit(0)


def _put(path: Path, data: bytes) -> None:
    """Whole or not at all: gloo ends a process whose peer gives another size, and what it entered stays."""
    path.with_suffix(".part").write_bytes(data)
    path.with_suffix(".part").replace(path)


def record(kind: str, folder: Path, python: str = sys.executable) -> list[Path]:
    """The pickled dumps of all ranks; the same as JSON beside them."""
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    line = [python, "-m", "tests.recordings.hang_by_torch", str(folder), kind]
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([*line, str(rank), port], env=environment, stderr=subprocess.DEVNULL)
        for rank in range(RANKS)
    ]
    for one in ranks:
        try:
            one.wait(timeout=90)
        except subprocess.TimeoutExpired:
            one.kill()
    return sorted(folder.glob("trace_rank_?"))


if __name__ == "__main__":
    if len(sys.argv) == 5:
        rank_of(sys.argv[2], Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4]))
    for each in KINDS:
        record(each, Path(sys.argv[1]) / each)
