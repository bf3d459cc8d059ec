"""What opinions say: each sentence once, in a table by subject; Python gives its code and its
figures.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from traces.missing import Missing, gap
from traces.spelling import gigabytes, in_ms, percent
from traces.toml_tables import read_table

_SPELLED: Final[dict[str, Callable[[Any], str]]] = {
    "ns": in_ms,
    "frac": percent,
    "bytes": gigabytes,
}


@cache
def sentences(subject: str) -> dict[str, str]:
    return read_table("heuristics.words", f"{subject}.toml", dict[str, str])


def say(code: str, **figures: object) -> str:
    """The sentence of a code `subject.name`, with its figures spelled.

    Raises KeyError where the table has no such code, or the sentence asks for a figure that is not
    given.
    """
    subject, name = code.split(".")
    return sentences(subject)[name].format_map(
        {key: spelled(key, value) for key, value in figures.items()}
    )


def spelled(name: str, figure: object) -> str:
    """A figure by its name: `*_ns` in ms, `*_frac` as a share, `*_bytes` in GB, others as they
    are.
    """
    return _SPELLED.get(name.rpartition("_")[2], str)(figure)


def lacking(code: str, *, cure: str = "", **figures: object) -> Missing:
    """Why something is not known, by a sentence; its cure is that of `CODE-cure`, or of another
    code.
    """
    return gap(say(code, **figures), say(cure or f"{code}-cure", **figures))
