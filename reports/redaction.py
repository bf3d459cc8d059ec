"""What a report says of itself: whether it holds what could tell where, or by whom, the run was
made.

And what is taken out of a text that a user writes over it: paths, addresses, and always what may be
a secret.
"""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from traces.names.file_names import told_name
from traces.patterns import BLANKS, LETTERS, Match, Pattern, compiled, literal

_REDACTED: Final = (
    "Redacted: no path, host, user, environment or command line of the run; names of kernels and "
    "NVTX ranges stand as they were recorded, less addresses and secrets."
)
_NOT_REDACTED: Final = "Not redacted: holds paths and texts of the configuration."


def redaction_words(is_redacted: bool) -> str:
    """One sentence, alike in every format: what was left out, or that nothing was."""
    if is_redacted:
        return _REDACTED
    return _NOT_REDACTED


_GAP: Final = f"[{BLANKS}]"
_SOLID: Final = f"[^{BLANKS}]"
_NAMED: Final = compiled(
    r"(?i)\b((?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|authorization|bearer"
    r"|[\w-]{0,40}(?:api[_-]?key|access[_-]?key|private[_-]?key|_token|_secret|_password|_key))"
    rf"(?:{_GAP}*[:=]{_GAP}*|{_GAP}+is{_GAP}+)(?:bearer{_GAP}+)?|bearer{_GAP}+)({_SOLID}+)"
)
"""What stands after a word for a secret."""
_NUMBER: Final = compiled(r"[\d.,]+")
"""No secret: `token = 4096`."""
_TOKENS: Final = (
    r"hf_\w{16,}|gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|nvapi-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
_SHAPED: Final = compiled(rf"\b(?:{_TOKENS})")
"""How tokens of known services look."""
_LONG: Final = compiled(r"(^|[^\w/.+-])([A-Za-z0-9+/]{32,}={0,2})")
_EACH: Final = tuple(map(compiled, ("[a-z]", "[A-Z]", "[0-9]")))
"""What a machine writes: long, letters of both sizes and digits."""
_ADDRESS: Final = compiled(
    rf"[A-Za-z][\w+.-]*://{_SOLID}+|[{LETTERS}_.+-]+@[{LETTERS}_-]+(?:\.[{LETTERS}_-]+)*"
)
_HOST: Final = compiled(r"(^|[^\w.])(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}([\w.]*)(?::\d+)?")
"""Four numbers; what goes on behind them, as `1.2.3.4.5` and `1.2.3.4rc1` do, is a version."""
_PATH: Final = compiled(
    rf"(^|[^\pL\pN_./~-])((?:~[{LETTERS}_.-]*|\.{{1,2}})?/[{LETTERS}_.@%+=:~-]+(?:/[{LETTERS}_.@%+=:~-]*)*)"
    rf"|\b[A-Za-z]:\\{_SOLID}+|\\\\{_SOLID}+"
)
"""From a root, a home or this folder; `and/or` and `ms/step` are none."""

Instead = Callable[[Match], str | None]
"""What stands for a place of a text; None: it stays."""


def _of_name(match: Match) -> str | None:
    if _NUMBER.fullmatch(match[2]):
        return None
    return f"{match[1]}[withheld]"


def _of_long(match: Match) -> str | None:
    if all(pattern.search(match[2]) for pattern in _EACH):
        return f"{match[1]}[withheld]"
    return None


def _of_host(match: Match) -> str | None:
    if match[2].strip("."):
        return None
    return f"{match[1]}[address]{match[2]}"


_SECRETS: Final = (
    (_NAMED, _of_name),
    (_SHAPED, lambda _: "[withheld]"),
    (_LONG, _of_long),
)
_PLACES: Final = (
    (_ADDRESS, lambda _: "[address]"),
    (_HOST, _of_host),
    (_PATH, lambda match: (match[1] or "") + _base(match[2] or match[0])),
)


def public(text: str, redact: bool) -> tuple[str, int]:
    """A user's text without what may be a secret and, with `redact`, without addresses and folders.

    Also how many were taken out. A file keeps its base name.
    """
    taken_out = []

    def replaced(instead: Instead, match: Match) -> str:
        new = instead(match)
        if new is None:
            return match[0]
        taken_out.append(new)
        return new

    for pattern, instead in _SECRETS + _PLACES if redact else _SECRETS:
        text = pattern.sub(partial(replaced, instead), text)
    return text, len(taken_out)


def _base(path: str) -> str:
    """The name of a file; a folder, which may be named after its owner, has none."""
    bare = path.rstrip(".:,;)")
    name = (PureWindowsPath if "\\" in bare else PurePosixPath)(bare).name
    if PurePosixPath(name).suffix and not path.endswith("/"):
        return f"{name}{path[len(bare) :]}"
    return "[folder]"


_TOKEN_IN_NAME: Final = compiled(rf"(^|[^A-Za-z0-9])(?:{_TOKENS})")
_RUN: Final = compiled(r"[^\s<>(){}\[\],;*&|\"'`]+")
_URL_OR_MAIL: Final = ("://", "@")
_LABELS: Final = compiled(r"[A-Za-z0-9.-]+")
_NUMBERS: Final = compiled(r"(?:ip-)?\d{1,3}(?:[.-]\d{1,3}){3}")
_DOMAIN: Final = compiled(
    "(?i)com|org|net|edu|gov|mil|io|ai|dev|cloud|local|localdomain|internal|intranet|intra|lan|corp|home|arpa"
    "|test|example|de|fr|uk|nl|ch|se|fi|dk|pl|cz|jp|cn|kr|tw|au|ca|br|eu|us|il|sg"
)
"""What ends the name of a host: functions have points in their names too."""
_GROUPS: Final = compiled(r"[0-9A-Fa-f:]+")
_LONG_ADDRESS: Final = compiled(
    r"(?i)(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f])(?::[0-9a-f]{0,4}){2,7}|::1"
)
"""Addresses of IPv6 that are given out: the net's, those of one's own and of a link."""
_PATH_IN_NAME: Final = compiled(
    r"(^|[^A-Za-z0-9.~/-])"
    r"((?:~[\w.-]*|\.{1,2})/[\w.%+=:/-]*|/[\w.%+=:-]+/[\w.%+=:/-]*|[A-Za-z]:\\\S+|\\\\\S+)"
)
"""From a root, a home or this folder; `N/2` and `torch/optim/adam.py` are none."""


def public_name(name: str, redact: bool, own: Collection[str] = ()) -> str:
    """A recorded name, as of a kernel, without what may be a secret and, with `redact`, without
    addresses.

    `own`: the host and the user as the recording has them. What C++ and Python write is no address.
    """
    text = _NAMED.sub(_of_recorded, name)
    text = _TOKEN_IN_NAME.sub(lambda match: f"{match[1]}[withheld]", text)
    if redact:
        text = _RUN.sub(lambda match: _without_address(match[0]), text)
        for word in own:
            apart = Pattern(rf"(?i)(^|[^a-z0-9]){literal(word)}($|[^a-z0-9])")
            text = apart.sub(_between, apart.sub(_between, text))  # of two side by side one is left
    return text


def _between(match: Match) -> str:
    return f"{match[1]}[withheld]{match[2]}"


def _of_recorded(match: Match) -> str:
    """`token::kind` is no secret."""
    if match[2].startswith(":"):
        return match[0]
    return _of_name(match) or match[0]


def _without_address(run: str) -> str:
    if any(mark in run for mark in _URL_OR_MAIL):
        return "[address]"
    text = _PATH_IN_NAME.sub(lambda match: match[1] + told_name(_base(match[2])), run)
    text = _LABELS.sub(lambda match: "[address]" if _is_host(match[0]) else match[0], text)
    return _GROUPS.sub(
        lambda match: "[address]" if _LONG_ADDRESS.fullmatch(match[0]) else match[0], text
    )


def _is_host(word: str) -> bool:
    """Whether it is an address, or the name of a host with its domain."""
    bare = word.strip(".-")
    stem, _, last = bare.rpartition(".")
    return bool(_NUMBERS.fullmatch(bare) or (stem and _DOMAIN.fullmatch(last)))
