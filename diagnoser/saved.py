"""A result in a file, of whatever command, for `moe-diag report`."""

from dataclasses import dataclass
from pathlib import Path

from reports.result.read import read_document, typed
from reports.write.formats import Kind, Whole, kind_of
from traces.errors import NotAResult, UsageError


@dataclass(frozen=True, slots=True)
class Saved:
    """A result that was saved."""

    kind: Kind
    result: Whole


def saved_result(path: Path, redact: bool = True) -> Saved:
    """An earlier result.

    Raises `TraceNotFound` for what cannot be read, `NotAResult` for what is no result of ours or of a newer
    schema, `UsageError` for one that is not redacted where `redact` asks for it.
    """
    document = read_document(path)
    try:
        result = typed(document)
    except NotAResult as error:
        raise NotAResult(f"{path}: {error}") from None
    if redact and not result.redacted:
        raise UsageError(
            f"{path} was made with --no-redact and holds paths. Give --no-redact to show them, or make the "
            "result again without it."
        )
    return Saved(kind_of(result), result)
