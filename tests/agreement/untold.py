"""Whether a document says why of each null: by an entry of `missing`, or because the field need not apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from reports.result.codec import Document

NEED_NOT_APPLY: Final = frozenset(
    {
        "ranks[].data_loading.workers",  # where no step waits for its batch
        "ranks[].data_loading.loads_apart",  # where no iterator of a loader was recorded
        *(f"ranks[].sequence.kinds[].{key}" for key in ("name", "phase", "size_bytes")),
        "ranks[].clock_within_ns",  # where clocks agree
        "ranks[].steps.outside_ns",  # without steps
        *(f"verdict.{key}" for key in ("wall", "kind", "confidence", "runner_up")),
        *(f"verdict.{key}" for key in ("next_wall", "next_wall_frac")),
        *(f"walls[].evidence[].{key}" for key in ("limit", "start_ns", "end_ns", "step", "rank")),
        *(f"{plan}[].room{key}" for plan in ("fixes", "levers") for key in ("", ".free_bytes", ".fits")),
        *(f"ranks[].sm.{key}" for key in ("capability_at_least", "comm_blocks", "comm_blocks_mean")),
        *("ranks[].sm.stretch", "ranks[].sm.stretch_frac", "ranks[].tensor_cores.fp32_to_tf32_frac"),
        *("ranks[].a2a.waiting_like_ns", "ranks[].ledger[].wall"),
        *(f"throughput.references[].{key}" for key in ("gpus", "precision", "layout", "batch", "step_s")),
        "throughput.references[].dispatcher",
        *("configuration.settings[].value", "configuration.settings[].value[]"),
        *(f"normal.{key}" for key in ("standing", "replayed_tokens_high", "replayed_standing")),
        *(f"normal.{key}" for key in ("mfu_low_frac", "mfu_high_frac", "step_low_ns", "step_high_ns")),
    }
)
"""Without a wall it has no kind; context is held against no limit; without communication nothing is beside
it. A text of the configuration that is withheld says so itself."""


def unexplained(document: Document) -> list[str]:
    """Nulls of a result of which nothing says why."""
    return [path for path in uncovered(document) if plain(path) not in NEED_NOT_APPLY]


def uncovered(document: Document) -> list[str]:
    """Nulls of a document of any kind without an entry of their own or of a parent."""
    return [path for path in nulls(document) if not has_reason(path, document)]


def nulls(document: Document) -> list[str]:
    """Paths of all nulls."""
    return [path for path, value in leaves(document) if value is None]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a document with its path, but for the list of gaps."""
    if isinstance(value, dict):
        for key, one in value.items():
            if path or key != "missing":
                yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from leaves(one, f"{path}[{place}]")
    else:
        yield path, value


def has_reason(path: str, document: Document) -> bool:
    """Whether an entry of `missing` is of this path, or of what it lies in."""
    parts = _parts(path)
    return any(_covers(_parts(one["path"]), parts) for one in document.get("missing", []))


def _covers(wanted: list[str], parts: list[str]) -> bool:
    return len(wanted) <= len(parts) and all(
        one in (part, "*") for one, part in zip(wanted, parts, strict=False)
    )


def _parts(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


def plain(path: str) -> str:
    """A path without its indexes, and without ids of fixes."""
    return re.sub(r"\[(\d+|\*)\]|\.[A-Z]{3}-\d+\b", "[]", path)
