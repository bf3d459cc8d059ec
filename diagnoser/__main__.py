"""The command `moe-diag`, and `python -m diagnoser`. Its help is a file, shown before anything is loaded."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Show the help of the whole, or run the command line, and exit."""
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(Path(__file__).with_name("help.txt").read_text(encoding="utf-8"), end="")
        sys.exit(0)
    gc.set_threshold(1_000_000)  # nearly all objects stay: collecting often takes a tenth of a short run
    from diagnoser.cli import main as run

    run()


if __name__ == "__main__":
    main()
