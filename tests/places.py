"""Where the repository, what tests read, and the reviewed texts stand, and how these are compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "data"
GOLDEN: Final = ROOT / "tests" / "golden"

Reviewed = Callable[[Path, str], str]
"""The fixture `reviewed`: a file and the new text -> the text that was reviewed."""
