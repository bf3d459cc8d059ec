"""Which simulator this is: a hash over its sources, for tables of scores."""

from __future__ import annotations

import hashlib
from pathlib import Path


def simulator_hash() -> str:
    """Twelve hexadecimal digits that change with any file the simulator is made of."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.iterdir()):
        if path.suffix in {".py", ".json"} and not path.name.startswith("test_"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
