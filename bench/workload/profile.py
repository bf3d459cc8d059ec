"""Megatron-Core's GPT over several ranks, each recorded by nsys, exported and scrubbed.

    moe-diag workload --profile DIR --state eager --ranks 2 --device cpu

Every rank is a process under an nsys of its own, as where torchrun stands outside nsys. On a CPU the same
code runs with gloo and without kernels; device and options are all that differs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from bench.workload.nsys_recorded import OPTIONS, Report, profile_line, report_of
from bench.workload.nsys_scrub import scrub_exports
from bench.workload.rank import Files, ask
from bench.workload.record import Request
from diagnoser.megatron import INSTALL
from traces.errors import InputError, NsysUnavailable
from traces.formats.export_cache import exported
from traces.formats.nsys_tool import Nsys
from traces.formats.open import read_trace
from traces.limits import Limit
from traces.progress import Progress

RANKS_S: Final = Limit(
    900.0, "seconds", "ours: 12 s measured for two ranks on two cores, most of it to import PyTorch"
)
STOP_S: Final = Limit(
    20.0, "seconds", "ours: 3 s measured until nsys has ended its program, its agent and its own files"
)
_POLL_S: Final = 0.2
_HOME: Final = str(Path(__file__).resolve().parents[2])
_PROGRAM: Final = (
    "import os, sys; sys.path.append(sys.argv[1]); from bench.workload.rank import main; os._exit(main())"
)
"""Our packages come last on the path, so that those of the environment stay its own."""

_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH")
_PASSED_ON_BEGINS: Final = ("CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "NVTX_")
"""Of the environment only this: a report holds all that its program had."""

_STAND_INS: Final = (
    "torch.cuda.current_device, current_stream and Stream: the CPU and a queue that never waits",
    "maybe_move_tensor_to_cpu of the token dispatcher: split sizes become numbers, as gloo wants them",
    "cuda_dtoh_stream of the all-to-all dispatcher: none",
)
"""What stands in for CUDA on a CPU; on a GPU nothing does."""


@dataclass(frozen=True, slots=True)
class RankRecording:
    """A scrubbed export of one rank, the report as nsys wrote it, and how both were made."""

    export: Path
    report: Path
    made: Mapping[str, Any]


def profile(
    request: Request, rank_count: int, nsys: Nsys, folder: Path, progress: Progress
) -> list[RankRecording]:
    """Run all ranks of a state under nsys, and make their reports, exports and how they were made.

    All is written into `folder`, which must be new and the caller's own. Raises `InputError` where PyTorch,
    Megatron-Core, nvtx or the GPUs are absent or a rank fails, `ExportFailed` and `NsysUnavailable` where
    nsys does. No process is left, whatever ends it.
    """
    check_installed(request.device)
    work = folder / "work"
    try:
        _run(request, rank_count, nsys, work, progress)
    except _NotBegun:  # seen once in some fifty starts on a busy machine: sem_open failed in nsys
        shutil.rmtree(work)
        _run(request, rank_count, nsys, work, progress)
    reports = [report_of(nsys, work, f"rank{rank}") for rank in range(rank_count)]
    raw = [
        exported(report.path, nsys=str(nsys.path), cache_dir=work / "exports", progress=progress)
        for report in reports
    ]
    scrubbed = [folder / f"rank{rank}.sqlite" for rank in range(rank_count)]
    scrub_exports(raw, scrubbed)
    return [
        RankRecording(export, report.path, made_how(request, work, rank, nsys, report, export))
        for rank, (export, report) in enumerate(zip(scrubbed, reports, strict=True))
    ]


def check_installed(device: str) -> None:
    """Raise `InputError` where a package that a rank needs is absent; nothing is imported."""
    wanted = {
        "torch": "PyTorch",
        "megatron": "megatron-core",
        **({"nvtx": "nvtx"} if device == "cpu" else {}),
    }
    if absent := [name for package, name in wanted.items() if find_spec(package) is None]:
        raise InputError(f"{' and '.join(absent)} cannot be imported here. Type {INSTALL}")


def rank_program(request: Path) -> list[str]:
    """The command that runs the rank of a request."""
    return [sys.executable, "-P", "-c", _PROGRAM, _HOME, str(request)]


def rank_environment(given: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Of an environment what nsys and a rank need; what they write on the way goes to `scratch`.

    On one machine gloo needs no interface but the machine's own.
    """
    passed = {
        name: value
        for name, value in given.items()
        if name in _PASSED_ON or name.startswith(_PASSED_ON_BEGINS)
    }
    ours = {"TMPDIR": str(scratch), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    return {"GLOO_SOCKET_IFNAME": "lo", **passed, **ours}


class _NotBegun(NsysUnavailable):
    """An nsys ended before it had started its rank."""


def _run(request: Request, rank_count: int, nsys: Nsys, work: Path, progress: Progress) -> None:
    work.mkdir(mode=0o700)
    with _running(request, rank_count, nsys, work) as processes:
        _wait(processes, nsys, work, progress)


@contextmanager
def _running(
    request: Request, rank_count: int, nsys: Nsys, work: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """All ranks, each under nsys in a session of its own; at the end none is left."""
    processes: list[subprocess.Popen[bytes]] = []
    scratch = work / "scratch"
    scratch.mkdir()
    asked = [ask(work, request, rank, rank_count) for rank in range(rank_count)]
    try:
        for rank, file in enumerate(asked):
            line = profile_line(nsys, request.device, f"rank{rank}", rank_program(file))
            with (work / f"output{rank}.txt").open("wb") as output:
                processes.append(
                    subprocess.Popen(
                        line,
                        cwd=work,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        env=rank_environment(os.environ, scratch),
                        start_new_session=True,
                    )
                )
        yield processes
    except OSError as error:
        raise NsysUnavailable(f"{nsys.path} does not start ({error}). Try: {nsys.path} --version") from None
    finally:
        for file in asked:
            file.unlink(missing_ok=True)
        _stop(processes)


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End what runs. Asked to, nsys ends its program and its agent, which have sessions of their own."""
    for process in processes:
        process.terminate()
    end_s = time.monotonic() + STOP_S.value
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end_s - time.monotonic()))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(processes: Sequence[subprocess.Popen[bytes]], nsys: Nsys, work: Path, progress: Progress) -> None:
    """Until all have ended. Raises `InputError` as soon as one fails: the others would wait for it."""
    end_s = time.monotonic() + RANKS_S.value
    while True:
        progress(f"running {len(processes)} ranks under nsys", None)
        codes = [process.poll() for process in processes]
        for rank, code in enumerate(codes):
            if code or Files(work, rank).failed.is_file():
                raise _failure(nsys, work, rank, code)
        if None not in codes:
            return
        if time.monotonic() > end_s:
            raise InputError(
                f"the ranks did not end within {RANKS_S.value:.0f} s. Give fewer with --ranks or --steps."
            )
        time.sleep(_POLL_S)


def _failure(nsys: Nsys, work: Path, rank: int, code: int | None) -> InputError:
    files = Files(work, rank)
    if not files.begun.is_file():
        why = next(iter(_lines(work / f"output{rank}.txt")), "it gives no reason")
        return _NotBegun(
            f"nsys {nsys.release} could not start rank {rank}: {why}. Try: {nsys.path} status -e"
        )
    why = _lines(files.failed)[-1] if files.failed.is_file() else f"it ended with exit code {code}"
    return InputError(f"rank {rank} of the workload failed: {why}")


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def made_how(
    request: Request, work: Path, rank: int, nsys: Nsys, report: Report, export: Path
) -> dict[str, Any]:
    """How a rank was made, as it stands beside its recording; `InputError` for one without its steps."""
    written = Files(work, rank).made
    if not written.is_file():
        raise InputError(f"rank {rank} of the workload failed: it ended before its last step")
    made = json.loads(written.read_text(encoding="utf-8"))
    columns = read_trace(export)
    steps = sum(columns.range_texts[text].startswith("step ") for text in columns.ranges.text.tolist())
    if steps != request.step_count:
        raise InputError(
            f"rank {rank} ran {request.step_count} steps, and nsys {nsys.release} recorded {steps} of their "
            "ranges. Where the Python package nvtx is 0.2.12 or newer: pip install 'nvtx<0.2.12'"
        )
    return {
        **made,
        "gpu_event_count": len(columns.kernels.rows.start_ns) + len(columns.copies.rows.start_ns),
        "range_count": len(columns.ranges.text),
        "stand_ins": [] if request.device == "cuda" else list(_STAND_INS),
        "recorded_by": {
            "nsys": ".".join(map(str, nsys.version)),
            "options": list(OPTIONS[request.device]),
            "imported_by_hand": report.imported_by_hand,
        },
        "scrubbed": "only what moe-diag reads; the first moment of the run is 0",
    }
