"""A path -> Columns, whatever the format: look at the first bytes, then read with the reader they
ask for.
"""

import errno
from collections.abc import Callable
from pathlib import Path

from traces.columns import Columns
from traces.errors import DamagedTrace, NotATrace, TraceNotFound, reason_of
from traces.files.beneath import also_beneath, opened
from traces.files.cache_folder import default_cache_dir
from traces.files.plain_file import no_file
from traces.formats import export_cache
from traces.formats.export_cache import exported
from traces.formats.kineto import read_kineto
from traces.formats.kineto_json import GZIP_MAGIC, looks_like_json
from traces.formats.nsys_info import traps
from traces.formats.nsys_sqlite import read_export
from traces.formats.readers import Reader
from traces.formats.sqlite_pages import open_tables
from traces.formats.sqlite_tables import MAGIC, SqliteTables
from traces.frozen import frozen
from traces.progress import Progress, silent
from traces.recording.traps import Trap

_ReadTables = Callable[[SqliteTables, str], Columns]
OF_RUNS = frozenset(
    {".yaml", ".yml", ".toml", ".sh", ".bash", ".sbatch", ".slurm", ".py", ".txt", ".log", ".out"}
)
"""Endings of configurations and logs; those in JSON are told by what they hold."""
_KNOWN = (
    "A trace is an .nsys-rep, a .qdrep, an SQLite export of one, or the PyTorch profiler's "
    ".json(.gz)."
)


@frozen
class ReadOptions:
    """How to read: which nsys exports reports (None: look for one), where exports are kept, what
    reads.
    """

    nsys: str | None = None
    cache_dir: Path | None = None
    reader: Reader = Reader.AUTO


def read_trace(
    path: Path, options: ReadOptions | None = None, progress: Progress = silent
) -> Columns:
    """Read one trace into columns.

    Raises `TraceNotFound`, `NotATrace` or `DamagedTrace` for the input, and for reports what
    `export_cache.exported` raises. Nothing is written beside the trace.
    """
    return _read(path, options or ReadOptions(), progress, read_export)


def read_and_examine(
    path: Path, options: ReadOptions, progress: Progress
) -> tuple[Columns, tuple[tuple[Trap, int], ...]]:
    """A trace as `read_trace` reads it, and each way it went wrong with how many rows show that."""
    found_traps = list[tuple[Trap, int]]()

    def examined(tables: SqliteTables, kind: str) -> Columns:
        columns = read_export(tables, kind)
        found_traps.extend(traps(tables, columns))
        return columns

    return _read(path, options, progress, examined), tuple(found_traps)


def _read(path: Path, options: ReadOptions, progress: Progress, read: _ReadTables) -> Columns:
    head = _head(path)
    if head.startswith(MAGIC):
        with open_tables(path, options.reader, progress, shown=path) as tables:
            return read(tables, "nsys-sqlite")
    if export_cache.is_report(head):
        cache = options.cache_dir or default_cache_dir()
        export = exported(path, nsys=options.nsys, cache_dir=cache, progress=progress)
        with (
            also_beneath(cache),
            open_tables(export, options.reader, progress, shown=path) as tables,
        ):
            return read(tables, "nsys-report")
    if export_cache.is_stream(head):
        raise NotATrace(
            f"{path} is a raw stream (.qdstrm) that nsys has not imported. "
            "Import it where it was recorded: QdstrmImporter -i run.qdstrm -o run.nsys-rep"
        )
    if head.startswith(GZIP_MAGIC) or looks_like_json(head):
        return read_kineto(path, progress)
    if path.suffix.lower() in OF_RUNS:
        raise NotATrace(
            f"{path} is a log or a configuration of a run, and no trace. Type moe-diag "
            f"check-config {path}, or give it beside a trace with --log or --config."
        )
    raise NotATrace(f"{path} is no trace we know. {_KNOWN}")


def _head(path: Path) -> bytes:
    """The first 100 bytes, or why there are none."""
    if what := no_file(path):
        in_it = f"Name the traces in it: moe-diag analyze {path}/*.nsys-rep"
        cure = in_it if path.is_dir() else "Save the trace to a file, and name that."
        raise NotATrace(f"{path} is {what}. {cure}")
    try:
        with opened(path) as file:
            head = file.read(100)
    except FileNotFoundError:
        # nsys ends without an error where no range of its capture began
        no_report = (
            " With -c cudaProfilerApi, nsys writes no report where the program never calls "
            "cudaProfilerStart."
        )
        more = no_report if path.suffix == ".nsys-rep" else ""
        raise TraceNotFound(f"{path} does not exist. Check the path.{more}") from None
    except OSError as error:
        cure = "Name the file itself" if error.errno == errno.ELOOP else "Check its permissions"
        raise TraceNotFound(f"{path} cannot be read ({reason_of(error)}). {cure}.") from None
    if not head:
        raise DamagedTrace(f"{path} is empty. {_KNOWN}")
    return head
