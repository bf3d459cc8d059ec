"""The line that records a program by nsys, and the report that it left.

Debian's package of 2022.4.2 keeps the importer where its nsys does not look: recording ends with exit code 0
and leaves a raw stream (.qdstrm) only. The importer of the same version then makes the report.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

from traces.errors import ExportFailed
from traces.formats.nsys_tool import INFO_LIMIT, Nsys, TookTooLong, run_watched

_HOSTS: Final = ("host-linux-*", "nsight-systems*/host-linux-*", "lib/nsight-systems*/host-linux-*")
_WITHOUT_SAMPLES: Final = ("--sample=none", "--cpuctxsw=none")
OPTIONS: Final = {
    "cpu": ("--trace=nvtx,osrt", *_WITHOUT_SAMPLES),
    "cuda": (
        "--trace=cuda,nvtx,osrt",
        "--cuda-graph-trace=node",
        *_WITHOUT_SAMPLES,
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
    ),
}
"""Kind of device -> what is recorded: on a GPU between the program's own marks, on a CPU all of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report, and whether its importer had to be started by hand."""

    path: Path
    imported_by_hand: bool


def profile_line(nsys: Nsys, device: str, name: str, program: Sequence[str]) -> list[str]:
    """The command that records `program` into `name`.nsys-rep in the folder where it is started."""
    return [str(nsys.path), "profile", *OPTIONS[device], f"--output={name}", *program]


def report_of(nsys: Nsys, folder: Path, name: str) -> Report:
    """The report that `profile_line` left, made of the raw stream where nsys could not.

    Raises `ExportFailed` where there is neither, or no importer that takes the stream.
    """
    report, stream = folder / f"{name}.nsys-rep", folder / f"{name}.qdstrm"
    if report.is_file():
        return Report(report, imported_by_hand=False)
    if not stream.is_file():
        raise ExportFailed(
            f"nsys {nsys.release} recorded nothing: the program ended before it could, or nsys may not trace "
            "here. Try: nsys status --environment"
        )
    for importer in _importers(nsys):
        if _made(importer, stream, report):
            return Report(report, imported_by_hand=True)
    raise ExportFailed(
        f"nsys {nsys.release} left only a raw stream (.qdstrm), and no QdstrmImporter of this version was "
        "found to make it a report. Give the nsys of NVIDIA's own package with --nsys PATH, or put the "
        "folder host-linux-x64 of this one beside the folder of nsys."
    )


def _importers(nsys: Nsys) -> Iterator[Path]:
    """Importers that lie around nsys, as packages put them, and around what it is a link to; each once."""
    seen: set[Path] = set()
    for start in (nsys.path, nsys.path.resolve()):
        for folder, hosts in product(list(start.parents)[:4], _HOSTS):
            for importer in sorted(folder.glob(f"{hosts}/QdstrmImporter")):
                if importer.is_file() and (real := importer.resolve()) not in seen:
                    seen.add(real)
                    yield importer


def _made(importer: Path, stream: Path, report: Path) -> bool:
    """Whether this importer makes a report of the stream: it refuses another version's."""
    try:
        command = [str(importer), "-i", stream.name, "-o", report.name]
        ended = run_watched(command, INFO_LIMIT.value, lambda: None, stream.parent)
    except (OSError, TookTooLong):
        return False
    return ended.code == 0 and report.is_file()
