"""Files that other programs dumped, pickles of plain values or JSON: read whole, and nothing is
ever run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from traces.errors import InputError, TraceNotFound
from traces.files.beneath import opened
from traces.files.plain_file import WHOLE, no_file
from traces.frozen import frozen
from traces.spelling import megabytes

T = TypeVar("T")


@frozen
class DumpKind:
    """What such a file is called, and what to give in place of one that is none.

    `wrong`: the error for that; `refused`: errors of the reader whose text says what is wrong with
    a file.
    """

    name: str
    give: str
    wrong: type[InputError]
    refused: tuple[type[ValueError], ...]


def read_dumped(path: Path, kind: DumpKind, read: Callable[[bytes], T]) -> T:
    """What `read` makes of a file. Raises `TraceNotFound` for what cannot be read, else
    `kind.wrong`.
    """
    if what := no_file(path):
        raise TraceNotFound(f"{path} is {what}. {kind.give}.")
    try:
        with opened(path) as file:
            data = file.read(WHOLE.whole + 1)
        if len(data) > WHOLE.value:
            raise kind.wrong(f"{path} is over {megabytes(WHOLE.value)} MB. {kind.give}.")
    except OSError as error:
        raise TraceNotFound(
            f"{path} cannot be read ({error.strerror or 'no such file'}). Check the path."
        ) from None
    try:
        return read(data)
    except kind.refused as error:
        raise kind.wrong(f"{path} is refused: {error}. {kind.give}.") from None
    except (ValueError, RecursionError, OverflowError, MemoryError):
        raise kind.wrong(f"{path} is no whole {kind.name}. {kind.give}.") from None
