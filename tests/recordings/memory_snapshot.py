"""PyTorch's memory snapshots, said block by block, and what would run if Python's own pickle read it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

MIB = 1 << 20
Document = dict[str, Any]


def frames(*pairs: str) -> list[Document]:
    """Frames of `file function`, the innermost first."""
    return [{"filename": one.split()[0], "line": 1, "name": one.split()[1]} for one in pairs]


OPTIMIZER = frames("/home/someone/torch/optim/adam.py _init_group", "/home/someone/secret/train.py main")
FORWARD = frames("/env/torch/nn/modules/linear.py forward", "/env/torch/nn/modules/module.py _call_impl")
BACKWARD = frames("/env/torch/autograd/graph.py _engine_run_backward")
PARAMETER = frames("/env/torch/nn/modules/module.py _apply", "/home/someone/secret/train.py main")


def block(address: int, mib: int, state: str = "active_allocated", **more: Any) -> Document:
    return {"address": address, "size": mib * MIB, "requested_size": mib * MIB, "state": state, **more}


def entry(action: str, address: int, mib: int, stack: list[Document] | None = None) -> Document:
    return {"action": action, "addr": address, "size": mib * MIB, "stream": 0, "frames": stack or []}


def one_step() -> Document:
    """10 MiB were there before; 20 of parameters; 5 of activations, 3 of gradients, 7 temporary, 40 of state.

    The peak is before the state: 10 + 20 + 5 + 3 + 7 = 45; then 10 + 20 + 3 + 40 = 73 with the state.
    """
    entries = [
        entry("alloc", 2000, 20, PARAMETER), entry("alloc", 3000, 5, FORWARD),
        entry("alloc", 4000, 3, BACKWARD), entry("alloc", 5000, 7, BACKWARD),
        entry("free_requested", 5000, 7), entry("free_completed", 5000, 7), entry("free_completed", 3000, 5),
        entry("alloc", 6000, 40, OPTIMIZER), entry("oom", 0, 90),
    ]  # fmt: skip
    blocks = [block(1000, 10), block(2000, 20), block(4000, 3), block(6000, 40), block(9000, 27, "inactive")]
    segment = {"device": 0, "address": 1000, "total_size": 100 * MIB, "stream": 0, "blocks": blocks}
    return {"segments": [segment], "device_traces": [entries]}


class Runs:
    """Makes a file when it is read by Python's own pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)
