"""Names that try to run, to break a table or to reach a terminal, and documents that are full of them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import diagnoser
from bench.simulate.export import write_export
from bench.simulate.recording import Recording
from heuristics.result.compared import Compared
from heuristics.result.result import Result
from reports.result.codec import Document
from tests.doubles.document import DISPATCH, GEMM

US, MS = 1_000, 1_000_000
RAN = "window.ran=1"
"""What a name would do in a page if it could; a page where nothing ran does not know `ran`."""

NAMES = {
    "script": f"<script>{RAN}</script>",
    "image": f'"><img src=x onerror={RAN}>',
    "attribute": f"' autofocus tabindex=1 onfocus={RAN} x='",
    "end of script": f"</script><script>{RAN}</script>",
    "end of style": f"</style></title></textarea><svg onload={RAN}>",
    "comment": "<!-- --!> <![CDATA[ ]]> <?php ?>",
    "entity": "&lt;b&gt; &amp;#60; &#x1b;[31m",
    "link": f"[x](javascript:{RAN}) [x|javascript:{RAN}] http://evil.example/ !http://evil.example/x.png!",
    "image of markdown": "![x](http://evil.example/x.png) <http://evil.example> www.evil.example",
    "cells": "a|b||c| \\| {|}",
    "code": "`a` ``b`` ``` ~~~ <code>",
    "lines": "a\nb\r\nc\rd\te\u2028f\u2029g\x0bh\x0ci\x85j\n\n| x |\n# head\n",
    "rule": "\n---\n***\n===\n",
    "template": "{{ 7*7 }} {% raw %} {# x #} ${7*7} #{7*7} <%= 7*7 %>",
    "macro": "{code}{noformat}{html}<b>{html}{color:red} h1. *x* bq. ---- [~admin] (!) {quote}",
    "formula": r"$x^2$ \frac{1}{2} $\undefined{$ $$",
    "cell call": "=cmd|'/c calc'!A0",
    "cell plus": "+1+1",
    "cell minus": "-2+3",
    "cell at": "@SUM(1+1)",
    "cell tab": "\t=1+1",
    "turned": "\u202egnp.exe\u2066\u200f\u061c",
    "without width": "zero\u200bwidth\u2060\ufeff\u00ad",
    "title": "\x1b]0;owned\x07\x1b[2J\x9b31mred",
    "terminal link": "\x1b]8;;http://evil.example\x1b\\x\x1b]8;;\x1b\\ \x90q\x9c",
    "nul": "a\x00b",
    "long": "x" * 10_000,
    "long with scope": "a::b<" * 2_000,
    "picture": "\U0001f525\U0001f469\u200d\U0001f469\u200d\U0001f466 e\u0301\u0301\u0301",
    "json": '","x":1,"\\u0000\\',
    "placeholders": "%s %n {0} {name} %(x)s \\1 \\g<0>",
    "shell": "$(touch ran) `touch ran`; touch ran # ' \" \\",
    "yaml": "!!python/object/apply:os.system ['x'] &a *a : - ? | >",
    "sql": "'); DROP TABLE StringIds;--",
    "mention": "@all #1 :smile: fixes #2",
    "blank": " ",
    "empty": "",
    "not a character": "\ufffe\uffff\U0010ffff",
}
"""Told apart by what they attack."""
BYTES = {
    "no UTF-8": b"\xff\xfe\x80name",
    "cut UTF-8": b"name\xe2\x82",
    "half of a pair": b"\xed\xa0\x80name",
    "long zero": b"a\xc0\x80b",
}
"""Texts of SQLite need be no UTF-8."""

WORST_HALVES = (
    f"=a|b`c`</script><script>{RAN}</script>\n# h\r\n\t\u202et\x1b]0;o\x07\x9b{{{{ 7*7 }}}}",
    f"\"><img src=x onerror={RAN}>' {{code}} *x* _y_ [z](http://e) [z|http://e] "
    "!x.png! @all #1 $q_{$ &lt; ]]>\x00",
)
WORST = "".join(WORST_HALVES)
"""As many of them as one line holds, for documents where every text is this one."""
FILE_NAME = f"=a|b`c`<img src=x onerror={RAN}>\n# h\t\u202et\x1b]0;o\x07{{{{ 7*7 }}}}$q_{{$.sqlite"
"""A file may be called so."""
CONTROL = frozenset(map(chr, (*range(32), *range(127, 160)))) - {"\n"}
TURNING = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u200b\ufeff"
)
HARMFUL = CONTROL | TURNING
"""What no text for people may hold: a terminal obeys some of it, a reader is misled by the rest."""


def named_run(names: Sequence[str], longer_us: int = 0) -> Recording:
    """Eight steps of kernels and ranges of these names, each kernel's alone and behind that of a known one.

    Kernels of unknown names take 20 us and those of known names `longer_us` more.
    """
    recording = Recording()
    for step in range(8):
        begin = at = (20 * step + 1) * MS
        recording.range(f"iteration {step}", at - 100 * US, at - 45 * US)
        for place, name in enumerate(names):
            launch = begin - 100 * US + place * 1_200 + 200
            recording.range(name, launch - 100, launch + 900)
            recording.range(f"layer {name}", launch - 90, launch + 890, registered=True)
            for prefix, stream, long_us in (("", 7, 20), (f"{DISPATCH}_", 20, 100), (f"{GEMM}_", 7, 200)):
                end = at + long_us * US + (longer_us * US if prefix else 0)
                recording.kernel(prefix + name, at, end, launch_ns=launch, stream=stream, grid=(132, 1, 1))
                at = end
    recording.mpi_rank(1000, 3)
    return recording


def hostile_export(path: Path, longer_us: int = 0) -> Path:
    """The run as an export, and every text that is no kernel's or range's name hostile as well."""
    names = [*NAMES.values(), *(f"placeholder {place}" for place in range(len(BYTES)))]
    recording = named_run(names, longer_us)
    recording.gpu(NAMES["script"])
    recording.diagnostic(NAMES["title"])
    write_export(path, recording)
    with closing(sqlite3.connect(path)) as db:
        for place, raw in enumerate(BYTES.values()):
            db.execute(
                "UPDATE StringIds SET value = replace(value, ?, CAST(? AS TEXT))",
                [f"placeholder {place}", raw],
            )
        for table, column in free_texts(db):
            db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE typeof("{column}") = \'text\'', [WORST])
        db.commit()
    return path


def free_texts(db: sqlite3.Connection) -> Iterable[tuple[str, str]]:
    """Tables and columns of texts that are neither names nor read for what they say."""
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for row in db.execute(f'PRAGMA table_info("{table}")').fetchall():
            if not table.startswith(("ENUM_", "META_", "EXPORT_", "StringIds", "NVTX_", "CUPTI_")):
                yield table, row[1]


@cache
def recorded(folder: Path) -> Document:
    """The document of a hostile run in a file of a hostile name, under a folder."""
    path = hostile_export(folder / FILE_NAME)
    return diagnoser.analyze(path, ask_megatron=False).to_dict()


@cache
def compared(folder: Path) -> Document:
    """The document of two hostile runs, of which the second is slower."""
    paths = folder / f"base {FILE_NAME}", folder / f"new {FILE_NAME}"
    for path, longer_us in zip(paths, (0, 50), strict=True):
        hostile_export(path, longer_us)
    return diagnoser.compare(*paths).to_dict()


def rewritten(value: Any, text: str, kept: tuple[str, ...]) -> Any:
    """A document where every text is this one, but for words of ours that formats and contract go by."""
    if isinstance(value, dict):
        return {key: part if key in kept else rewritten(part, text, kept) for key, part in value.items()}
    if isinstance(value, list):
        return [rewritten(part, text, kept) for part in value]
    return text if isinstance(value, str) and value not in our_words() else value


@cache
def our_words() -> frozenset[str]:
    """Every word that the contract allows in a field, and no other."""
    found: set[str] = set()
    left: list[Any] = [*map(msgspec.json.schema, (Result, Compared))]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found |= {word for word in one.get("enum", ()) if isinstance(word, str)}
            left += one.values()
        elif isinstance(one, list):
            left += one
    return frozenset(found)


def undecodable_name() -> str:
    """A file name of bytes that are no UTF-8, as Python gives it."""
    return os.fsdecode(b"a\xff\xfe\x1b[31m.sqlite")
