"""What a shell completes beside commands and options. It is asked at each Tab: nothing heavy is loaded."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from reports.frameworks import FRAMEWORKS

_HEURISTICS: Final = Path(__file__).resolve().parent.parent / "heuristics"
_FIX: Final = re.compile(r'^id = "([A-Z]+-\d+)"', re.MULTILINE)
_WALLS: Final = ("memory", "communication", "host_overhead", "compute")
"""As `heuristics.run.run` has them, which loads numpy; a test holds them together."""


def explain_words(incomplete: str) -> list[str]:
    """Walls, fixes, findings, measures and other words of a result."""
    from reports.measures import glossary, measures

    tables = ((_HEURISTICS / "fixes" / f"{wall}.toml").read_text(encoding="utf-8") for wall in _WALLS)
    fixes = [number for table in tables for number in _FIX.findall(table)]
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
