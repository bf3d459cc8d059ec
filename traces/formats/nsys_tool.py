"""The user's own nsys: where it is, which version, how it is run on a report.

It is started watched and alone, never longer than a limit; it ends with us, shows nothing, and
leaves nothing elsewhere.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from traces.errors import ExportFailed, NsysUnavailable
from traces.files.beneath import is_bounded, opened
from traces.frozen import frozen
from traces.limits import Limit
from traces.patterns import compiled, numbers_in
from traces.progress import Progress

_POLL_S: Final = 0.2
_NEEDED: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LANG",  # this and the next two: how bytes of a path are read
    "LC_ALL",
    "LC_CTYPE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
)
_NOBODYS: Final = Path("/")
"""Where nsys answers: in the working folder it would look for settings and for modules of its own
Python."""


@frozen
class Ended:
    """How a program ended: its exit code (negative: the signal that killed it), and its words."""

    code: int
    output: str
    words: str


class TookTooLong(Exception):
    """It did not end in time, and was killed with all that it started."""


def run_watched(
    command: Sequence[str], limit_s: float, tick: Callable[[], None], folder: Path = _NOBODYS
) -> Ended:
    """Run a program in `folder`, calling `tick` about every 0.2 s; `output` and `words`: stdout and
    stderr.

    On any exception, Ctrl-C included, it and all it started are killed first. Raises `TookTooLong`,
    and OSError where it does not start.
    """
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=clean_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            output, words = _wait(process, time.monotonic() + limit_s, tick)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return Ended(process.returncode, output, words)


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a program needs to run."""
    return {name: given[name] for name in _NEEDED if name in given}


def _wait(
    process: subprocess.Popen[str], end_s: float, tick: Callable[[], None]
) -> tuple[str, str]:
    while True:
        tick()
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_S)
        if time.monotonic() > end_s:
            raise TookTooLong


_INSTALLED: Final = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/target-linux-x64/nsys",
    "/usr/local/cuda*/bin/nsys",
)
_VERSION: Final = compiled(r"\b(20\d\d(?:\.\d{1,6})+)\S*")
ANSWER_LIMIT: Final = Limit(30, "seconds", "ours: 0.05 s measured, and a network disk may be slow")


@frozen
class Nsys:
    """One nsys: its path, its version as numbers (2022, 4, 2, 1) and as it tells it,
    `2022.4.2.1-df9881f`.
    """

    path: Path
    version: tuple[int, ...]
    text: str

    @property
    def release(self) -> str:
        """Version as people know it: `2022.4.2`."""
        return ".".join(map(str, self.version[:3]))


def find_nsys(explicit: str | None) -> Nsys:
    """Find nsys: `explicit` (the program or its folder), else `$NSYS`, PATH, then the usual install
    folders.

    Raises `NsysUnavailable` where there is none, or where the one given or in `$NSYS` does not
    work: another one than the user named is never taken.
    """
    if explicit is not None:
        return _named("--nsys", explicit)
    if from_environment := os.environ.get("NSYS"):
        return _named("NSYS in the environment", from_environment)
    for path in _candidates():
        if nsys := _ask_version(path):
            return nsys
    raise NsysUnavailable(
        "no nsys on PATH or in its usual folders. "
        "Install NVIDIA Nsight Systems, or give the path of nsys with --nsys PATH."
    )


def _named(source: str, given: str) -> Nsys:
    """The one nsys the user named, or an error that repeats what was typed."""
    folder = Path(given)
    choices = [str(folder / "nsys"), str(folder / "bin" / "nsys")] if folder.is_dir() else [given]
    path = next(filter(None, map(shutil.which, choices)), None)
    if path is None:
        raise NsysUnavailable(
            f"{source} names {given}, where no nsys that can be run is. Check the path."
        )
    nsys = _ask_version(Path(path).absolute())
    if not nsys:
        raise NsysUnavailable(
            f"{source} names {given}, which is no nsys version. Try: {path} --version"
        )
    return nsys


def _candidates() -> list[Path]:
    """Every nsys of this machine that can be run: that of PATH, then the installed ones, newest
    first.
    """
    paths = filter(_can_be_run, chain.from_iterable(map(glob.glob, _INSTALLED)))
    installed = sorted(paths, key=_version_in_path, reverse=True)
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # others lead into the working folder
    places = [place for place in named if Path(place).is_absolute()]
    on_path = shutil.which("nsys", path=os.pathsep.join(places))
    return [*map(Path, filter(None, (on_path, *installed)))]


def _can_be_run(path: str) -> bool:
    return os.access(path, os.X_OK)


def _version_in_path(path: str) -> tuple[int, ...]:
    match = compiled(r"\d+(?:\.\d+)+").search(path)
    return numbers_in(match[0]) if match else ()


def _answer(path: Path, *words: str) -> Ended | None:
    """How a program ended that answers at once; None where it does not start or end."""
    try:
        return run_watched([str(path), *words], ANSWER_LIMIT.value, lambda: None)
    except (OSError, TookTooLong):
        return None


def _ask_version(path: Path) -> Nsys | None:
    answer = _answer(path, "--version")
    match = _VERSION.search(answer.output) if answer and answer.code == 0 else None
    if match:
        return Nsys(path, numbers_in(match[1]), match[0])
    return None


_BLOBS: Final = "--include-blobs"
"""What NCCL notes beside its calls: sizes, peers, ranks. Of 2022.4.2 unknown, later off unless
asked for."""
EXPORT_LIMIT: Final = Limit(4 * 3600, "seconds", "ours: reports of many GB take minutes")
INFO_LIMIT: Final = Limit(
    600,
    "seconds",
    "ours: under a second was measured, of a small file; else the report is exported anew",
)


def run_export(nsys: Nsys, report: Path, output: Path, progress: Progress) -> Ended:
    """Export a report to the SQLite file `output` and say how nsys ended; what it left is not
    judged here.

    `output` must not exist, and its folder must be the caller's own: nsys runs in it. `progress` is
    called about every 0.2 s. On any exception, Ctrl-C included, nsys and all it started are killed
    first. Raises `NsysUnavailable` where nsys does not start, `ExportFailed` where it does not end
    in time.
    """
    doing = f"exporting {report.name} with nsys {nsys.release}"
    options = ["--type=sqlite", f"--output={output.name}", "--quiet=true"]
    answer = _answer(nsys.path, "export", "--help")
    if answer and _BLOBS in answer.output:
        options.append(f"{_BLOBS}=true")
    try:
        return _run(
            nsys, options, report, output.parent, EXPORT_LIMIT.value, lambda: progress(doing, None)
        )
    except TookTooLong:
        raise ExportFailed(
            f"nsys {nsys.release} did not finish {report} within {EXPORT_LIMIT.value / 3600:.0f} h "
            "and was stopped. Export it by hand, and give moe-diag analyze the .sqlite."
        ) from None


def session_start_ns(nsys: Nsys, report: Path, scratch_dir: Path) -> int | None:
    """Start of the recording in UNIX ns as the report tells it, None where nsys cannot say.

    `scratch_dir` must be the caller's own; small files stay in it. Ends and raises as `run_export`
    does.
    """
    output = scratch_dir / "info.json"
    output.unlink(missing_ok=True)
    options = "--type=info", f"--output={output.name}", "--quiet=true"
    try:
        if _run(nsys, options, report, scratch_dir, INFO_LIMIT.value, lambda: None).code != 0:
            return None
        info = json.loads(output.read_text(encoding="utf-8", errors="replace"))
        return int(info["SessionStartTime"]["Nanoseconds since epoch"])
    except (TookTooLong, OSError, ValueError, KeyError, TypeError):
        return None


def _run(
    nsys: Nsys,
    options: Sequence[str],
    report: Path,
    folder: Path,
    limit_s: float,
    tick: Callable[[], None],
) -> Ended:
    command = [str(nsys.path), "export", *options, _plain_name(report, folder)]
    try:
        return run_watched(command, limit_s, tick, folder)
    except OSError as error:
        raise NsysUnavailable(
            f"{nsys.path} does not start ({error.strerror}). Try: {nsys.path} --version"
        ) from None


def _plain_name(report: Path, folder: Path) -> str:
    """A link to the report in `folder`: nsys then sees no odd characters, and has no way to its
    folder.

    Where not every file may be read it is a copy, so that nsys reads the one that we may.
    """
    link = folder / f"report{'.qdrep' if report.suffix == '.qdrep' else '.nsys-rep'}"
    if is_bounded():
        with suppress(FileExistsError), opened(report) as file, link.open("xb") as copy:
            shutil.copyfileobj(file, copy, _COPIED_BYTES)
        return link.name
    target = report.resolve()
    try:
        if not link.is_symlink():
            link.symlink_to(target)
    except OSError:  # a file system without links
        return str(target)
    return link.name


_COPIED_BYTES: Final = 1 << 20
