"""Where the repository, what tests read, and the reviewed texts stand."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "data"
GOLDEN: Final = ROOT / "tests" / "golden"
