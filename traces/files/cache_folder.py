"""The folder our exports are kept in, and a folder inside it for one run to work in."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from traces.errors import OutputNotWritable
from traces.files.aside import aside, one_at_a_time, sweep


def default_cache_dir() -> Path:
    """`$XDG_CACHE_HOME/moe-diag`, else `~/.cache/moe-diag`; `OutputNotWritable` where there is no home."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # the XDG rules: anything else is ignored
        return Path(given) / "moe-diag"
    try:
        return Path.home() / ".cache" / "moe-diag"
    except RuntimeError:
        raise OutputNotWritable(
            "there is no home folder for the cache: give one with --cache-dir DIR"
        ) from None


@contextmanager
def scratch_folder(cache_dir: Path) -> Iterator[Path]:
    """A folder of this run alone inside `cache_dir`, which is made where absent; gone afterwards.

    Those of killed runs go first. Raises `OutputNotWritable`.
    """
    with ExitStack() as stack:
        try:
            cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(cache_dir)
            folder = stack.enter_context(aside(cache_dir))
        except OSError as error:
            raise not_writable(cache_dir, error) from None
        yield folder


@contextmanager
def only_run(cache_dir: Path, key: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Be the only run that makes the entry `key` in `cache_dir`; `waiting` is called while another does.

    Raises `OutputNotWritable`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(one_at_a_time(cache_dir, key, waiting))
        except OSError as error:
            raise not_writable(cache_dir, error) from None
        yield


def not_writable(cache_dir: Path, error: OSError) -> OutputNotWritable:
    """The error to raise where writing into the cache folder failed."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OutputNotWritable(
        f"cannot write the cache folder {cache_dir} ({reason}): give another with --cache-dir DIR"
    )
