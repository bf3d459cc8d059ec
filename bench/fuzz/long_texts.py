"""Texts that may cost more than their length: one piece again and again, in any place of any input.

Pieces are words of our own tables and logs, so that they meet our patterns, and what opens, ends or escapes
something. An input stays below 1 MB, and may take `MOST_S` seconds of CPU time on its whole way.
"""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar

import diagnoser
from bench.fuzz import configurations, kineto, logs, nsys, results, summaries
from bench.fuzz.target import Target
from bench.fuzz.whole_way import diagnosed
from diagnoser.running.inputs.facts import facts_near
from diagnoser.running.inputs.rank_map import read_rank_map
from tests.places import DATA, ROOT
from traces.errors import MoeDiagError
from traces.formats.memory_snapshot import read_memory_snapshot
from traces.witness.read import read_witness

T = TypeVar("T")
MOST_S: Final = 5.0
"""Of CPU time, half of what any input below 1 MB may take."""
LONGEST_ERROR: Final = 4_000
_LENGTHS: Final = (3_000, 30_000, 300_000, 700_000)
_SIGNS: Final[tuple[str, ...]] = (
    *" _-:;,.<>()[]{}|/\\'\"`$#&=*+?!@~%^0aA\n\t\r",
    *(
        "::",
        "<<",
        "$(",
        "${",
        "$((",
        "\\\n",
        "- ",
        ": ",
        "&a ",
        "*a ",
        "&&",
        "||",
        "--",
        "==",
        "=>",
        "//",
        "..",
        "  ",
    ),
    *(
        "é",
        "\u2028",
        "\x1b[",
        "\x00",
        "1e",
        "0x",
        "if ",
        "fi\n",
        "for i in ",
        "<<EOF\n",
        "A+=$A ",
        "[rank0]:",
        "File ",
    ),
)
_SAME_HASH: Final = 2**61 - 1


@cache
def words() -> tuple[str, ...]:
    """Words of our tables, and of logs and configurations that tests read."""
    paths = [path for name in ("traces", "heuristics", "reports") for path in (ROOT / name).rglob("*.toml")]
    paths += [path for folder in ("logs", "settings") for path in (DATA / folder).iterdir()]
    paths.append(DATA / "kernel_names.csv")
    found = {word for path in paths for word in re.findall(r"[\w:.<>/=-]{2,30}", path.read_text("utf-8"))}
    return tuple(sorted(found))


@cache
def kernel_words() -> tuple[str, ...]:
    """What stands between the signs of patterns for names."""
    rules = (ROOT / "traces" / "names" / "kernel_rules.toml").read_text("utf-8")
    return tuple(sorted({*re.findall(r"[A-Za-z_0-9:]{2,}", rules)}))


def long_text(rng: Random) -> str:
    """A piece again and again, with something before and behind it."""
    piece = "".join(_piece(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))
    count = rng.choice(_LENGTHS) // len(piece.encode("utf-8", "replace")) + 1
    if rng.random() < 0.3:  # each one another
        return rng.choice(_SIGNS).join(f"{piece}{number}" for number in range(count // 8 + 1))
    return _piece(rng) + piece * count + rng.choice(("", _piece(rng), "!"))


def _piece(rng: Random) -> str:
    return rng.choice(rng.choice((words(), kernel_words(), _SIGNS)))


def in_text(rng: Random, text: str) -> str:
    """A text with a long one in it, at a place between two words or in place of one."""
    cuts = [found.start() for found in re.finditer(r"\b", text)] or [0]
    at = rng.choice(cuts)
    end = at if rng.random() < 0.5 else min((cut for cut in cuts if cut > at), default=at)
    return text[:at] + long_text(rng) + text[end:]


def in_tree(rng: Random, whole: Any) -> Any:
    """A document with a long text, or a long list, in place of one of its parts, or of a key."""
    if isinstance(whole, dict) and whole and rng.random() < 0.95:
        key = rng.choice([*whole])
        if rng.random() < 0.05:
            return {long_text(rng) if name == key else name: one for name, one in whole.items()}
        return {**whole, key: in_tree(rng, whole[key])}
    if isinstance(whole, list) and whole and rng.random() < 0.95:
        place = rng.randrange(len(whole))
        if rng.random() < 0.1:
            return [*whole, *[whole[place]] * min(_room(whole[place]), 20_000)]
        return [*whole[:place], in_tree(rng, whole[place]), *whole[place + 1 :]]
    made: Any = rng.choice((long_text, _numbers, _deep))(rng)
    return made


def _room(part: Any) -> int:
    return _LENGTHS[-1] // len(repr(part))


def _numbers(rng: Random) -> Any:
    step = rng.choice((1, 1 << 32, _SAME_HASH, 10**18, 10**300))
    return [step * number for number in range(rng.choice((100, 10_000)))]


def _deep(rng: Random) -> Any:
    made: Any = long_text(rng)[:9]
    for _ in range(rng.choice((50, 300))):
        made = [made] if rng.random() < 0.5 else {"a": made}
    return made


def _in_export(rng: Random, content: bytes) -> bytes:
    """A long text in place of any of an export's, or of many, or many of them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.deserialize(content)
        tables = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
        ]
        table = "StringIds" if "StringIds" in tables and rng.random() < 0.7 else rng.choice(tables)
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        text = long_text(rng)
        with suppress(sqlite3.Error):
            rows = [row[0] for row in db.execute(f'SELECT rowid FROM "{table}"')] or [0]
            if rng.random() < 0.3:  # a part of it each
                piece = len(text) // len(rows) + 1
                texts = {row: text[piece * place :][:piece] for place, row in enumerate(rows)}
            else:
                texts = {rng.choice(rows): text}
            column = "value" if table == "StringIds" else rng.choice(columns)
            db.executemany(
                f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?',
                [*map(tuple, map(reversed, texts.items()))],
            )
        return bytes(db.serialize())


def _in_configuration(rng: Random, one: tuple[str, str]) -> tuple[str, str]:
    return one[0], in_text(rng, one[1])


def _bounded(check: Callable[[Path], object], path: Path, deep: bool) -> None:
    begun = time.process_time()
    try:
        check(path)
    except MoeDiagError as error:
        if len(str(error)) > LONGEST_ERROR:
            raise ValueError("a message as long as the input") from None
        raise
    finally:
        took_s = time.process_time() - begun
        assert took_s < MOST_S, f"{took_s:.1f} s of CPU time for {path.stat().st_size:,} bytes"


def _dump(rng: Random) -> Any:
    entry = {
        "process_group": ["0", "default_pg"],
        "pg_id": 0,
        "collective_seq_id": 1,
        "profiling_name": "nccl:all_to_all",
        "input_sizes": [[2, 3]],
        "input_dtypes": ["BFloat16"],
        "state": "scheduled",
        "frames": [{"name": "forward", "filename": "/x/moe_layer.py", "line": 3}],
    }
    return {
        "version": "2.10",
        "rank": 0,
        "pg_config": {"0": {"ranks": "[0, 1]", "desc": "x"}},
        "entries": [entry] * 3,
    }


def _pickled(name: str) -> Callable[[Random, Any], tuple[str, bytes]]:
    def written(rng: Random, document: Any) -> tuple[str, bytes]:
        return name, pickle.dumps(document, 2) if rng.random() < 0.5 else json.dumps(document).encode()

    return written


def _snapshot(rng: Random) -> Any:
    frames = [{"filename": "/x/torch/nn/linear.py", "line": 1, "name": "forward"}]
    entry = {"action": "alloc", "addr": 512, "size": 512, "stream": 0, "frames": frames}
    block = {"address": 512, "size": 512, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": 512, "total_size": 2 << 20, "blocks": [block]}
    return {"segments": [segment], "device_traces": [[entry] * 3]}


def _text(name: str) -> Callable[[Random, str], tuple[str, bytes]]:
    return lambda rng, text: (name, text.replace("\r", "\n").encode("utf-8", "replace"))


def _asked(path: Path) -> None:
    """A word of a command: explained, and planned for as a model."""
    word = path.read_text("utf-8", errors="replace")
    with suppress(MoeDiagError):
        diagnoser.explain(word)
    diagnoser.plan(word, gpus=8, about={"gpu": "H100"})


def _checked(path: Path) -> None:
    diagnoser.check_config(DATA / "settings" / "run.sh", symptoms=path, ask_megatron=False).to_dict()


_FACTS: Final = '[about]\ngpu = "H100"\nep = 16\nenv = { NCCL_DEBUG = "INFO" }\ncore_version = "0.16.1"\n'
_MAP: Final = "file,rank,host\nrun.sqlite,0,a\nother.sqlite,1,b\n"


def _mapped(path: Path) -> None:
    read_rank_map(path, [path.with_name("run.sqlite"), path.with_name("other.sqlite")])


def _figures(rng: Random) -> Any:
    walls = {"memory": 0.1, "communication": 0.5}
    return {"ranks": [{"budget_frac": {"compute": 0.4, "idle": 0.1}, "kernels": {}}] * 2, "late": walls}


def _of(base: Target[T], spoil: Callable[[Random, T], T], check: Callable[[Path], object]) -> Target[T]:
    return replace(base, name=f"long_{base.name}", spoil=spoil, check=partial(_bounded, check), deep=1)


def _whole(base: Target[Any]) -> Callable[[Path], object]:
    return lambda path: base.check(path, True)


TARGETS: Final = (
    _of(nsys.TARGET, _in_export, diagnosed),
    _of(kineto.TARGET, in_tree, diagnosed),
    _of(logs.TARGET, in_text, _whole(logs.TARGET)),
    _of(configurations.TARGET, _in_configuration, _whole(configurations.TARGET)),
    _of(results.TARGET, in_tree, _whole(results.TARGET)),
    _of(summaries.TARGET, in_tree, _whole(summaries.TARGET)),
    Target("long_dumps", _dump, in_tree, _pickled("trace_rank_0"), partial(_bounded, read_witness), deep=1),
    Target(
        "long_snapshots",
        _snapshot,
        in_tree,
        _pickled("s.pickle"),
        partial(_bounded, read_memory_snapshot),
        deep=1,
    ),
    Target("long_words", long_text, in_text, _text("word"), partial(_bounded, _asked), deep=1),
    Target(
        "long_facts",
        lambda rng: _FACTS,
        in_text,
        _text("moe-diag.toml"),
        partial(_bounded, lambda path: facts_near(path.parent)),
        deep=1,
    ),
    Target("long_maps", lambda rng: _MAP, in_text, _text("map.csv"), partial(_bounded, _mapped), deep=1),
    Target(
        "long_symptoms", _figures, in_tree, _pickled("symptoms.json"), partial(_bounded, _checked), deep=1
    ),
)
"""Of each reader whose inputs hold texts."""
