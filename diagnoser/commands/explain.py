"""`moe-diag explain`: what a word of a report means."""

from __future__ import annotations

from diagnoser.options import Word
from diagnoser.output import Target, write


def explain(
    word: Word = "",
) -> None:
    """What a word of a report means: a wall, a fix (COM-2) or a measure (launch_starved)."""
    from reports.explain import explain as explained

    write(Target("text", None), explained(word), force=False)
