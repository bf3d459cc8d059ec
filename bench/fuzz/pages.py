"""SQLite files whose pages are spoiled: where our own reader answers, Python's sqlite3 gives the same."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from bench.fuzz.exports import exports
from bench.fuzz.mutations import BYTES, NUMBERS
from bench.fuzz.target import Target
from tests.recordings.two_readers import read
from traces import loops
from traces.formats.sqlite_pages import PageTables
from traces.formats.sqlite_tables import RowFilter, SqliteTables

_TYPES: Final = (
    "INTEGER",
    "INT",
    "",
    "TEXT",
    "REAL",
    "BLOB",
    "NUMERIC",
    "FLOATING POINT",
    "INTEGER NOT NULL",
)
_LENGTHS: Final = (0, 1, 30, 57, 58, 70, 200, 450, 700, 2_000)
_HEADER: Final = (16, 17, 18, 19, 20, 21, 22, 23, 28, 29, 30, 31, 44, 47, 52, 56, 59, 92, 96)
"""Bytes of the file's header that mean something to a reader."""


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A file and which of its columns are read."""

    content: bytes
    table: str
    integers: tuple[str, ...]
    texts: tuple[str, ...] = ()
    only: tuple[tuple[str, tuple[int, ...] | None], ...] = ()

    @property
    def page(self) -> int:
        """Bytes of a page."""
        size = int.from_bytes(self.content[16:18], "big")
        return size if 512 <= size <= 32_768 else 512


def _drawn(rng: Random) -> Spoiled:
    """A table of drawn columns and rows, some of which were deleted."""
    types = [
        rng.choice(_TYPES) if rng.random() < 0.15 else kind for kind in ("INTEGER", "TEXT", "INTEGER", "TEXT")
    ]
    tail = rng.choice(("", "", "", "", "", ", g INTEGER AS (a + 1)", ", k INTEGER PRIMARY KEY"))
    page, count = rng.choice((512, 512, 512, 1024, 4096)), rng.choice((0, 1, 3, 20, 90))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute(f"PRAGMA page_size = {page}")
        if rng.random() < 0.05:
            made.execute(f"PRAGMA encoding = '{rng.choice(('UTF-16le', 'UTF-16be'))}'")
        made.execute(f"PRAGMA auto_vacuum = {rng.choice(('NONE', 'NONE', 'FULL', 'INCREMENTAL'))}")
        made.execute(f"CREATE TABLE t (a {types[0]}, s {types[1]}, b {types[2]}, u {types[3]}{tail})")
        rows = [(_number(rng), _text(rng), _number(rng), _text(rng)) for _ in range(count)]
        made.executemany("INSERT OR IGNORE INTO t (a, s, b, u) VALUES (?, ?, ifnull(?, 5), ?)", rows)
        made.execute(f"DELETE FROM t WHERE _rowid_ % {rng.choice((2, 7, 11))} = 0")
        if rng.random() < 0.1:
            made.execute("ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7")
        content = bytes(made.serialize())
    only = rng.choice(((), (), (("a", None),), (("b", (5, 7, 59)), ("a", None))))
    texts = rng.choice((("s",), ("s", "u"), ()))
    return Spoiled(content, "t", ("a", "b"), texts, only)


def _number(rng: Random) -> object:
    return rng.choice((None, rng.choice(NUMBERS), rng.randrange(-(2**40), 2**40), rng.randrange(9)))


def _text(rng: Random) -> object:
    return rng.choice(
        (None, "aten::add", "é" * rng.choice(_LENGTHS), "x" * rng.choice(_LENGTHS), b"\xff\x00")
    )


@cache
def seeds() -> tuple[Spoiled, ...]:
    """Drawn tables, and tables of exports."""
    found = [_drawn(Random(number)) for number in range(120)]
    for content in exports():
        with closing(sqlite3.connect(":memory:")) as opened:
            opened.deserialize(content)
            for table, text in (
                ("CUPTI_ACTIVITY_KIND_KERNEL", ""),
                ("NVTX_EVENTS", "text"),
                ("StringIds", "value"),
            ):
                columns = [row[1] for row in opened.execute(f"PRAGMA table_info({table})")]
                whole = tuple(
                    one for one in columns if one in ("start", "end", "deviceId", "eventType", "id")
                )
                if whole:
                    found.append(Spoiled(content, table, whole, (text,) if text else ()))
    return tuple(found)


def begin(rng: Random) -> Spoiled:
    """A whole file."""
    return rng.choice(seeds())


def spoil(rng: Random, one: Spoiled) -> Spoiled:
    """One change where a reader looks: at a page's head, its cells, their pointers, the file's header."""
    data, size = bytearray(one.content), one.page
    pages = max(len(data) // size, 1)
    base = rng.randrange(pages) * size
    start = base + (100 if base == 0 else 0)
    way = rng.randrange(12)
    if way == 0:
        _put(data, rng.choice(_HEADER), bytes([rng.choice((*BYTES, rng.randrange(256)))]))
    elif way == 1:  # a page in the place of another one
        other = rng.randrange(pages) * size
        data[base : base + size] = data[other : other + size]
    elif way == 2:
        data = data[: rng.choice((base, base + rng.randrange(size)))] or data
    elif way == 3:
        _put(data, start + rng.randrange(12), bytes([rng.choice((*BYTES, rng.randrange(256)))]))
    elif way == 4:  # a child elsewhere: the last one, or that of a cell
        at = start + 8 if rng.random() < 0.3 else _cell(rng, data, base, start)
        _put(data, at, rng.choice((0, 1, 2, pages, pages + 1, rng.randrange(pages + 2))).to_bytes(4, "big"))
    elif way == 5:  # a cell elsewhere
        place = start + rng.choice((8, 12)) + 2 * rng.randrange(12)
        _put(data, place, rng.choice((0, 7, size - 1, size, rng.randrange(size))).to_bytes(2, "big"))
    elif way == 6:  # the same cell twice, or two in each other's place
        first, second = (start + 8 + 2 * rng.randrange(8) for _ in range(2))
        _put(data, first, bytes(data[second : second + 2]))
    else:  # sizes and types of a cell
        at = _cell(rng, data, base, start) + rng.randrange(rng.choice((2, 4, 12, 40)))
        _put(data, at, bytes([rng.choice((*BYTES, rng.randrange(256)))] * rng.choice((1, 1, 1, 2, 9))))
    return replace(one, content=bytes(data))


def _cell(rng: Random, data: bytearray, base: int, start: int) -> int:
    place = start + (12 if data[start : start + 1] == b"\x05" else 8) + 2 * rng.randrange(6)
    return base + int.from_bytes(data[place : place + 2], "big")


def _put(data: bytearray, at: int, what: bytes) -> None:
    if at + len(what) <= len(data):
        data[at : at + len(what)] = what


def written(rng: Random, one: Spoiled) -> tuple[str, bytes]:
    """The file; its name says what is read of it."""
    only = "+".join(f"{name}.{'.'.join(map(str, values or ()))}" for name, values in one.only)
    return "-".join((one.table, ".".join(one.integers), ".".join(one.texts), only, "run.sqlite")), one.content


def check(path: Path, deep: bool) -> None:
    """Both readers: what ours decoded from pages is what sqlite3 gives, also its errors."""
    table, integers, texts, filters, _ = path.name.split("-")
    only: dict[str, list[int] | None] = {}
    for each in filters.split("+") if filters else ():
        name, *values = each.split(".")
        only[name] = [int(one) for one in values if one] or None
    columns = integers.split("."), texts.split(".") if texts else []
    wanted: RowFilter = only
    found, ran = read(path, PageTables, table, *columns, wanted)
    # What is left to SQLite cannot be compared with it: of a cell that leaves its page, 3.40 gives now an
    # error and now values, by what stands in memory behind the page.
    if ran == "pages":
        expected = read(path, SqliteTables, table, *columns, wanted)[0]
        assert found == expected, "another answer than sqlite3"


def compile_loops() -> None:
    """Have the loops compiled that run on large files: there a wrong place is no exception."""
    loops.COMPILED_FROM = replace(loops.COMPILED_FROM, value=0)  # type: ignore[misc]
    with TemporaryDirectory() as folder:
        for one in seeds():
            name, content = written(Random(0), one)
            path = Path(folder) / name
            path.write_bytes(content)
            check(path, deep=False)


TARGET: Final = Target("pages", begin, spoil, written, check, ready=compile_loops)
