"""The known names nearest to a word that is none of them. No word and no file makes that slow."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from traces.limits import Limit

LONGEST_NAME: Final = Limit(
    80, "characters", "ours: no knob's path is longer; what is may be anything"
)
MOST_NAMES: Final = Limit(
    2_000, "names", "ours: the frameworks have 1,000 flags each; a trace may name more"
)
ALIKE: Final = 0.6
"""What difflib takes for near, of similarities from 0 to 1."""


def nearest_names(word: str, known: Iterable[str], count: int, alike: float = ALIKE) -> list[str]:
    """At most `count` of the known names, the nearest first."""
    if len(word) > LONGEST_NAME.value:
        return []
    short = (name for name in known if len(name) <= LONGEST_NAME.value)
    return get_close_matches(word, list(islice(short, MOST_NAMES.whole)), count, alike)


def nearest(word: str, known: Iterable[str], alike: float = ALIKE) -> str:
    """The known name that is meant; empty where none is near. Case and dashes do not count."""
    plain = {_plain(name): name for name in sorted(known, reverse=True)}
    matches = nearest_names(_plain(word), plain, 1, alike)
    if matches:
        return plain[matches[0]]
    return ""


def _plain(name: str) -> str:
    return name.lower().lstrip("-").replace("-", "_")
