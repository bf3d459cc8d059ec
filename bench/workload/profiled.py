"""A real workload recorded under nsys, diagnosed, and put into one folder, whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.workload.states import SIZES, STATES
from diagnoser.options.requests import Analysis
from heuristics.result.exits import Exit
from traces.errors import NothingToDiagnose, OutputNotWritable, UsageError
from traces.files.aside import appearing, sweep
from traces.files.own_folder import way_in
from traces.formats.nsys_tool import find_nsys
from traces.progress import Progress

if TYPE_CHECKING:
    from bench.workload.profile import RankRecording
    from bench.workload.record import Request

DIAGNOSED, ABSTAINED = Exit.DONE, Exit.NOTHING
"""As `analyze` would end on the folder."""

_RAW: Final = "raw"
_WARNING: Final = (
    "As nsys wrote them: these reports hold the environment, host, processes and paths of this machine.\n"
    "The exports in the folder above hold none of that.\n"
)


def profiled(request: Request, folder: Path, *, rank_count: int, nsys: str | None, progress: Progress) -> int:
    """Record a state under nsys into `folder`, diagnose it there, and give the exit code.

    `folder` is new, or empty. Raises `UsageError` for what cannot be asked for, `OutputNotWritable`, and what
    `bench.workload.profile.profile` raises; the folder is then as it was.
    """
    _check(request, folder, rank_count)
    from bench.workload.profile import check_installed, profile

    check_installed(request.device)
    from diagnoser.running.pipeline import examined
    from reports.content.page import View
    from reports.write.text import write_text

    tool = find_nsys(nsys)
    with _appearing(folder) as made:
        recordings = profile(request, rank_count, tool, made, progress)
        for rank, one in enumerate(recordings):
            _write(made / f"rank{rank}.known.json", json.dumps(one.made, indent=2, sort_keys=True) + "\n")
            doctor = examined(one.export, Analysis(one.export))
            _write(made / f"rank{rank}.doctor.txt", write_text(doctor, View()))
        # which recording is which rank, for `analyze --ranks`: nsys does not write it
        rows = [f"{one.export.name},{rank},{len(recordings)}\n" for rank, one in enumerate(recordings)]
        _write(made / "ranks.csv", "".join(["file,rank,world_size\n", *rows]))
        code = _analysed(made, recordings, progress)
        _keep_raw(made, recordings)
        shutil.rmtree(made / "work")
    return code


def summary(folder: Path, code: int) -> str:
    known: list[dict[str, Any]] = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("rank*.known.json"))
    ]
    first, ranks = known[0], len(known)
    events, ranges = (sum(one[f"{what}_count"] for one in known) for what in ("gpu_event", "range"))
    lines = [
        f"{folder}: {first['recorded_step_count']} steps of state {first['state']} on {ranks} "
        f"rank{'s' if ranks > 1 else ''}, {events} GPU events, {ranges} ranges",
        STATES[first["state"]].known,
        *(f"not done: {what}" for what in first["not_done"]),
    ]
    if first["device"] == "cpu":
        lines.append("Without a GPU: the phases and the exchange, by gloo, are real; there are no kernels.")
    if ranks == 1:
        lines.append("One rank: the all-to-all between experts was skipped.")
    if code == DIAGNOSED:
        return "\n".join([*lines, (folder / "analysis.txt").read_text(encoding="utf-8").rstrip("\n")])
    return "\n".join([*lines, f"To share it, leave out {folder / _RAW}."])


def _check(request: Request, folder: Path, rank_count: int) -> None:
    if request.state not in STATES:
        there = ", ".join(STATES)
        raise UsageError(f"no state is called {request.state}; there are {there}. Give one with --state.")
    if request.device not in SIZES:
        raise UsageError(
            f"{request.device} is no device; there are {', '.join(SIZES)}. Give one with --device."
        )
    if request.step_count < 1:
        raise UsageError(f"{request.step_count} steps cannot be recorded. Give 1 or more with --steps.")
    experts = STATES[request.state].expert_count
    if rank_count < 1 or experts % rank_count:
        raise UsageError(
            f"{experts} experts of state {request.state} cannot be spread over {rank_count} ranks. "
            "Give another number with --ranks."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is no empty folder. Give another place with --profile.")
    if not folder.absolute().parent.is_dir():
        raise OutputNotWritable(f"{folder.parent} is no folder. Create it, or give another with --profile.")


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder`, which becomes it at the end; gone where anything is raised.

    Other programs find it by its path, so nobody else may put another in its place.
    """
    folder = folder.absolute()
    try:
        sweep(folder.parent)
        with appearing(folder) as made:
            if why := way_in(made.path.parent):
                raise OutputNotWritable(
                    f"{folder.parent} is no place to record in ({why}). Give another place with --profile."
                )
            yield made.path
    except OSError as error:
        raise OutputNotWritable(
            f"{folder} cannot be written ({error.strerror}). Give another place with --profile."
        ) from None


def _analysed(folder: Path, recordings: Sequence[RankRecording], progress: Progress) -> int:
    """Write what `analyze` finds in the recordings: the result and its first screen, or why there is none."""
    from diagnoser.running.pipeline import diagnose
    from reports.content.page import Asked
    from reports.formats import FORMATS

    exports = [one.export for one in recordings]
    try:
        diagnosis = diagnose(Analysis(exports, ranks=folder / "ranks.csv", progress=progress))
    except NothingToDiagnose as error:
        _write(folder / "analysis.txt", str(error).replace(f"{folder}/", "") + "\n")
        return ABSTAINED
    for name, form in (("result.json", "json"), ("analysis.txt", "text")):
        text = FORMATS[form].write(diagnosis.result, Asked())
        _write(folder / name, text if isinstance(text, str) else text.decode())
    return DIAGNOSED


def _keep_raw(folder: Path, recordings: Sequence[RankRecording]) -> None:
    raw = folder / _RAW
    raw.mkdir(mode=0o700)
    _write(raw / "READ_ME.txt", _WARNING)
    for one in recordings:
        one.report.replace(raw / one.report.name).chmod(0o600)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
