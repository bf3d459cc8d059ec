"""Where the repository, what tests read, and the reviewed texts stand, and how these are compared."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "data"
GOLDEN: Final = ROOT / "tests" / "golden"
EMPTY: Final = {"edge_2026_no_kernels.sqlite"}
"""Real recordings without a kernel."""

Export = Callable[..., Path]
"""The fixture `export`: a recording -> the path of its export."""

Reviewed = Callable[[Path, str], str]
"""The fixture `reviewed`: a file and the new text -> the text that was reviewed."""


def manifest(folder: Path) -> list[str]:
    """The real recordings of a folder."""
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return [row["file"] for row in csv.DictReader(file)]
