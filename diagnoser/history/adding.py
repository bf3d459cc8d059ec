"""A file -> the document that is kept: an earlier result as it is, a trace once it is diagnosed."""

import platform
from pathlib import Path
from typing import Any

from diagnoser.history.store import Added, Store
from diagnoser.inputs import real
from reports.result.read import is_result, read_document
from traces.errors import NotAResult, NotATrace
from traces.formats.open import ReadOptions


def add_file(
    store: Store, path: Path, options: ReadOptions, tag: str = "", keep_origin: bool = False
) -> Added:
    """Keep a result or a trace. Raises `InputError` and `NothingToDiagnose` for what cannot be used."""
    document = document_of(path, options)
    origin = (platform.node(), real(path)) if keep_origin else None
    try:
        return store.add(document, tag, origin)
    except NotAResult as error:
        raise NotAResult(f"{path}: {error}") from None


def document_of(path: Path, options: ReadOptions) -> dict[str, Any]:
    """The document of an earlier result, yet to be checked, or of a trace, diagnosed as `analyze` does."""
    if path.is_file() and is_result(path):
        return read_document(path)
    from diagnoser.pipeline import diagnose
    from diagnoser.progress import progress_display

    try:
        with progress_display() as progress:
            return diagnose([path], options=options, progress=progress).to_dict()
    except NotATrace:
        if not path.name.endswith((".json", ".json.gz")):
            raise
    return read_document(path)  # its keys were sorted
