"""Run the user's nsys on a report, watched: it ends with us, shows nothing, and leaves nothing elsewhere.

The options were tried with 2022.4.2 and are documented alike up to 2026, but for `--include-blobs`.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from traces.errors import ExportFailed, NsysUnavailable
from traces.formats.nsys_process import Ended, TookTooLong, run_watched
from traces.formats.nsys_tool import Nsys, exports_with
from traces.limits import Limit
from traces.progress import Progress

_BLOBS: Final = "--include-blobs"
"""What NCCL notes beside its calls: sizes, peers, ranks. Of 2022.4.2 unknown, later off unless asked for."""
EXPORT_LIMIT: Final = Limit(
    4 * 3600, "seconds", "ours: reports of many GB take minutes; --timeout ends it sooner"
)
INFO_LIMIT: Final = Limit(
    600, "seconds", "ours: under a second was measured; where it takes longer, the report is exported anew"
)


def run_export(nsys: Nsys, report: Path, output: Path, progress: Progress) -> Ended:
    """Export a report to the SQLite file `output` and say how nsys ended; what it left is not judged here.

    `output` must not exist, and its folder must be the caller's own: nsys runs in it. `progress` is called
    about every 0.2 s. On any exception, Ctrl-C included, nsys and all it started are killed first. Raises
    `NsysUnavailable` where nsys does not start, `ExportFailed` where it does not end in time.
    """
    doing = f"exporting {report.name} with nsys {nsys.release}"
    options = ["--type=sqlite", f"--output={output.name}", "--quiet=true"]
    if exports_with(nsys, _BLOBS):
        options.append(f"{_BLOBS}=true")
    try:
        return _run(nsys, options, report, output.parent, EXPORT_LIMIT.value, lambda: progress(doing, None))
    except TookTooLong:
        raise ExportFailed(
            f"nsys {nsys.release} did not finish {report} within {EXPORT_LIMIT.value / 3600:.0f} h and was "
            "stopped. Export it by hand, and give moe-diag analyze the .sqlite."
        ) from None


def session_start_ns(nsys: Nsys, report: Path, scratch_dir: Path) -> int | None:
    """Start of the recording in UNIX ns as the report tells it, None where nsys cannot say.

    `scratch_dir` must be the caller's own; small files stay in it. Ends and raises as `run_export` does.
    """
    output = scratch_dir / "info.json"
    output.unlink(missing_ok=True)
    options = ("--type=info", f"--output={output.name}", "--quiet=true")
    try:
        ended = _run(nsys, options, report, scratch_dir, INFO_LIMIT.value, lambda: None)
    except TookTooLong:
        return None
    if ended.code != 0:
        return None
    try:
        info = json.loads(output.read_text(encoding="utf-8", errors="replace"))
        return int(info["SessionStartTime"]["Nanoseconds since epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run(
    nsys: Nsys,
    options: Sequence[str],
    report: Path,
    folder: Path,
    limit_s: float,
    tick: Callable[[], None],
) -> Ended:
    """Run `nsys export` in `folder`, calling `tick` at every poll. Raises `TookTooLong`."""
    command = [str(nsys.path), "export", *options, _plain_name(report, folder)]
    try:
        return run_watched(command, limit_s, tick, folder)
    except OSError as error:
        raise NsysUnavailable(
            f"{nsys.path} does not start ({error.strerror}). Try: {nsys.path} --version"
        ) from None


def _plain_name(report: Path, folder: Path) -> str:
    """A link to the report in `folder`: nsys then sees no odd characters, and has no way to its folder."""
    link = folder / f"report{'.qdrep' if report.suffix == '.qdrep' else '.nsys-rep'}"
    target = report.resolve()
    try:
        if not link.is_symlink():
            link.symlink_to(target)
    except OSError:  # a file system without links
        return str(target)
    return link.name
