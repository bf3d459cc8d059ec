"""What a report says of itself: whether it holds what could tell where, or by whom, the run was made."""

from typing import Final

_REDACTED: Final = (
    "Redacted: no path, host, user, environment or command line of the run; names of kernels and NVTX ranges "
    "stand as they were recorded."
)
_NOT_REDACTED: Final = "Not redacted: holds paths and texts of the configuration."


def redaction_words(is_redacted: bool) -> str:
    """One sentence, alike in every format: what was left out, or that nothing was."""
    return _REDACTED if is_redacted else _NOT_REDACTED
