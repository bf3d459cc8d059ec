"""Summaries of ranks with any part of their message spoiled: refused, or put together with whole ones."""

from __future__ import annotations

import atexit
import zlib
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from bench.fuzz.mutations import flipped, tree
from bench.fuzz.target import Target
from diagnoser.running.merging import merge_summaries
from tests.recordings.ranks import Work, together
from traces.ranks.summaries.codec import MARK, VERSION, encode
from traces.ranks.summaries.decoding import decode
from traces.ranks.summaries.summary import RankSummary

_HEAD: Final = len(MARK) + 1


@cache
def whole() -> tuple[RankSummary, ...]:
    """Four ranks that wait for the last."""
    works = [[Work(compute=100 + 40 * (rank == 3), host=5) for _ in range(12)] for rank in range(4)]
    return tuple(together(works, per_step=4))


@cache
def seeds() -> tuple[Any, ...]:
    """Their messages as plain lists."""
    return tuple(msgspec.msgpack.decode(zlib.decompress(encode(one)[_HEAD:])) for one in whole())


@cache
def _others() -> list[Path]:
    """Files of three whole ones, as long as the process lasts."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    paths = [Path(folder.name) / f"{number}.rank" for number in range(3)]
    for path, one in zip(paths, whole(), strict=False):
        path.write_bytes(encode(one))
    return paths


def begin(rng: Random) -> Any:
    """A whole message."""
    return rng.choice(seeds())


def spoil(rng: Random, message: Any) -> Any:
    """One place of it changed; in its tables a byte, which keeps their length."""
    if isinstance(message, list) and len(message) == 7 and rng.random() < 0.4:
        place = rng.choice((5, 6))
        data = bytearray(message[place] if isinstance(message[place], bytes) else b"\1")
        if data:
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
        return [*message[:place], bytes(data), *message[place + 1 :]]
    return tree(rng, message)


def written(rng: Random, message: Any) -> tuple[str, bytes]:
    """A file as ours; one in ten has another head."""
    try:
        packed = msgspec.msgpack.encode(message)
    except (OverflowError, UnicodeEncodeError, TypeError):
        packed = b"\xc0"
    content = MARK + bytes([VERSION]) + zlib.compress(packed, 1)
    return "run.rank", flipped(rng, content) if rng.random() < 0.05 else content


def check(path: Path, deep: bool) -> None:
    """It is decoded; the whole way it is put together with three others."""
    decode(path.read_bytes(), path.name)
    if deep:
        merge_summaries([path, *_others()]).to_dict()


TARGET: Final = Target("summaries", begin, spoil, written, check, deep=10)
