"""The command `moe-diag`, and `python -m diagnoser`. Its help is a file, shown before anything is
loaded.
"""

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

_NUMPY: Final = {"OPENBLAS_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}
"""What numpy reads when it is loaded.

It would start a thread for each core, and none has work here: 0.05 s of CPU time on two cores. It
would ask for huge pages, which a virtual machine gives slowly: of a million kernels 0.3 of 6.9 s
(measured 2026-11-23). """


def main() -> NoReturn:
    _open_streams()
    if sys.argv[1:] in (["--help"], ["-h"]):
        with suppress(OSError):  # what cannot be written is said below
            print(
                Path(__file__).with_name("help.txt").read_text(encoding="utf-8"), end="", flush=True
            )
            sys.exit(0)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # until cli listens there is nothing to clean up
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # nearly all objects stay: collecting often takes a tenth of a short run
    gc.set_threshold(1_000_000)
    os.environ["PYTHONSAFEPATH"] = (
        "1"  # nor does a Python that this one starts look in the working folder
    )
    for name, value in _NUMPY.items():
        os.environ.setdefault(name, value)
    from diagnoser.cli import main as run

    run()


def _open_streams() -> None:
    """Where a standard stream is closed, put one that refuses all: else the next file takes its
    number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115 - as long as the program runs
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115


if __name__ == "__main__":
    main()
