"""Simulated runs with a known wall, written as exports: what `demo` shows."""

from __future__ import annotations

import sqlite3
from difflib import get_close_matches
from pathlib import Path

from traces.errors import OutputNotWritable, UsageError
from traces.simulate.export import write_export
from traces.simulate.recorded import View, record
from traces.simulate.run import run
from traces.simulate.scenarios import SCENARIOS


def listed() -> str:
    """All scenarios, one a line."""
    return "\n".join(f"{name:<16}{scenario.about}" for name, scenario in SCENARIOS.items())


def simulate_to(path: Path, name: str) -> None:
    """Simulate a scenario into an SQLite export.

    Raises `UsageError` for a scenario that is not there and for an existing file, `OutputNotWritable` where
    the export cannot be written.
    """
    if name not in SCENARIOS:
        near = get_close_matches(name, SCENARIOS, n=1, cutoff=0.5) or ["communication"]
        raise UsageError(f"no scenario {name!r}. The nearest is {near[0]}; moe-diag demo list shows all.")
    if not path.parent.is_dir():
        raise OutputNotWritable(f"{path.parent} is no folder. Create it, or give another place with --keep.")
    view = View()
    try:
        write_export(path, record(run(SCENARIOS[name].knobs), view), view.schema)
    except FileExistsError:
        raise UsageError(f"{path} exists. Give another place with --keep.") from None
    except (OSError, sqlite3.Error) as error:
        raise OutputNotWritable(
            f"{path} cannot be written ({error}). Give another place with --keep."
        ) from None
