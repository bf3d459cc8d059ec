"""What a report says of itself: whether it holds what could tell where, or by whom, the run was made.

And what is taken out of a text that a user writes over it: paths, addresses, and always what may be a secret.
"""

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

_REDACTED: Final = (
    "Redacted: no path, host, user, environment or command line of the run; names of kernels and NVTX ranges "
    "stand as they were recorded."
)
_NOT_REDACTED: Final = "Not redacted: holds paths and texts of the configuration."


def redaction_words(is_redacted: bool) -> str:
    """One sentence, alike in every format: what was left out, or that nothing was."""
    return _REDACTED if is_redacted else _NOT_REDACTED


_NAMED: Final = re.compile(
    r"(?i)\b((?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|authorization|bearer|[\w-]{0,40}api[_-]?key"
    r"|[\w-]{0,40}access[_-]?key|[\w-]{0,40}private[_-]?key|[\w-]{0,40}(?:_token|_secret|_password|_key))"
    r"(?:\s*[:=]\s*|\s+is\s+)(?:bearer\s+)?|bearer\s+)(?![\d.,]+(?:\s|$))(\S+)"
)
"""What stands after a word for a secret; a plain number is none: `token = 4096`."""
_SHAPED: Final = re.compile(
    r"\b(?:hf_\w{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|nvapi-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|(?<![\w/.+-])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[A-Z])(?=[A-Za-z0-9+/]*[0-9])[A-Za-z0-9+/]{32,}={0,2}"
)
"""How tokens of known services look, and what a machine writes: long, letters of both sizes and digits."""
_ADDRESS: Final = re.compile(
    r"\b[A-Za-z][\w+.-]*://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)*|(?<![\w.])(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}(?![\w.])(?::\d+)?"
)
_PATH: Final = re.compile(
    r"(?<![\w./~-])(?:~[\w.-]*|\.{1,2})?/[\w.@%+=:-]+(?:/[\w.@%+=:-]*)*|\b[A-Za-z]:\\\S+|\\\\\S+"
)
"""From a root, a home or this folder; `and/or` and `ms/step` are none."""


def public(text: str, redact: bool) -> tuple[str, int]:
    """A user's text without what may be a secret and, with `redact`, without addresses and folders.

    Also how many were taken out. A file keeps its base name.
    """
    count = 0

    def withheld(found: re.Match[str], what: str) -> str:
        nonlocal count
        count += 1
        return what

    text = _NAMED.sub(lambda found: found[1] + withheld(found, "[withheld]"), text)
    text = _SHAPED.sub(lambda found: withheld(found, "[withheld]"), text)
    if redact:
        text = _ADDRESS.sub(lambda found: withheld(found, "[address]"), text)
        text = _PATH.sub(lambda found: withheld(found, _base(found[0])), text)
    return text, count


def _base(path: str) -> str:
    """The name of a file; a folder, which may be named after its owner, has none."""
    bare = path.rstrip(".:,;)")
    name = (PureWindowsPath if "\\" in bare else PurePosixPath)(bare).name
    return (
        f"{name}{path[len(bare) :]}" if PurePosixPath(name).suffix and not path.endswith("/") else "[folder]"
    )
