"""Base names of a user's files: what of one may be told, as recorders put hosts, users and jobs
into them.
"""

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path, PurePath
from typing import Final

from traces.patterns import Pattern, compiled
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table

WITHHELD: Final = "WITHHELD"
"""Stands for a part of a name that may be a host, a person or an address."""
_SEVERAL: Final = compiled(rf"[(\[]*{WITHHELD}(?:[_ ()\[\]+,=#]*{WITHHELD})*[)\]]*")
_FIELDS: Final = compiled(r"([_ ()\[\]+,=#]+)")
"""What parts a name into fields. A host has none of these, but points and hyphens."""
_ADDRESS: Final = compiled(r"\d{1,3}([._-])\d{1,3}(?:[._-]\d{1,3}){2}")
_LABELS: Final = compiled("[.-]")
_PART: Final = compiled(r"[A-Za-z]+|\d+")
_HUMPS: Final = compiled(r"[A-Z]?[a-z]+|[A-Z]+")
_TIME: Final = compiled(r"20\d{6}(?:\d{4}|\d{6})?|1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?")
"""A day, with its time, or seconds, ms, us or ns of UNIX time."""
_LONGEST_NUMBER: Final = 6
"""Longer ones may be accounts or jobs."""
_FINGERPRINT: Final = compiled(r"[0-9a-f]{6,12}")
"""Of a file or a commit; what is longer may be a key."""
_LONGEST: Final = 120
_MOST_BLANKS: Final = 3
"""More of them make a sentence."""
_INITIALS: Final = 2
"""As many letters name nobody."""
_MOST_PARTS: Final = 4
"""A word of more letters and numbers in turn is none of the field: `x3k9q1w2`."""


class _Table(TableRow):
    endings: str
    machines: str
    words: dict[str, str]


@cache
def _table() -> _Table:
    return read_table("traces.names", "file_names.toml", _Table)


@cache
def _words() -> frozenset[str]:
    return frozenset(" ".join(_table().words.values()).split())


@cache
def _machine() -> Pattern:
    return compiled(rf"(?i)(?:{'|'.join(_table().machines.split())})(?:-\d|\d\d).*")


def told_path(path: PurePath) -> str:
    """A file's base name as it may be told; bytes that are no UTF-8 are replaced."""
    return told_name(os.fsencode(path.name).decode("utf-8", "replace"))


def told_paths(paths: Iterable[Path]) -> dict[Path, str]:
    """Base names as they may be told; those that would be told alike are numbered:
    `run#1.sqlite`.
    """
    names = {path: told_path(path) for path in paths}
    counts, before = Counter(names.values()), Counter[str]()
    for path, name in names.items():
        if counts[name] > 1:
            before[name] += 1
            ending = _ending(name)
            names[path] = f"{name[: len(name) - len(ending)]}#{before[name]}{ending}"
    return names


@cache
def told_name(name: str) -> str:
    """A base name in which every field that is not made of words of the field and of numbers is
    withheld.
    """
    ending = _ending(name)
    stem = name[: len(name) - len(ending)]
    if len(name) > _LONGEST or stem.count(" ") > _MOST_BLANKS:
        return WITHHELD + ending
    parts = _FIELDS.split(stem)
    fields = [part if place % 2 or _is_kept(part) else WITHHELD for place, part in enumerate(parts)]
    if _ADDRESS.search(stem):
        fields = [WITHHELD]
    return _SEVERAL.sub(WITHHELD, "".join(fields)) + ending


_BY_PROFILER: Final = compiled(r"(.{1,200})_\d{1,10}\.\d{1,20}\.pt\.trace\.json")
_SHORTEST: Final = 3
"""Shorter words are parts of too many others."""
_MOST_OWN: Final = 16
"""A recording is of one machine and one user, whatever its tables say."""


def recorder_of(path: PurePath) -> Texts:
    """The machine after which the PyTorch profiler names a file by itself:
    HOST_PID.TIME.pt.trace.json.
    """
    match = _BY_PROFILER.match(path.name)
    if match:
        return own_words([match[1]])
    return ()


def own_words(names: Iterable[str]) -> Texts:
    """Hosts and users by which a recorded name may be told apart; words of the field are none."""
    own = dict[str, None]()
    for name in names:
        for word in (name, name.partition(".")[0]):
            if len(word) >= _SHORTEST and word.lower() not in _words():
                own[word] = None
    return tuple(islice(own, _MOST_OWN))


def is_file(name: str) -> bool:
    """Whether a name ends as files do that a user gives."""
    return bool(_ending(name))


def _ending(name: str) -> str:
    """The longest ending that is known; empty where there is none."""
    known = filter(name.lower().endswith, _table().endings.split())
    return name[len(name) - max(map(len, known), default=0) :]


def _is_kept(field: str) -> bool:
    return _machine().match(field) is None and all(map(_is_label, _LABELS.split(field)))


def _is_label(label: str) -> bool:
    if _FINGERPRINT.fullmatch(label):
        return True
    parts = _PART.findall(label)
    return "".join(parts) == label and len(parts) <= _MOST_PARTS and all(map(_is_known, parts))


def _is_known(part: str) -> bool:
    if part.isdigit():
        return len(part) <= _LONGEST_NUMBER or _TIME.fullmatch(part) is not None
    if len(part) <= _INITIALS or part.lower() in _words():
        return True
    return all(len(hump) > _INITIALS and hump.lower() in _words() for hump in _HUMPS.findall(part))
