"""Configurations checked against the real megatron-core, many in one start, in a process of its
own.

That process takes about five seconds to import PyTorch and milliseconds for a configuration.
Whatever becomes of it, the answers say so; nothing is raised.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from heuristics.rules.megatron.answer import Answer, not_checked
from heuristics.rules.megatron.request import Request
from traces.limits import Limit

START_S: Final = Limit(
    120.0, "seconds", "ours: 5 s measured on two cores, many times that on a cold network disk"
)
REQUEST_S: Final = Limit(20.0, "seconds", "ours: 0.2 s measured for 1,024 ranks, 1.3 s for 8,192")
ALL_S: Final = Limit(600.0, "seconds", "ours: longer than 1,000 configurations of 1,024 ranks take")

INSTALL: Final = "pip install 'moe-diag[megatron]'"
_TIERS: Final = ("config", "layer")
_HOME: Final = str(Path(__file__).resolve().parents[2])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from diagnoser.megatron.worker import main; main()"
)
"""Our packages come last on the path, so that those of another Python stay its own."""

_Lines = queue.SimpleQueue[str | None]


def check_with_megatron(
    requests: Sequence[Request], timeout_s: float = ALL_S.value, python: str | None = None
) -> list[tuple[Answer, Answer]]:
    """The answers of both tiers (`config`, `layer`) for each request, in order.

    `timeout_s`: for all of them. `python`: an interpreter that has torch and megatron-core; None:
    this one. What was not answered, for want of the packages or of time, is `not_checked` with the
    reason.
    """
    answers = list[Answer]()
    if python is None and (find_spec("megatron") is None or find_spec("torch") is None):
        why = f"megatron-core is not installed here: {INSTALL}"
    else:
        try:
            with _worker(requests, python or sys.executable) as lines:
                why = _collect(lines, answers, 2 * len(requests), time.monotonic() + timeout_s)
        except OSError:
            why = "the Python that was to ask megatron-core does not start"
    while len(answers) < 2 * len(requests):
        answers.append(not_checked(_TIERS[len(answers) % 2], why))
    return list(zip(answers[::2], answers[1::2], strict=True))


def _collect(lines: _Lines, answers: list[Answer], wanted: int, end_s: float) -> str:
    """Add answers as they come; gives why no more came, empty where all did."""
    if_late = f"megatron-core did not start within {START_S.value:.0f} s"
    try:
        started = _next(lines, START_S.value, end_s)
        if "version" not in started:
            return f"megatron-core does not start here: {started['absent']}"
        if_late = "megatron-core gave no answer in time"
        while len(answers) < wanted:
            answers.append(Answer(**_next(lines, REQUEST_S.value, end_s)))
    except queue.Empty:
        return if_late
    except (ValueError, TypeError, KeyError):  # no line of ours, or the end of them
        return "the check against megatron-core ended early"
    return ""


def _next(lines: _Lines, patience_s: float, end_s: float) -> Any:
    """Raises `queue.Empty` where no line comes in time, `TypeError` at the end of the lines."""
    line: Any = lines.get(timeout=max(0.0, min(patience_s, end_s - time.monotonic())))
    return json.loads(line)


@contextmanager
def _worker(requests: Sequence[Request], python: str) -> Iterator[_Lines]:
    """The lines of a worker that is killed at the end, whatever ends it. Raises `OSError`."""
    process = subprocess.Popen(
        [python, "-P", "-c", _PROGRAM, _HOME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        env=worker_environment(),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines: _Lines = queue.SimpleQueue()
    text = json.dumps([*map(asdict, requests)])
    threads = [
        threading.Thread(target=_tell, args=(process.stdin, text), daemon=True),
        threading.Thread(target=_listen, args=(process.stdout, lines), daemon=True),
    ]
    try:
        for thread in threads:
            thread.start()
        yield lines
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for thread in threads:
            thread.join()


def _tell(stdin: IO[str], text: str) -> None:
    with suppress(OSError), stdin:  # it may be gone before it has read all
        stdin.write(text)


def _listen(stdout: IO[str], lines: _Lines) -> None:
    with stdout:
        for line in stdout:
            lines.put(line)
    lines.put(None)


def worker_environment() -> dict[str, str]:
    """No GPU, so that every host answers alike; sets in messages always in the same order; one
    thread.

    PyTorch makes a folder for compiled kernels as it is imported: a folder that exists keeps it
    from that. Megatron-core asks git for the commit of the folder that it lies in, and adds it to
    its version.
    """
    ours = {
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "NO_VCS_VERSION": "1",
    }
    return {**os.environ, **ours, "TORCHINDUCTOR_CACHE_DIR": _HOME}
