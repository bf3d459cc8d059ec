"""Libraries that take settings from a file of the working folder, which may be a stranger's folder.

matplotlib reads `matplotlibrc` there and numba `.numba_config.yaml`, each as it is loaded. Our
program is elsewhere meanwhile. A script or notebook that uses us as a library loads them as it
always does: the working folder is its user's own, and Python looks for code there too.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NOBODYS: Final = "/"
"""A folder that no ordinary user writes in."""


def trusts_working_folder() -> bool:
    """Whether Python itself looks there: our program and what it starts do not
    (`PYTHONSAFEPATH`).
    """
    return not (sys.flags.safe_path or os.environ.get("PYTHONSAFEPATH"))


@contextmanager
def elsewhere() -> Iterator[None]:
    """Within it the working folder is nobody's, unless it is trusted."""
    if trusts_working_folder():
        yield
        return
    working_folder = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    try:
        os.chdir(_NOBODYS)
        yield
    finally:
        os.fchdir(working_folder)
        os.close(working_folder)
