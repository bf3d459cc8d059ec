"""Summaries of ranks kept in a folder, for `moe-diag merge`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnoser.output import Target, base_name, check_place, write
from traces.errors import UsageError
from traces.files.aside import sweep

if TYPE_CHECKING:
    from traces.ranks.summary import RankSummary


def check_folder(folder: Path | None, traces: Sequence[Path], force: bool) -> None:
    """Before any work: the folder can be, and nothing of these traces is in it.

    Raises `UsageError` for a summary that is there already, unless `force`, `OutputNotWritable` for a place
    that can be no folder.
    """
    if folder is None:
        return
    from traces.ranks.codec import SUFFIX

    check_place(folder, "--summary")
    sweep(folder)
    bases = {base_name(trace) for trace in traces}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        if not force and (name in bases or re.sub(r"_\d+$", "", name) in bases):
            raise UsageError(
                f"{path} exists. Give --force-overwrite to replace it, or another place with --summary."
            )


def keep_summaries(folder: Path | None, found: Sequence[tuple[Path, RankSummary]], force: bool) -> None:
    """Write the summary of each rank with the trace that it came from; each file is whole or not there.

    A file is named as its trace; where several ranks would have one name, a number follows.
    """
    if folder is None:
        return
    from traces.ranks.codec import SUFFIX, encode

    folder.mkdir(exist_ok=True)
    several = Counter(base_name(trace) for trace, _ in found)
    seen: Counter[str] = Counter()
    for trace, summary in found:
        base = base_name(trace)
        name = f"{base}_{seen[base]}" if several[base] > 1 else base
        seen[base] += 1
        write(Target("summary", folder / f"{name}{SUFFIX}"), encode(summary), force)
