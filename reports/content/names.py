"""Names that people read: of keys, which have their home in `measures.toml`, and of foreign kernels."""

import re
from typing import Final

from heuristics.result.compared import Place, Side
from reports.measures import named
from traces.missing import OrMissing, known
from traces.sections.rank import Rank
from traces.spelling import gpu_model, printable

KERNEL_WIDTH: Final = 28
_WRAPPERS: Final = re.compile(
    r"^(kernel\d?|device_kernel|(vectorized_|unrolled_|legacy_)?elementwise_kernel\w*|reduce_kernel)$", re.I
)
"""Kernels that are named by their template argument."""
_SHARED: Final = re.compile(r"\w*traits|at|native|Kernel|kernel|lambda", re.IGNORECASE)
"""Words of templates that say nothing of a kernel: what stands before them in their path may."""
_FUNCTOR: Final = re.compile(r"Functor|^[A-Z][A-Za-z]*Op$")
"""Template arguments that many functions share: shown after the function, which is what one searches for."""
_PLAIN: Final = frozenset(
    {"void", "int", "long", "float", "double", "bool", "char", "unsigned", "true", "false"}
)
_WORD: Final = re.compile(r"[A-Za-z_]\w+(?:::\w+)*")


def name_of(key: str) -> str:
    """The name of a key, or of one after a family: `launch_starved.python`, `compute.gemm`."""
    if known := named(key):
        return f"longest {known[0].title}" if key.startswith("longest_") else known[0].title
    family, dot, last = key.rpartition(".")
    return name_of(last) if dot and family else key.replace("_", " ")


def capital(text: str) -> str:
    """With a capital in front, the rest as it is."""
    return text[:1].upper() + text[1:]


def is_cure(cure: str) -> bool:
    """Whether there is something to do: cures of what nothing can tell begin with "none"."""
    return bool(cure) and re.match(r"none\b", cure) is None


def kernel_name(recorded: str) -> str:
    """A kernel in a few characters: without its types, or by its template argument where that names it."""
    bare = re.sub(r"<unnamed>|\(anonymous namespace\)", "", printable(recorded, 400)).removeprefix("void ")
    head, _, inside = bare.partition("<")
    base = head.partition("(")[0].rpartition("::")[2].strip()
    if _WRAPPERS.match(base):
        for word in _WORD.findall(inside):
            last = next((part for part in reversed(word.split("::")) if not _SHARED.fullmatch(part)), "")
            if last and last not in _PLAIN and not _WRAPPERS.match(last) and "gpu_kernel" not in last:
                return _first(f"{base} {last}" if _FUNCTOR.search(last) else last)
    return _first(base or bare)


def _first(name: str) -> str:
    """The beginning, which says more than the end."""
    return name if len(name) <= KERNEL_WIDTH else name[: KERNEL_WIDTH - 3] + "..."


def gpu_of(of: Rank | Side) -> str:
    """The model of the GPU in short."""
    gpu = known(of.gpu)
    return "GPU model not recorded" if gpu is None else gpu_model(gpu)


def who(of: Rank | Side | Place) -> str:
    """A rank in two or three words."""
    number = known(of.rank)
    return f"GPU {of.device}" if number is None else f"rank {number}, GPU {of.device}"


def grid_words(grid: OrMissing[tuple[int, int, int]]) -> str:
    """The blocks of a kernel: `8 x 4 x 1`; empty where they are not told."""
    return " x ".join(map(str, known(grid) or ()))
