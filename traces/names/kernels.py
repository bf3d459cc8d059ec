"""Kernel name -> class, subclass and phase, by the ordered rules of `kernel_rules.toml`."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True)
class KernelClass:
    """What a kernel is by its name. `rule` is None where no rule names it (class `other`)."""

    class_: str
    subclass: str
    phase: str
    rule: str | None


UNNAMED: Final = KernelClass("other", "unclassified", "any", None)


@cache
def _rules() -> tuple[tuple[re.Pattern[str], KernelClass], ...]:
    text = files("traces.names").joinpath("kernel_rules.toml").read_text(encoding="utf-8")
    return tuple(
        (
            re.compile(rule["pattern"], re.IGNORECASE if rule.get("ignore_case") else 0),
            KernelClass(rule["class"], rule["subclass"], rule["phase"], rule["id"]),
        )
        for rule in tomllib.loads(text)["rules"]
    )


@cache
def classify_kernel(name: str) -> KernelClass:
    """Class of one demangled kernel name, in nsys's or Kineto's spelling; `UNNAMED` where no rule matches.

    The rules are tried once per distinct name, whoever asks.
    """
    spelled = name.replace("(anonymous namespace)", "<unnamed>")
    for pattern, kernel_class in _rules():
        if pattern.search(spelled):
            return kernel_class
    return UNNAMED


def is_polled_kernel(name: str) -> bool:
    """Whether a host polls for a kernel's token counts: DeepEP's `notify_dispatch`, but no cached one."""
    kernel = classify_kernel(name)
    return kernel.subclass == "ep_notify" and kernel.phase == "fwd"


def known_classes() -> frozenset[str]:
    """Every class a rule can give, and `other`."""
    return frozenset(kernel_class.class_ for _, kernel_class in _rules()) | {UNNAMED.class_}
