"""From a recording to the bytes of a report, as the command line goes."""

from __future__ import annotations

from pathlib import Path

import diagnoser
from reports.content.page import Asked, Detail
from reports.formats import FORMATS


def diagnosed(path: Path) -> None:
    """Diagnose a recording, and write it as text and as JSON."""
    result = diagnoser.analyze(path, ask_megatron=False).result
    for form in ("text", "json"):
        written = FORMATS[form].write(result, Asked(Detail.FULL))
        assert isinstance(written, str)
        written.encode()
