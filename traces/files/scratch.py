"""In the folder of kept exports: a folder for one run to work in, and one run at a time for each
export.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from traces.errors import OutputNotWritable
from traces.files.aside import aside, sweep
from traces.files.cache_folder import not_writable
from traces.files.folder import Folder, open_folder
from traces.files.locks import clear_locks, one_at_a_time
from traces.files.own_folder import make_own, way_in


@contextmanager
def _writing(cache_dir: Path) -> Iterator[None]:
    """Raises `OutputNotWritable` for what cannot be written within."""
    try:
        yield
    except OSError as error:
        raise not_writable(cache_dir, error) from None


@contextmanager
def cache_opened(cache_dir: Path) -> Iterator[Folder]:
    """The folder of kept exports, made where absent. Raises `OutputNotWritable` where it is not
    ours alone.

    What is in it is given to other programs by its path, and trusted later: nobody else may change
    it.
    """
    with ExitStack() as stack:
        with _writing(cache_dir):
            make_own(cache_dir)
            why = way_in(cache_dir)
            cache = stack.enter_context(open_folder(cache_dir))
        if why:
            raise OutputNotWritable(
                f"the cache folder {cache_dir} is not yours alone ({why}). Take that away (chmod "
                "go-w), or give another with --cache-dir DIR"
            )
        yield cache


@contextmanager
def scratch_folder(cache: Folder) -> Iterator[Folder]:
    """A folder of this run alone inside the cache, gone afterwards; those of killed runs go first.

    Raises `OutputNotWritable`.
    """
    with ExitStack() as stack:
        with _writing(cache.path):
            clear_locks(cache)
            sweep(cache.path)
            folder = stack.enter_context(aside(cache))
        yield folder


@contextmanager
def only_run(cache: Folder, key: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Be the only run that makes the entry `key`; `waiting` is called while another does.

    Raises `OutputNotWritable`.
    """
    with ExitStack() as stack:
        with _writing(cache.path):
            stack.enter_context(one_at_a_time(cache, key, waiting))
        yield
