"""The known names nearest to a word that is none of them. No word and no file makes that slow."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from traces.limits import Limit

LONGEST_NAME: Final = Limit(80, "characters", "ours: no knob's path is longer; what is may be anything")
MOST_NAMES: Final = Limit(2_000, "names", "ours: the frameworks have 1,000 flags each; a trace may name more")


def nearest_names(word: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `count` of the known names, the nearest first. `cutoff`: difflib's similarity, 0 to 1."""
    if len(word) > LONGEST_NAME.value:
        return []
    short = (one for one in known if len(one) <= LONGEST_NAME.value)
    return get_close_matches(word, list(islice(short, int(MOST_NAMES.value))), count, cutoff)
