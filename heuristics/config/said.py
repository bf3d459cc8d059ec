"""What is said of a run's knobs, typed. What nobody said is None; a knob said to be null is off."""

from __future__ import annotations

import re
from typing import Final

from heuristics.fixes.preconditions import core_version, numbers
from heuristics.run.run import Given, Run
from traces.settings.settings import Value

_OPTIONS: Final = {
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vpp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "pipeline_model_parallel_layout": "pp_layout",
    "cuda_graph_impl": "graph_impl",
    "cuda_graph_modules": "graph_modules",
    "launcher.numa_binding": "cpu_bound_to_numa",
    "launcher.gpus_per_node": "gpus_per_node",
    "world_size": "world_size",
}
"""Knob -> the option of `Given` that says the same; a configuration outweighs it, as it holds the options."""


def value(run: Run, knob: str) -> Value:
    """A knob's value, None where unknown or null."""
    if knob in run.settings:
        return run.settings.value(knob)
    option = _OPTIONS.get(knob)
    found: Value = getattr(run.given, option) if option else None
    return found


def told(run: Run, knob: str) -> bool:
    """Whether anything is said of a knob, if only that it is null."""
    return knob in run.settings or value(run, knob) is not None


def number(run: Run, knob: str) -> int | None:
    """A count; None where unknown, null, or no whole number."""
    found = value(run, knob)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def size(run: Run, knob: str) -> int | None:
    """A count of at least one; what is no size counts as unknown."""
    found = number(run, knob)
    return found if found is not None and found > 0 else None


def flag(run: Run, knob: str) -> bool | None:
    """A switch: null is off, unknown is None."""
    found = value(run, knob)
    if found is None:
        return False if told(run, knob) else None
    return found if isinstance(found, bool) else None


def word(run: Run, knob: str) -> str | None:
    """A name; None where unknown or null."""
    found = value(run, knob)
    return found if isinstance(found, str) else None


def names(run: Run, knob: str) -> tuple[str, ...] | None:
    """A list of names, also from one text with commas or spaces between them; null is none, unknown None."""
    found = value(run, knob)
    if found is None:
        return () if told(run, knob) else None
    if isinstance(found, str):
        return tuple(re.findall(r"[\w+]+", found))
    return tuple(map(str, found)) if isinstance(found, tuple) else None


def where(run: Run, knob: str) -> str:
    """Where a knob was said, for sentences; an option of ours where no file said it."""
    said = run.settings.said(knob)
    return "the framework's defaults" if said == "default" else said or "the options"


def version(run: Run, package: str) -> tuple[int, int, int] | None:
    """Version of `core`, `bridge`, `torch` or `te`: as given, else as the log says."""
    given: Given = run.given
    by_option = {
        "core": core_version(run),
        "bridge": given.bridge_version,
        "torch": given.torch_version,
        "te": given.te_version,
    }
    text = by_option[package] or (run.log.versions.get(package) if run.log else None)
    return None if text is None else numbers(text)


def before(run: Run, package: str, release: str) -> bool | None:
    """Whether a package is older than a release, None where its version is unknown."""
    found = version(run, package)
    return None if found is None else found < numbers(release)
