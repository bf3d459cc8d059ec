"""The folder our exports are kept in, and what else is the user's own and can be made again."""

import os
from pathlib import Path

from traces.errors import OutputNotWritable, reason_of


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/moe-diag`, else `~/.cache/moe-diag`; `OutputNotWritable` where there is no
    home.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # the XDG rules: anything else is ignored
        return Path(given) / "moe-diag"
    try:
        return Path.home() / ".cache" / "moe-diag"
    except RuntimeError:
        raise OutputNotWritable(
            "there is no home folder for the cache: give one with --cache-dir DIR"
        ) from None


def not_writable(cache_dir: Path, error: OSError) -> OutputNotWritable:
    """The error to raise where writing into the cache folder failed."""
    return OutputNotWritable(
        f"cannot write the cache folder {cache_dir} ({reason_of(error)}): "
        "give another with --cache-dir DIR"
    )
