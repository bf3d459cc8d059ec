"""What panels of one run say alike: the run, its steps, figures per step, and why something is not told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reports.document import Document
from reports.sentences import replays_only
from reports.words import percent

Rank = dict[str, Any]
_SHORT_NS: Final = 500


def shown_rank(document: Document) -> int:
    """The place of the rank that is drawn: where the verdict's wall was seen, else the first."""
    for wall in document["walls"]:
        if wall["id"] == document["verdict"]["wall"]:
            seen = [one["rank"] for one in wall["evidence"] if one["rank"] is not None]
            return int(seen[0]) if seen and seen[0] < len(document["ranks"]) else 0
    return 0


def about_run(document: Document, place: int, unit: str) -> str:
    """The line under a panel's title: the run, which rank of how many, its GPU, its steps, the unit."""
    rank = document["ranks"][place]
    number = "" if rank["rank"] is None else f"rank {rank['rank']}, "
    gpu = f"{number}GPU {rank['device']} ({rank['gpu'] or 'model not recorded'})"
    count = len(document["ranks"])
    of = f", no. {place + 1} of {count} ranks" if count > 1 else ""
    return f"{rank['trace']} \u00b7 {gpu}{of} \u00b7 {steps_words(rank)} \u00b7 {unit}"


def steps_words(rank: Rank) -> str:
    """How many steps stand behind the figures."""
    count = len(rank["steps"]["used"])
    if not count:
        return "no steps found: the whole window"
    return f"{count} step{'s' if count > 1 else ''} (by {rank['steps']['source']})"


def per_step(rank: Rank) -> str:
    """The unit of times."""
    count = len(rank["steps"]["used"])
    return f"ms per step (mean of {count})" if count else "ms of the window"


def divisor(rank: Rank) -> int:
    """What totals are divided by to be figures of one step."""
    return len(rank["steps"]["used"]) or 1


def ms(ns: float) -> str:
    """A time in ms to the microsecond, as the tables write it: `42.038`; in full where shorter."""
    if ns == 0:
        return "0"
    return f"{ns / 1e6:,.3f}" if abs(ns) >= _SHORT_NS else f"{ns / 1e6:.6f}"


def share(ns: float, whole_ns: float) -> str:
    """A part of a whole, in percent."""
    return percent(ns / whole_ns) if whole_ns else ""


def bucket_words(rank: Rank, bucket: str) -> str:
    """A bucket of the budget as it is called here: busy where communication cannot be told from compute."""
    return "busy" if bucket == "compute" and replays_only(rank) else bucket.replace("_", " ")


def why_untold(document: Document, place: int, keys: Sequence[str]) -> str:
    """The first reason in `missing` for one of the keys of a rank, and its cure."""
    for key in keys:
        for gap in document["missing"]:
            if gap["path"] in (f"ranks[{place}].{key}", f"ranks[*].{key}"):
                cure = "" if gap["cure"].startswith("none") else f" To tell: {gap['cure'].rstrip('.')}."
                return f"Not told: {gap['reason'].rstrip('.')}.{cure}"
    return "Not told by this recording."
