"""Training logs with lines and words spoiled: read in small pieces as read at once."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import diagnoser
from bench.fuzz.mutations import lines
from bench.fuzz.same import assert_same
from bench.fuzz.target import Target
from tests.configurations.logs import crash, iteration, out_of_memory, read, step_time
from tests.places import DATA
from traces.training_log import read as log_lines

_PART: Final = 24


@cache
def texts() -> tuple[str, ...]:
    """Excerpts of some two dozen lines."""
    rows = [row for path in sorted((DATA / "logs").iterdir()) for row in path.read_text("utf-8").split("\n")]
    parts = ["\n".join(rows[first : first + _PART]) for first in range(0, len(rows), _PART)]
    steps = [iteration(number, 40.0 + number % 3) for number in range(1, 15)]
    failed = crash("forward@/x/megatron/core/transformer/moe/moe_layer.py", "backward", last=out_of_memory())
    arguments = (DATA / "settings" / "log.txt").read_text("utf-8")
    own = "\n".join([arguments, *steps, *(step_time(1.5, 300.0) for _ in range(4)), *failed])
    return (*parts, own, own, "\n".join(steps), arguments)


def begin(rng: Random) -> str:
    """A whole log."""
    return rng.choice(texts())


def spoil(rng: Random, text: str) -> str:
    """A line or a word changed."""
    return lines(rng, text, rng.choice(texts()))


def written(rng: Random, text: str) -> tuple[str, bytes]:
    """The text, one in ten packed."""
    ends = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    content = text.replace("\n", ends).encode("utf-8", rng.choice(("replace", "surrogatepass")))
    return "run.log", gzip.compress(content, 1, mtime=0) if rng.random() < 0.1 else content


def check(path: Path, deep: bool) -> None:
    """It is read; the whole way also piece by piece, and beside a configuration."""
    found = read(path)
    if deep:
        whole: Any = log_lines._CHUNK_BYTES
        try:
            log_lines._CHUNK_BYTES = 4_097  # type: ignore[misc]
            assert_same(read(path), found)
        finally:
            log_lines._CHUNK_BYTES = whole  # type: ignore[misc]
        diagnoser.check_config(DATA / "settings" / "run.sh", log=path, ask_megatron=False).to_dict()


TARGET: Final = Target("logs", begin, spoil, written, check)
