"""Texts of configurations and logs with a few lines changed: of every format there is, most of them odd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from tests.places import DATA

CONFIGURATIONS: Final = sorted(
    path
    for folder in ("config_cases", "config_pairs", "field_cases", "settings")
    for path in (DATA / folder).rglob("*")
    if path.suffix in (".sh", ".yaml", ".txt")
)
LOGS: Final = sorted([*(DATA / "config_pairs").rglob("*.log"), *(DATA / "field_cases").rglob("*.log")])
VALUES: Final = (
    "0", "1", "2", "4", "8", "16", "64", "128", "true", "false", "null", "none", "alltoall", "flex", "deepep",
    "hybridep", "full", "selective", "uniform", "bf16", "fp8", "mxfp8", "blockwise", "1e-3", '"2"', "'8'",
    "[attn, mlp]", "attn mlp moe", "$EP", "${TP:-2}", "$((2 * 4))", "local", "transformer_engine", "-1",
)  # fmt: skip
KNOBS: Final = (
    "tensor-model-parallel-size", "expert-model-parallel-size", "pipeline-model-parallel-size", "num-experts",
    "moe-token-dispatcher-type", "moe-flex-dispatcher-backend", "cuda-graph-impl", "cuda-graph-scope",
    "recompute-granularity", "recompute-modules", "fp8-recipe", "moe-router-topk", "micro-batch-size",
    "global-batch-size", "num-layers", "context-parallel-size", "overlap-grad-reduce", "use-megatron-fsdp",
    "num-layers-per-virtual-pipeline-stage", "delay-wgrad-compute", "overlap-moe-expert-parallel-comm",
    "moe-expert-capacity-factor", "sequence-parallel", "use-distributed-optimizer", "first-last-layers-bf16",
)  # fmt: skip
Alter = Callable[[Random, list[str]], list[str]]


def altered(dice: Random, path: Path, most: int = 4) -> str:
    """The text of a file with up to so many changes of its lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for _ in range(dice.randint(0, most)):
        lines = dice.choice(ALTERS)(dice, lines) or lines
    return "\n".join(lines) + "\n"


def _gone(dice: Random, lines: list[str]) -> list[str]:
    at = dice.randrange(len(lines))
    return lines[:at] + lines[at + 1 :]


def _cut(dice: Random, lines: list[str]) -> list[str]:
    return lines[: dice.randint(len(lines) // 2, len(lines))]


def _another_value(dice: Random, lines: list[str]) -> list[str]:
    at = dice.randrange(len(lines))
    for mark in (": ", "=", " "):
        name, found, _ = lines[at].rpartition(mark)
        if found:
            return [*lines[:at], f"{name}{mark}{dice.choice(VALUES)}", *lines[at + 1 :]]
    return lines


def _another_number(dice: Random, lines: list[str]) -> list[str]:
    at = dice.randrange(len(lines))
    old, new = dice.choice("123468"), dice.choice(("0", "1", "3", "8", "12", "-1"))
    return [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]


def _added(dice: Random, lines: list[str]) -> list[str]:
    at, knob, value = dice.randrange(len(lines) + 1), dice.choice(KNOBS), dice.choice(VALUES)
    name = knob.replace("-", "_")
    forms = (
        f"  --{knob} {value} \\",
        f"  --{knob}={value} \\",
        f"model.{name}={value}",
        f"  {name}: {value}",
        f"    --no-{knob} \\",
        f"export {name.upper()}={value}",
        f"# --{knob} {value}",
        f"  {name} ..... {value}",
    )
    return [*lines[:at], dice.choice(forms), *lines[at:]]


def _twice(dice: Random, lines: list[str]) -> list[str]:
    at = dice.randrange(len(lines))
    return [*lines, lines[at]] if dice.random() < 0.5 else [*lines[:at], lines[at], *lines[at:]]


def _swapped(dice: Random, lines: list[str]) -> list[str]:
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    swapped = [*lines]
    swapped[one], swapped[other] = lines[other], lines[one]
    return swapped


ALTERS: Final[tuple[Alter, ...]] = (
    _gone, _gone, _cut, _another_value, _another_value, _another_value, _another_number, _another_number,
    _added, _added, _added, _twice, _swapped,
)  # fmt: skip
