"""One rank of a profiled run: the program that nsys starts, `python -c PROGRAM HOME REQUEST`.

It reads what to run from a file of JSON and writes, beside it, how it was made or why it could not be. Its
folder is the leash: once that is gone, so is whoever asked, and the rank ends.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench.workload.gpt import Gpt, shape
from bench.workload.megatron import Place, started
from bench.workload.nvtx_ranges import nvtx_ranges
from bench.workload.record import SEED, Request, made_how
from bench.workload.states import STATES
from bench.workload.step import WARM_UP_STEPS, Steps
from traces.errors import InputError

_LOOK_S: Final = 1.0


class Files:
    """The files of one rank in the folder of a run. `begun`: nsys has started it."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.rank = rank
        self.request = folder / f"request{rank}.json"
        self.begun = folder / f"begun{rank}"
        self.made = folder / f"made{rank}.json"
        self.failed = folder / f"failed{rank}.txt"


def ask(folder: Path, request: Request, rank: int, rank_count: int) -> Path:
    """Write what a rank is to run; the file that its program takes."""
    files = Files(folder, rank)
    told = {"request": asdict(request), "rank": rank, "rank_count": rank_count}
    files.request.write_text(json.dumps(told), encoding="utf-8")
    return files.request


def main() -> int:
    """Run the rank of the file named last on the command line; the exit code, 3 where it cannot run.

    The caller ends at once: threads of the library may wait for other ranks.
    """
    asked = Path(sys.argv[-1])
    told = json.loads(asked.read_text(encoding="utf-8"))
    files = Files(asked.parent, told["rank"])
    files.begun.touch()
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
    try:
        place = Place(files.rank, told["rank_count"], asked.parent / "meeting")
        made = _run(Request(**told["request"]), place)
        files.made.write_text(json.dumps(made), encoding="utf-8")
        code = 0
    except Exception as error:
        detail = str(error) if isinstance(error, InputError) else traceback.format_exc()
        written = files.failed.with_suffix(".part")
        written.write_text(detail, encoding="utf-8")
        written.replace(files.failed)  # at once: it is looked for all the time
        code = 3
    return code


def _run(request: Request, place: Place) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    on_gpu = request.device == "cuda"
    if on_gpu and torch.cuda.device_count() < place.rank_count:
        raise InputError(
            f"PyTorch sees {torch.cuda.device_count()} CUDA devices for {place.rank_count} ranks, and NCCL "
            "wants one for each. Give fewer with --ranks, or --device cpu."
        )
    if on_gpu:
        torch.cuda.set_device(place.rank)
    else:
        torch.set_num_threads(1)
    ranges = nvtx_ranges(torch, request.device)
    torch.manual_seed(SEED)
    state = STATES[request.state]
    with started(torch, request.device, place):
        run = Steps(torch, Gpt(torch, state, request.device, place, ranges), state, request.device, ranges)
        for _ in range(WARM_UP_STEPS):
            run.step()
        loss = _recorded(torch, run, request, ranges)
        made = made_how(torch, request, run.not_done, loss)
    made["sizes"] |= shape(request.device)
    return {
        **made,
        "model": "gpt",
        "rank": place.rank,
        "rank_count": place.rank_count,
        "backend": "nccl" if on_gpu else "gloo",
    }


def _recorded(torch: Any, run: Steps, request: Request, ranges: Any) -> float:
    """Run the steps between the marks at which nsys begins and ends on a GPU; the loss of the last one."""
    cuda, loss = torch.cuda if request.device == "cuda" else None, None
    torch.distributed.barrier()
    if cuda:
        cuda.synchronize()
        cuda.profiler.start()
    for number in range(request.step_count):
        with ranges(f"step {number}"):
            loss = run.step()
    if cuda:
        cuda.synchronize()
        cuda.profiler.stop()
    return float(loss)  # type: ignore[arg-type]


def _end_with(file: Path) -> None:
    while file.exists():
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
