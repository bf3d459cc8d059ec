"""Away from the working folder while a library is loaded that would take settings from a file in it.

Whoever sent the folder may have put that file there: numba imports what it names, matplotlib waits for a
pipe in its place.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from traces.files.folder import open_folder


@contextmanager
def elsewhere() -> Iterator[None]:
    """Work in a folder of ours, and then where it was before, also where that folder is gone."""
    with ExitStack() as undo:
        with suppress(OSError):  # where it may not be opened, nothing in it is read either
            before = undo.enter_context(open_folder(Path()))
            os.chdir(Path(__file__).parent)
            undo.callback(os.fchdir, before.fd)
        yield
