"""Files of a second witness, read, and what they show of a run."""

from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import UNSET, UnsetType

from diagnoser.options import Place
from diagnoser.running.inputs.named import entries_in, files_named
from heuristics.run.repairs import advised
from traces.frozen import frozen
from traces.missing import of_known
from traces.names.file_names import told_path
from traces.sections.hang import Hang, Witness
from traces.texts import Texts


@frozen
class Witnessed:
    """What was read. `skipped`: why files were left out, one line each; `warnings` name them
    alone.
    """

    witness: Witness | UnsetType = UNSET
    hang: Hang | None = None
    warnings: Texts = ()
    skipped: Texts = ()


def read_all(given: Iterable[Place], profiled: Collection[int | None]) -> Witnessed:
    """All files given, folders and patterns too. `profiled`: numbers of the ranks that were
    recorded.

    Raises `InputError` where no file can be used, `UsageError` for a file that is named twice.
    """
    paths = [*map(Path, given)]
    if not paths:
        return Witnessed()
    from traces.witness.hang import find_hang
    from traces.witness.read import read_witnesses
    from traces.witness.times import witness_of

    files = files_named(
        paths, _inside, lambda folder: f"{folder} holds no file. Name the folder of the dumps."
    )
    dumps, failed = read_witnesses(files)
    numbers = {rank for rank in profiled if rank is not None}
    hang = find_hang(dumps)
    return Witnessed(
        witness_of(dumps, len(files) - len(failed), numbers),
        of_known(advised, hang),
        tuple(f"{told_path(path)} was left out: it is no dump that can be read" for path in failed),
        tuple(map(str, failed.values())),
    )


def _inside(folder: Path) -> list[Path]:
    return [*filter(Path.is_file, entries_in(folder, ""))]
