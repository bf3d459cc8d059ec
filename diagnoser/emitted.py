"""The patch that `--emit-config` prints in place of a report."""

from collections.abc import Sequence

from reports.frameworks import FRAMEWORKS
from traces.errors import UsageError


def or_patch(forms: Sequence[str] | None, emit_config: str | None) -> Sequence[str] | None:
    """The formats asked for, or the patch in their place. Raises `UsageError` for both, or no such patch."""
    if emit_config is None:
        return forms
    if emit_config not in FRAMEWORKS:
        raise UsageError(f"--emit-config {emit_config!r} is not known. Give {' or '.join(FRAMEWORKS)}.")
    if forms:
        raise UsageError("--emit-config prints a patch instead of a report. Leave out -f, or run twice.")
    return [emit_config]
