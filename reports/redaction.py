"""What a report says of itself: whether it holds what could tell where, or by whom, the run was made.

And what is taken out of a text that a user writes over it: paths, addresses, and always what may be a secret.
"""

import re
from collections.abc import Collection
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from traces.names.file_names import told_name

_REDACTED: Final = (
    "Redacted: no path, host, user, environment or command line of the run; names of kernels and NVTX ranges "
    "stand as they were recorded, less addresses and secrets."
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
_TOKENS: Final = (
    r"hf_\w{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|nvapi-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
_SHAPED: Final = re.compile(
    rf"\b(?:{_TOKENS})"
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


_TOKEN_IN_NAME: Final = re.compile(rf"(^|[^A-Za-z0-9])(?:{_TOKENS})")
_RUN: Final = re.compile(r"[^\s<>(){}\[\],;*&|\"'`]+")
_URL_OR_MAIL: Final = ("://", "@")
_LABELS: Final = re.compile(r"[A-Za-z0-9.-]+")
_NUMBERS: Final = re.compile(r"(?:ip-)?\d{1,3}(?:[.-]\d{1,3}){3}")
_DOMAINS: Final = (
    *(
        "com",
        "org",
        "net",
        "edu",
        "gov",
        "mil",
        "io",
        "ai",
        "dev",
        "cloud",
        "local",
        "localdomain",
        "internal",
    ),
    *(
        "intranet",
        "intra",
        "lan",
        "corp",
        "home",
        "arpa",
        "test",
        "example",
        "de",
        "fr",
        "uk",
        "nl",
        "ch",
        "se",
    ),
    *("fi", "dk", "pl", "cz", "jp", "cn", "kr", "tw", "au", "ca", "br", "eu", "us", "il", "sg"),
)
"""What ends the name of a host: functions have points in their names too."""
_GROUPS: Final = re.compile(r"[0-9A-Fa-f:]+")
_LONG_ADDRESS: Final = re.compile(
    r"(?i)(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f])(?::[0-9a-f]{0,4}){2,7}|::1"
)
"""Addresses of IPv6 that are given out: the net's, those of one's own and of a link."""
_PATH_IN_NAME: Final = re.compile(
    r"(^|[^A-Za-z0-9.~/-])"
    r"((?:~[\w.-]*|\.{1,2})/[\w.%+=:/-]*|/[\w.%+=:-]+/[\w.%+=:/-]*|[A-Za-z]:\\\S+|\\\\\S+)"
)
"""From a root, a home or this folder; `N/2` and `torch/optim/adam.py` are none."""


def public_name(name: str, redact: bool, own: Collection[str] = ()) -> str:
    """A recorded name, as of a kernel, without what may be a secret and, with `redact`, without addresses.

    `own`: the host and the user as the recording has them. What C++ and Python write is no address.
    """
    text = _NAMED.sub(lambda found: found[0] if found[2].startswith(":") else f"{found[1]}[withheld]", name)
    text = _TOKEN_IN_NAME.sub(r"\1[withheld]", text)
    if redact:
        text = _RUN.sub(lambda found: _without_address(found[0]), text)
        for word in own:
            text = re.sub(rf"(?i)(^|[^a-z0-9]){re.escape(word)}($|[^a-z0-9])", r"\1[withheld]\2", text)
    return text


def _without_address(run: str) -> str:
    if any(mark in run for mark in _URL_OR_MAIL):
        return "[address]"
    text = _PATH_IN_NAME.sub(lambda found: found[1] + told_name(_base(found[2])), run)
    text = _LABELS.sub(lambda found: "[address]" if _is_host(found[0]) else found[0], text)
    return _GROUPS.sub(lambda found: "[address]" if _LONG_ADDRESS.fullmatch(found[0]) else found[0], text)


def _is_host(word: str) -> bool:
    """Whether it is an address, or the name of a host with its domain."""
    bare = word.strip(".-")
    rest, _, last = bare.rpartition(".")
    return _NUMBERS.fullmatch(bare) is not None or (bool(rest) and last.lower() in _DOMAINS)
