"""Loops that numpy cannot express: one text, interpreted where there is little to do, else
compiled.

numba compiles, and only then is it imported. Compiled loops stay in the user's cache folder, in one
folder for each text of the modules that they and what they call stand in, so that no other text is
ever run: numba itself goes by a file's size and time. Without numba, loops are interpreted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeVar

import numpy as np

from traces.errors import OutputNotWritable
from traces.files.cache_folder import default_cache_dir
from traces.files.elsewhere import elsewhere, trusts_working_folder
from traces.files.own_folder import is_surely_ours, make_own
from traces.limits import Limit
from traces.progress import report
from traces.texts import Texts

COMPILED_FROM: Final = Limit(
    400_000,
    "rounds",
    "measured: interpreted, these take as long as importing numba and its stored loops",
)

P = ParamSpec("P")
R = TypeVar("R")


class Loop(Generic[P, R]):
    """A function of numpy arrays and whole numbers, whose results stand in the arrays that it
    writes.
    """

    def __init__(self, text: Callable[P, R], writes: Texts) -> None:
        assert isinstance(text, FunctionType)
        self._text, self._function = text, text
        self._interpreted = 0
        names = text.__code__.co_varnames[: text.__code__.co_argcount]
        self._written = tuple(map(names.index, writes))
        self.__doc__ = text.__doc__

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run the text as it is: how one loop calls another."""
        return self._text(*arguments, **named)

    def over(self, rounds: int, times: int = 1) -> Callable[P, R]:
        """The loop for about so many rounds, which come so often at least.

        What was interpreted before counts as well: hundreds of small ranks are much to do together.
        """
        if runs_compiled(max(rounds * times, self._interpreted + rounds)):
            return self.compiled
        self._interpreted += rounds
        return self.interpreted

    def interpreted(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run it by Python: lists and bytes, for single elements of arrays take several times as
        long.
        """
        lists = [*map(_listed, arguments)]
        result: R = self._text(*lists, **named)
        for place in self._written:
            array: Any = arguments[place]
            array[:] = lists[place]
        return result

    @cached_property
    def compiled(self) -> Callable[P, R]:
        numba, text = _numba(), self._function
        folder = _folder(self._sources())
        keeps = folder is not None and _keeps(folder)
        if not (folder and keeps and any(folder.rglob(f"*{text.__name__}-*.nbi"))):
            report("compiling the loops for large traces, once")
        compiled = {name: inner.compiled for name, inner in self._calls().items()}
        copied = FunctionType(text.__code__, text.__globals__ | compiled, text.__name__)
        copied.__module__, copied.__qualname__ = text.__module__, text.__qualname__
        numba.config.CACHE_DIR = str(folder or "")  # here, for each called loop sets its own
        machine: Callable[P, R] = numba.njit(cache=keeps, nogil=True)(copied)
        _keep_where_there_is_room(machine)
        return machine

    def _calls(self) -> dict[str, Loop[Any, Any]]:
        calls = {}
        for name in self._function.__code__.co_names:
            called = self._function.__globals__.get(name)
            if isinstance(called, Loop):
                calls[name] = called
        return calls

    def _sources(self) -> set[Path]:
        sources = {Path(self._function.__code__.co_filename)}
        for called in self._calls().values():
            sources |= called._sources()
        return sources


def runs_compiled(rounds: int) -> bool:
    """Whether loops of so many rounds run compiled."""
    return rounds >= COMPILED_FROM.value and _compiles()


def loop(*writes: str) -> Callable[[Callable[P, R]], Loop[P, R]]:
    """Mark a function as a loop that writes into these of its arrays."""
    return lambda text: Loop(text, writes)


@lru_cache(maxsize=1)
def _compiles() -> bool:
    try:
        _numba()
    except Exception:  # absent, or of no use with this numpy: whatever it is, the loops run without
        return False
    return True


def _numba() -> Any:
    """The module, which takes no settings from a working folder that is not trusted."""
    with elsewhere():
        numba = import_module("numba")
    if not trusts_working_folder():
        numba.core.config._config_fname = ""  # else it looks there again whenever it compiles
    return numba


def _folder(modules: set[Path]) -> Path | None:
    try:
        texts = b"".join(module.read_bytes() for module in sorted(modules))
        return default_cache_dir() / "loops" / hashlib.sha256(texts).hexdigest()[:16]
    except (OSError, OutputNotWritable):
        return None


def _listed(argument: Any) -> Any:
    if not isinstance(argument, np.ndarray):
        return argument
    if argument.dtype == np.uint8:
        return bytearray(argument)
    return argument.tolist()


def _keep_where_there_is_room(machine: Any) -> None:
    """What cannot be stored is compiled again by the next run; else a full disk would end this
    one.
    """
    cache: Any = getattr(machine, "_cache", None)
    if (store := getattr(cache, "save_overload", None)) is None:
        return

    def stored(*given: Any) -> None:
        with suppress(OSError):
            store(*given)

    cache.save_overload = stored


def _keeps(folder: Path) -> bool:
    """Whether loops may be kept there: what stands there is run, so it is the user's alone."""
    try:
        make_own(folder)
        if not is_surely_ours(folder):
            return False
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another run may try it at once
    except OSError:
        return False
    return True
