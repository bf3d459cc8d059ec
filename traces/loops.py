"""Loops that numpy cannot express: one text, interpreted where there is little to do, else compiled.

numba compiles, and only then is it imported. Compiled loops stay in the user's cache folder, in one folder
for each text of a module, so that no other text is ever run. Without numba, loops are interpreted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeVar

import numpy as np

from traces.formats.cache_folder import default_cache_dir
from traces.limits import Limit
from traces.progress import report

COMPILED_FROM: Final = Limit(
    400_000, "rounds", "measured: interpreted, these take as long as importing numba and its stored loops"
)

P = ParamSpec("P")
R = TypeVar("R")


class Loop(Generic[P, R]):
    """A function of numpy arrays and whole numbers, whose results stand in the arrays that it writes."""

    def __init__(self, text: Callable[P, R], writes: tuple[str, ...]) -> None:
        assert isinstance(text, FunctionType)
        self._text, self._function = text, text
        names = text.__code__.co_varnames[: text.__code__.co_argcount]
        self._written = tuple(names.index(name) for name in writes)
        self.__doc__ = text.__doc__

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run the text as it is: how one loop calls another."""
        result: R = self._text(*arguments, **named)
        return result

    def over(self, rounds: int) -> Callable[P, R]:
        """The loop for about so many rounds in all."""
        return self.compiled if rounds >= COMPILED_FROM.value and _compiles() else self.interpreted

    def interpreted(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run it by Python: lists, for single elements of arrays take several times as long."""
        lists = [one.tolist() if isinstance(one, np.ndarray) else one for one in arguments]
        result: R = self._text(*lists, **named)
        for place in self._written:
            whole: Any = arguments[place]
            whole[:] = lists[place]
        return result

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The same compiled, or loaded from where it was kept."""
        numba, text = import_module("numba"), self._function
        folder = _folder(text.__code__.co_filename)
        numba.config.CACHE_DIR = str(folder)
        if not (folder.exists() and any(folder.rglob(f"*{text.__name__}-*.nbi"))):
            report("compiling the loops for large traces, once")
        calls = {name: text.__globals__.get(name) for name in text.__code__.co_names}
        compiled = {name: one.compiled for name, one in calls.items() if isinstance(one, Loop)}
        copied = FunctionType(text.__code__, text.__globals__ | compiled, text.__name__)
        copied.__module__, copied.__qualname__ = text.__module__, text.__qualname__
        machine: Callable[P, R] = numba.njit(cache=_writable(folder), nogil=True)(copied)
        return machine


def loop(*writes: str) -> Callable[[Callable[P, R]], Loop[P, R]]:
    """Mark a function as a loop that writes into these of its arrays."""
    return lambda text: Loop(text, writes)


@lru_cache(maxsize=1)
def _compiles() -> bool:
    return find_spec("numba") is not None


def _folder(module: str) -> Path:
    return default_cache_dir() / "loops" / hashlib.sha256(Path(module).read_bytes()).hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True
