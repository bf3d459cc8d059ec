"""The command `moe-diag`, and `python -m diagnoser`. Its help is a file, shown before anything is loaded."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Final, NoReturn

_NUMPY: Final = {"OPENBLAS_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}
"""What numpy reads when it is loaded.

It would start a thread for each core, and none has work here: 0.05 s of CPU time on two cores. It would ask
for huge pages, which a virtual machine gives slowly: of a million kernels 0.3 of 6.9 s (measured 2026-11-23).
"""


def main() -> NoReturn:
    """Show the help of the whole, or run the command line, and exit."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(Path(__file__).with_name("help.txt").read_text(encoding="utf-8"), end="")
        sys.exit(0)
    gc.set_threshold(1_000_000)  # nearly all objects stay: collecting often takes a tenth of a short run
    for name, value in _NUMPY.items():
        os.environ.setdefault(name, value)
    from diagnoser.cli import main as run

    run()


if __name__ == "__main__":
    main()
