"""Names that a recording holds, as they are kept: what no recorder writes is cut when it is read.

Whatever is asked of a name costs what it is long, and a file of a stranger may hold one of many
megabytes.
"""

from typing import Final

from traces.limits import Limit

LONGEST: Final = Limit(
    16_384,
    "characters",
    "ours: three times the longest of all recordings at hand, an ATen kernel of 5,123; a word that "
    "decides the class of a kernel stands at its head or at its tail",
)
_MARK: Final = "..."


def cut_name(name: str) -> str:
    """A foreign name; of one that is too long its head and its tail, with points between."""
    most = LONGEST.whole
    if len(name) <= most:
        return name
    head = 3 * most // 4
    return f"{name[:head]}{_MARK}{name[head + len(_MARK) - most :]}"
