"""Files of a second witness -> dumps, whichever program wrote them. Nothing of a file is ever
run.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from traces.errors import InputError, NotAWitness
from traces.files.dumped import DumpKind, read_dumped
from traces.files.plain_pickle import PICKLE, NotPlain, read_plain
from traces.witness.dump import Dump
from traces.witness.flight_recorder import NotADump, dump_of, is_dump
from traces.witness.inspector import NotInspector, dumps_of

_WITNESS: Final = DumpKind(
    "dump",
    "Give dumps of PyTorch's Flight Recorder, or JSON of NCCL Inspector",
    NotAWitness,
    (NotPlain, NotADump, NotInspector),
)


def read_witness(path: Path) -> list[Dump]:
    """The dumps in a file. Raises `TraceNotFound` for what cannot be read, `NotAWitness` for what
    is none.
    """
    return read_dumped(path, _WITNESS, lambda data: _dumps(data, path.name))


def _dumps(data: bytes, name: str) -> list[Dump]:
    if data.startswith(PICKLE):
        document = read_plain(data)
        if not is_dump(document):
            raise NotADump("it has no entries of collectives")
        return [dump_of(document, name)]
    text = data.decode("utf-8-sig")
    try:
        document = json.loads(text)
    except ValueError:
        return dumps_of(text.splitlines())
    if is_dump(document):
        return [dump_of(document, name)]
    return dumps_of(text.splitlines())


def read_witnesses(paths: Sequence[Path]) -> tuple[list[Dump], dict[Path, InputError]]:
    """All dumps, and why files were left out. Raises the first reason where no file can be used."""
    dumps: list[Dump] = []
    failed: dict[Path, InputError] = {}
    for path in paths:
        try:
            dumps += read_witness(path)
        except InputError as error:
            failed[path] = error
    if not dumps and failed:
        raise next(iter(failed.values()))
    return dumps, failed
