"""Names of files as they were given, for results that hold paths: `--no-redact`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from diagnoser.options.requests import path_words
from heuristics.result.texts import AnyStruct, changed
from traces.names.file_names import told_paths
from traces.texts import TextKind


def with_whole_names(result: AnyStruct, files: Iterable[Path | None]) -> AnyStruct:
    """A result that is not redacted with the base names of its files whole, wherever it has them.

    Where two files are told alike, their paths alone tell them apart.
    """
    told_as = told_paths(filter(None, files))
    whole = {shown: path_words(Path(path.name), redact=False) for path, shown in told_as.items()}
    count = Counter(whole.values())
    names = {shown: name for shown, name in whole.items() if shown != name and count[name] == 1}
    if result.redacted or not names:  # type: ignore[attr-defined]  # of whole results
        return result

    def named(kind: TextKind, text: Any) -> Any:
        for shown, name in names.items():
            text = text.replace(shown, name) if isinstance(text, str) else text
        return text

    return changed(result, named)
