"""Frames of a host thread's stack: what of one may be shown, and whether it is an address or
plumbing.

Anybody's folders stand in a recorded path, so that only a published package is told whole; of other
files the name of the file and of the function alone. The tables stand in `frames.toml`.
"""

from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from traces.names.in_use import is_of_loader
from traces.names.ranges import family, is_optimizer_name, is_step_name, public_range
from traces.patterns import LETTERS, compiled
from traces.texts import Texts
from traces.toml_tables import TableRow, read_table


class FrameKind(StrEnum):
    """What names an instant of a host thread, or a launch."""

    FUNCTION = "function"
    MODULE = "module"
    OPERATOR = "operator"
    NATIVE = "native"
    RANGE = "range"
    OS_CALL = "os_call"
    NONE = "none"


class Frame(NamedTuple):
    """A frame as it may be shown."""

    kind: FrameKind
    name: str


class _Plumbing(TableRow):
    file: str
    because: str
    functions: Texts = ()


class _Words(TableRow):
    names: str = ""
    modules: str = ""
    libraries: str = ""
    roots: str = ""
    because: str = ""

    @property
    def all(self) -> frozenset[str]:
        return frozenset(f"{self.names} {self.modules} {self.libraries}".split())


class _Table(TableRow):
    plumbing: tuple[_Plumbing, ...]
    standard: _Words
    packages: _Words
    native: _Words
    os_calls: _Words


@cache
def _table() -> _Table:
    return read_table("traces.names", "frames.toml", _Table)


@cache
def _known(table: str) -> frozenset[str]:
    words: _Words = getattr(_table(), table)
    return words.all


_PYTHON: Final = compiled(r"(?P<path>[^\n]+?\.py)\(\d+\): (?P<function>[^\n]+)")
_MODULE: Final = compiled(r"nn\.Module: ([A-Za-z_]\w{0,80})_\d+")
_NATIVE: Final = compiled(r"(?P<path>[^\n]+?): (?P<symbol>[^\n]+)")
_LIBRARY: Final = compiled(r"([\w-]+?)(?:-[\d.]+)?(?:\.cpython\S*)?\.so(?:\.\d+)*")
_INTERPRETER: Final = compiled(r"(?:.*/)?(?:lib/)?python\d(?:\.\d+)?/")
_INSTALLED: Final = compiled(r".*/(?:site|dist)-packages/")
_IDENTIFIER: Final = compiled(rf"[A-Za-z_][{LETTERS}_]*")
_LONGEST_NAME: Final = 61
_LONG_NUMBER: Final = compiled(r"\d{7}|\d+_\d+_\d+_\d+")
_WITHIN: Final = frozenset(("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"))
"""Parts of the function that holds them."""
_WHOLE_FILE: Final = "<module>"


@cache
def public_frame(text: str) -> Frame | None:
    """A recorded frame that is an address: a function, or a module of PyTorch; None for all else.

    Spelled as the profiler does: `package/file.py(12): function`, `nn.Module: Linear_0`; native
    ones `library.so: symbol`.
    """
    if match := _MODULE.fullmatch(text):
        return Frame(FrameKind.MODULE, match[1])
    if match := _PYTHON.fullmatch(text):
        kind, name = FrameKind.FUNCTION, _of_python(match["path"], match["function"])
    elif not text.startswith("<") and (match := _NATIVE.fullmatch(text)):
        kind, name = FrameKind.NATIVE, _of_library(match["path"], match["symbol"])
    else:
        return None
    if name:
        return Frame(kind, name)
    return None


def _of_python(path: str, function: str) -> str | None:
    if function in _WITHIN or path.startswith("<"):
        return None
    path = _from_package(path.replace("\\", "/"))
    parts = path.removesuffix(".py").split("/") if path else [""]
    if parts[0] in _known("standard") or _is_plumbing(path, function):
        return None
    if function != _WHOLE_FILE and not _is_name(function):
        return None
    module = parts if parts[0] in _known("packages") and all(map(_is_name, parts)) else parts[-1:]
    if len(module) > 1 and module[-1] == "__init__":
        module = module[:-1]
    if not all(map(_is_name, module)):
        return None
    if function == _WHOLE_FILE:
        return ".".join(module)
    return ".".join((*module, function))


@cache
def public_file(path: str) -> str | None:
    """A file of a published package, from the package on, as `torch/optim/adam.py`; None for any
    other.
    """
    inside = _from_package(path.replace("\\", "/"))
    parts = inside.removesuffix(".py").split("/")
    if inside.endswith(".py") and parts[0] in _known("packages") and all(map(_is_name, parts)):
        return inside
    return None


def _from_package(path: str) -> str:
    """A path from its package on: below the packages of an interpreter, or of a checkout that we
    know.

    Empty for Python's own library.
    """
    if installed := _INSTALLED.match(path):
        return path[installed.end() :]
    if _INTERPRETER.match(path):
        return ""
    return path[max(path.rfind(f"/{root}/") + 1 for root in _table().packages.roots.split()) :]


def _is_name(word: str) -> bool:
    """An identifier, with no number in it that could be an address or an account."""
    is_name = len(word) <= _LONGEST_NAME and _IDENTIFIER.fullmatch(word) is not None
    return is_name and not _LONG_NUMBER.search(word)


def _is_plumbing(path: str, function: str) -> bool:
    for row in _table().plumbing:
        inside = row.file.endswith("**") and path.startswith(row.file[:-2])
        if (inside or path == row.file) and (function in row.functions or not row.functions):
            return True
    return False


def _of_library(path: str, symbol: str) -> str | None:
    """A symbol of a known library, without its arguments and templates."""
    library = _LIBRARY.fullmatch(path.rpartition("/")[2])
    if library is None or library[1] not in _known("native"):
        return None
    parts = [*filter(None, _without_brackets(symbol).strip().rpartition(" ")[2].split("::"))]
    if parts and all(map(_is_name, parts)):
        return "::".join(parts)
    return None


def _without_brackets(symbol: str) -> str:
    depth, kept = 0, []
    for letter in symbol.replace("(anonymous namespace)", "anonymous"):
        depth += letter in "(<["
        if not depth:
            kept.append(letter)
        depth -= letter in ")>]"
    return "".join(kept)


_OPERATOR: Final = compiled(
    r"\w{1,99}::|\w{0,99}(?:Backward|AccumulateGrad)\d{0,9}$|nccl|MPI_|(?:nv)?shmem_|nvte_|record_param_comms"
)


WITHHELD: Final = Frame(FrameKind.RANGE, "")
"""A range whose text may be private: what it holds is not of the range around it."""


def public_span(text: str) -> Frame | None:
    """An operator or a range that names what a thread does, or hides it; None for a step's own
    range.
    """
    shown = public_range(text)
    if shown is not None:
        return _span(shown)
    return None if is_step_name(text) else WITHHELD


@cache
def _span(text: str) -> Frame | None:
    if is_step_name(text) and not is_optimizer_name(text):
        return None
    kind = FrameKind.OPERATOR if _OPERATOR.match(text) else FrameKind.RANGE
    return Frame(kind, text if kind is FrameKind.OPERATOR else family(text))


@cache
def public_os_call(text: str) -> Frame | None:
    """A call of the operating system that we know."""
    if text in _known("os_calls"):
        return Frame(FrameKind.OS_CALL, text)
    return None


_SAVES: Final = compiled(
    r"torch/serialization\.py\(\d+\): save$|torch/distributed/checkpoint/|/dist_checkpointing/"
)


@cache
def cause_of_frame(text: str) -> str | None:
    """What a frame of Python says that its thread does, a key of `HOST_RANGES`; None for most."""
    if is_of_loader(text):
        return "data"
    if _SAVES.search(text):
        return "checkpoint"
    return None
