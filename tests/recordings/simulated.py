"""Documents of the demo."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import diagnoser
from diagnoser.demo import unpack


@cache
def scenario(name: str) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.sqlite"
        unpack(path, name)
        return diagnoser.analyze(path).to_dict()
