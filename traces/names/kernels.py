"""Kernel name -> class, subclass and phase, by the ordered rules of `kernel_rules.toml`."""

import re
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from traces.toml_tables import read_table


class KernelClass(Struct, frozen=True, forbid_unknown_fields=True, rename={"class_": "class", "rule": "id"}):
    """What a kernel is by its name. `rule` is None where no rule names it (class `other`)."""

    class_: str
    subclass: str
    phase: Literal["fwd", "bwd", "opt", "any"]
    rule: str | None = None
    pattern: re.Pattern[str] | None = None


UNNAMED: Final = KernelClass("other", "unclassified", "any")


@cache
def _rules() -> tuple[KernelClass, ...]:
    return read_table("traces.names", "kernel_rules.toml", dict[str, tuple[KernelClass, ...]])["rules"]


@cache
def classify_kernel(name: str) -> KernelClass:
    """Class of one demangled kernel name, in nsys's or Kineto's spelling; `UNNAMED` where no rule matches.

    The rules are tried once per distinct name, whoever asks.
    """
    spelled = name.replace("(anonymous namespace)", "<unnamed>")
    found = (one for one in _rules() if one.pattern and one.pattern.search(spelled))
    return next(found, UNNAMED)


def is_polled_kernel(name: str) -> bool:
    """Whether a host polls for a kernel's token counts: DeepEP's `notify_dispatch`, but no cached one."""
    kernel = classify_kernel(name)
    return kernel.subclass == "ep_notify" and kernel.phase == "fwd"


def known_classes() -> frozenset[str]:
    """Every class a rule can give, and `other`."""
    return frozenset(one.class_ for one in _rules()) | {UNNAMED.class_}
