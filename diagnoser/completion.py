"""What a shell completes beside commands and options. It is asked at each Tab: nothing heavy is loaded."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from reports.frameworks import FRAMEWORKS

_HEURISTICS: Final = Path(__file__).resolve().parent.parent / "heuristics"
_FIX: Final = re.compile(r"([a-z]{3})_(\d+)_\w+")
_WALLS: Final = ("memory", "communication", "host_overhead", "compute")
"""As `heuristics.run.run` has them, which loads numpy; a test holds them together."""


def explain_words(incomplete: str) -> list[str]:
    """Walls, fixes by the names of their files, findings, measures and other words of a result."""
    from reports.measures import glossary, measures

    found = (_FIX.fullmatch(path.stem) for path in sorted((_HEURISTICS / "fixes").glob("*.py")))
    fixes = [f"{one[1].upper()}-{one[2]}" for one in found if one]
    words = glossary()
    return _beginning(incomplete, (*_WALLS, *fixes, *words["finding"], *measures(), *words["word"]))


def scenarios(incomplete: str) -> list[str]:
    """The runs that `demo` diagnoses."""
    from diagnoser.demo.recordings import RECORDINGS

    return _beginning(incomplete, ("list", *RECORDINGS))


def patches(incomplete: str) -> list[str]:
    """What `--emit-config` writes."""
    return _beginning(incomplete, FRAMEWORKS)


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    """Words that begin so, each once."""
    return [one for one in dict.fromkeys(words) if one.startswith(incomplete)]
